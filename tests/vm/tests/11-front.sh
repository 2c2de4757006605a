#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# vm: --smp2 --timeout 480
# 11-front.sh: bad input at the simulated driver, as root and as nobody, and the module's own ways in and out.
set -euo pipefail
# shellcheck source=../lib.sh
source "$(dirname "$0")/../lib.sh"
# shellcheck source=../front-lib.sh
source "$(dirname "$0")/../front-lib.sh"

front_load
check_equal "it has no alias to be loaded by" "$(modinfo -F alias qgpu_sim)" ""
# shellcheck disable=SC2154 # front_load sets it
relay "$front_bin/front_abuse"
relay "$front_bin/front_churn"
chmod 755 "$front_bin"
# Nobody may use the card as well as root, and can't do more harm.
relay setpriv --reuid=65534 --regid=65534 --clear-groups "$front_bin/front_abuse"
charge=/sys/fs/cgroup/front-charge
check "there is a memory controller" sh -c "echo +memory >/sys/fs/cgroup/cgroup.subtree_control && mkdir $charge"
relay "$front_bin/front_charge" "$charge"
check_equal "all ids came back: the next TSG is number 0" \
	"$("$front_bin/qgpu-load" --seconds 0.01 >/dev/null && awk 'END { print $6 }' "$front_debug/card0/tsgs")" 0

sleep 100 9<>/dev/nvidiactl &
holder=$!
check "a tenant has the driver open" wait_until 5 test -e "/proc/$holder/fd/9"
check_fails "qgpu_sim does not unload under it" modprobe -r qgpu_sim
kill "$holder"
wait "$holder" || true
front_unload

check "qgpu_sim loads again" modprobe qgpu_sim
"$front_bin/qgpu-load" --kernel-us 1e9 --preemption wfi --seconds 0.1 >/dev/null
check_equal "a kernel of 1000 s that can't be cut outlives its tenant" "$(front_value objects zombies)" 1
check "qgpu_sim unloads with it" modprobe -r qgpu_sim

check_fails "0 cards are refused" modprobe qgpu_sim cards=0
check_fails "9 cards are refused" modprobe qgpu_sim cards=9
check "8 cards load" modprobe qgpu_sim cards=8
check "the eighth has a node" test -c /dev/nvidia7
check "and works" "$front_bin/qgpu-load" --card 7 --seconds 0.1
check_fails "a ninth has not" test -e /dev/nvidia8
front_unload

unloads_under_churn() {
	local i
	for ((i = 0; i < 10; i++)); do
		modprobe qgpu_sim cards=2 || return 1
		"$front_bin/qgpu-load" --card 1 --seconds 0.05 >/dev/null || return 1
		wait_until 5 modprobe -r qgpu_sim || return 1
	done
}
check "it loads and unloads ten times around load" unloads_under_churn

# ---- the interface of four releases ----
for version in 525.105.17 535.129.03 550.90.07 580.65.06; do
	check "it loads as $version" modprobe qgpu_sim version=$version
	relay "$front_bin/front_release" "${version%%.*}"
	front_unload
done
done_testing
