#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# guest.sh SCRIPT [args...]: process 1 of the guest after init. Mounts what a booted system has, runs SCRIPT, brings the
# kernel log and the taint flags back to the host, and leaves the VM with a code that run.sh knows.
# It judges nothing: run.sh reads the files.
set -uo pipefail

export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb LC_ALL=C

ln -s /proc/self/fd /dev/fd
ln -s /proc/self/fd/0 /dev/stdin
ln -s /proc/self/fd/1 /dev/stdout
ln -s /proc/self/fd/2 /dev/stderr
mkdir -p /dev/pts /dev/shm /run/lock
mount -t devpts -o mode=620,ptmxmode=666 devpts /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
[[ -z ${VM_PRIVATE_TMP:-} ]] || mount -t tmpfs -o mode=1777 tmp /tmp
mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
mount -t cgroup2 -o nsdelegate cgroup2 /sys/fs/cgroup
ip link set lo up

# Everything in the log after this line happened under test.
echo "<5>$VM_LOG_MARK" >/dev/kmsg

bash "$@"
status=$?

# Where the kernel looks for leaks it says so in its log. What is younger than five seconds it takes for in use, and what
# changed since it looked last: the first look finds nothing.
if [[ -e /sys/kernel/debug/kmemleak ]]; then
	sleep 6
	echo scan >/sys/kernel/debug/kmemleak
	echo scan >/sys/kernel/debug/kmemleak
	cat /sys/kernel/debug/kmemleak >/out/kmemleak
fi
dmesg >/out/dmesg
cat /proc/sys/kernel/tainted >/out/tainted
echo "$status" >/out/status
cd /
umount /out || umount -l /out
# 16: the script said success. 17: it said failure. (18: init gave up.)
/run/vmexit $((status ? 17 : 16))
