#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# memory-root.sh SCRIPT >ARCHIVE: what a guest under --icount sees instead of the host's root, as a cpio archive that its
# kernel unpacks into memory below /root. Called by run.sh, which has set KVER and KROOT.
#
# A guest whose clock counts instructions jumps to its next timer whenever it has nothing to do. While it waits for a file
# of the host it has nothing to do, so a busy host makes minutes of it pass in a moment: such a guest must never wait for
# the host. What is not listed here does not exist in it, and a script that misses a program says so.
set -euo pipefail

PROGRAMS=(awk basename bash busybox cat chmod chrt cmp cp cut date dd diff dirname dmesg env find grep head id ip kill ln ls
	mkdir mkfifo mktemp mount mountpoint mv modinfo modprobe depmod insmod rmmod lsmod nproc od pgrep pkill printf ps readlink realpath
	rm rmdir sed seq setpriv sh sleep sort stat sync tail taskset tee test timeout touch tr true false umount uname uniq unshare
	wc xargs)
FILES=(/etc/passwd /etc/group /etc/nsswitch.conf /etc/ld.so.cache /usr/bin/ldd)

here=$(cd "$(dirname "$0")" && pwd)
script=$(realpath "${1:?usage: memory-root.sh SCRIPT}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root"/{usr/bin,usr/sbin,usr/lib,usr/lib64,dev,etc,out,proc,run,sys,tmp,"$PWD"}
for name in bin sbin lib lib64; do
	[[ ! -L /$name ]] || ln -s "usr/$name" "$root/$name"
done

# put FILE...: under its own name, whatever links lead to it.
put() {
	local file folder
	for file in "$@"; do
		folder=$root$(realpath "$(dirname "$file")")
		mkdir -p "$folder"
		cp -Lu "$file" "$folder/"
	done
}

libraries_of() { # PROGRAM...
	ldd "$@" 2>/dev/null | awk '$1 ~ /^\/.*[^:]$/ { print $1 } $3 ~ /^\// { print $3 }' | sort -u
}

mapfile -t programs < <(type -P "${PROGRAMS[@]}")
((${#programs[@]} == ${#PROGRAMS[@]})) || { echo "memory-root.sh: some of ${PROGRAMS[*]} is not installed" >&2; exit 1; }
put "${programs[@]}" "${FILES[@]}" "$here"/*.sh "$here"/../../examples/*.toml "$script"
if [[ -n ${QGPU_PROGRAMS:-} ]]; then
	programs+=("$QGPU_PROGRAMS"/bin/*)
	put "$QGPU_PROGRAMS"/bin/*
fi
[[ -z ${QGPU_MODULES:-} ]] || put "$QGPU_MODULES"/*.ko
mapfile -t libraries < <(libraries_of "${programs[@]}")
put "${libraries[@]}" "$KROOT/lib/modules/$KVER"/modules.*

cd "$work"
find . | LC_ALL=C sort | cpio -o -H newc --quiet
