#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# vm: --timeout 120
# 00-rig.sh: says whether the VM rig gives the other tests what they rely on. Runs in the guest, through run.sh.
# Tests nothing of qgpu itself.
# shellcheck disable=SC2317 # check calls the functions
set -euo pipefail
# shellcheck source=../lib.sh
source "$(dirname "$0")/../lib.sh"

is_root_writable() { touch /root/written-by-guest && [[ -e /root/written-by-guest ]]; }
has_controllers() { grep -qw cpu /sys/fs/cgroup/cgroup.controllers && grep -qw memory /sys/fs/cgroup/cgroup.controllers; }
makes_cgroup() {
	mkdir /sys/fs/cgroup/rig
	defer rmdir /sys/fs/cgroup/rig
	[[ -e /sys/fs/cgroup/rig/cgroup.procs ]]
}
lists_genl_families() { [[ $(genl ctrl list) == *nlctrl* ]]; }
loopback_is_up() { [[ $(ip -o link show lo) == *"LOOPBACK,UP"* ]]; }
reaches_out() { echo "from the guest" >/out/rig-file && grep -q guest /out/rig-file; }
cpus_match_mode() {
	local count=1
	[[ $VM_MODE == smp2 ]] && count=2
	[[ $(nproc) == "$count" ]]
}
sleeps_exactly() {
	local before after
	before=$(awk '/^now at/ { print $3; exit }' /proc/timer_list)
	sleep 100
	after=$(awk '/^now at/ { print $3; exit }' /proc/timer_list)
	# The rest is starting two programs in instructions, not in host time.
	((after - before >= 100000000000 && after - before < 101000000000)) || { echo "$((after - before)) ns" && return 1; }
}
gets_random_numbers() { timeout 20 head -c 16 /dev/random >/dev/null; }

check "the script runs as root" test "$EUID" = 0
check "the kernel is the one asked for" test "$(uname -r)" = "$VM_KVER"
check "the number of CPUs fits the mode" cpus_match_mode
check "the root file system takes writes" is_root_writable
check "/out reaches the host" reaches_out
check "cgroup2 is mounted and has cpu and memory" has_controllers
check "cgroups can be made" makes_cgroup
check "debugfs is mounted" test -d /sys/kernel/debug/tracing
check "the auxiliary bus is there" test -d /sys/bus/auxiliary
check "generic netlink answers" lists_genl_families
check "loopback is up" loopback_is_up
check "random numbers do not block" gets_random_numbers

# One that the kernel comes with and that any machine loads; who builds a kernel without (debug-kernel.config) has ours.
module=dummy from=dummy
modprobe -d "$VM_KROOT" -S "$VM_KVER" --show-depends $module >/dev/null 2>&1 || module=qgpu_sim from=${QGPU_MODULES:-none}
check "modules can be staged" stage_modules "$from"
check "modprobe -d loads a staged module" modprobe -d "$STAGED_MODULES" $module
check "a loaded module is listed" test -d /sys/module/$module
check "modprobe unloads it" modprobe -r $module
check "plain modprobe finds it too" modprobe $module
defer modprobe -r $module
check_fails "a module that was not staged is refused" modprobe ext4
check_fails "staging an unknown module is refused" stage_modules no_such_module

if [[ $VM_MODE == icount ]]; then
	check "100 s of sleep take 100 s of guest time" sleeps_exactly
else
	skip "100 s of sleep take 100 s of guest time" "only with --icount"
fi

run_deferred
check "clean-ups ran" test ! -e /sys/fs/cgroup/rig -a ! -e /sys/module/$module
done_testing
