#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# vm: --smp2 --pci --timeout 480
# 25-pci.sh: a card on the PCI bus: found, surveyed by reading alone, left as it was; then with a driver, while tenants
# come and are killed on it and qgpu comes and goes, on two CPUs. Registers are the chip model's.
set -euo pipefail
# shellcheck source=../lib.sh
source "$(dirname "$0")/../lib.sh"
# shellcheck source=../front-lib.sh
source "$(dirname "$0")/../front-lib.sh"

check "modules are staged" stage_modules "${QGPU_MODULES:?the directory of the built modules}"
qgpuctl=${QGPU_PROGRAMS:?the directory of the built programs}/bin/qgpuctl
device=$(grep -l 0x1eb8 /sys/bus/pci/devices/*/device)
device=${device%/device}
address=${device##*/}
survey=/sys/kernel/debug/qgpu/$address
mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
state() { sed -n 's/^state //p' "$survey"; }
register() { awk -v offset="$1" '$1 == offset { print $2 }' "$survey"; }

check "qgpu loads" modprobe qgpu
check "the card has a survey" test -f "$survey"
check_equal "which is root's" "$(stat -c %a "$survey")" 400
check_equal "its ids" "$(sed -n 's/^id //p' "$survey")" "10de:1eb8 10de:12a2"
check_equal "nobody has it" "$(sed -n 's/^driver //p' "$survey")" -

# ---- enabled, as by a driver ----
echo 1 >"$device/enable"
check_equal "it is read" "$(state)" read
check_equal "PMC_BOOT_0 is a TU104's" "$(register 000000 | cut -c1-3)" 164
check_equal "PMC_BOOT_42 too" "$((0x$(register 000a00) >> 20 & 0x1ff))" $((0x164))
check_equal "12 PBDMAs" "$((0x$(register 002004) & 0xff))" 12
check_equal "4096 channels" "$((0x$(register 002008)))" 4096
check_equal "64 words of its engine table" "$(awk '$1 >= "022700" && $1 <= "0227fc"' "$survey" | wc -l)" 64
check_equal "no list is in a slot" "$(awk '$1 >= "002b00" && $1 < "002bb0" && $2 != "00000000"' "$survey")" ""
before=$(grep -v '^0094' "$survey")
check_equal "reading changes nothing" "$(grep -v '^0094' "$survey")" "$before"
check "its clock runs" test "$(register 009400)" != "$(sleep 0.01 && register 009400)"
check "nobody holds it" bash -c "! grep -q qgpu /proc/iomem"

report=$("$qgpuctl" survey)
has() { grep -q "$1" <<<"$report"; }
check "qgpuctl tells what it is" has '"chip": "0x164"'
check "and that it is known" has '"supported": true'
check "with its graphics engine" has '"type": "graphics"'

# ---- not enabled ----
printf '\0\0' | dd of="$device/config" bs=1 seek=4 conv=notrunc status=none
check_equal "then it is left alone" "$(state)" "not enabled: no driver has it"
check_equal "and no register is read" "$(grep -c '^0' "$survey" || true)" 0

# ---- gone, and again ----
for _ in 1 2 3 4 5; do
	modprobe -r qgpu
	modprobe qgpu
done
check "it comes and goes" test -f "$survey"
check "qgpu unloads" modprobe -r qgpu

# ---- with a driver, and tenants that are killed in the middle of it ----
echo 0 >"$device/enable"
front_load pci=1
come_and_go() {
	local i
	for ((i = 0; i < 10; i++)); do
		timeout -s KILL "0.$((i % 4 + 1))" "$front_bin/saturate" 500 9 2 || true
	done
}
come_and_go >/dev/null 2>&1 &
first=$!
come_and_go >/dev/null 2>&1 &
second=$!
loads() {
	local method
	for method in gates images gates images; do
		modprobe qgpu method=$method || return 1
		sleep 0.4
		modprobe -r qgpu || return 1
	done
}
check "qgpu comes and goes beside them" loads
check "and is there" modprobe qgpu method=images
wait "$first" "$second"
has_tsgs() { [[ $("$front_bin/qgpunl" tsgs 0 | wc -l) == "$1" ]]; }
check "their TSGs are gone for it, too" wait_until 5 has_tsgs 0
others=()
for _ in 1 2; do
	"$front_bin/saturate" 500 600 2 >/dev/null &
	others+=($!)
done
check "others came" wait_until 10 has_tsgs 4
check "qgpu unloads" modprobe -r qgpu
believes=$(<"$front_debug/card0/believes")
check_equal "with four channels" "$(grep -c '^enable ' <<<"$believes")" 4
check_equal "all is as the driver set it" "$(awk '$3 != $4' <<<"$believes")" ""
kill -9 "${others[@]}"
wait 2>/dev/null || true

# ---- its page tables ----
charge=/sys/fs/cgroup/front-tables
check "there is a memory controller" sh -c "echo +memory >/sys/fs/cgroup/cgroup.subtree_control && mkdir $charge"
relay "$front_bin/front_tables" "$charge"

# ---- taken out, while somebody has it ----
check "qgpu is back" modprobe qgpu
"$front_bin/saturate" 1000 60 >/run/tenant &
tenant=$!
check "somebody has the card" wait_until 5 test -s /run/tenant
(echo 1 >"$device/remove") &
taken=$!
is_refused() { ! (exec 9<>/dev/nvidia0); }
check "it goes for everybody else" wait_until 5 is_refused
check "it stays for who has it" test -c /dev/nvidia0
kill -9 "$tenant"
check "then it goes" wait "$taken"
check_fails "and its node" test -e /dev/nvidia0
check_equal "nothing is scheduled" "$("$front_bin/qgpunl" cards)" ""
check_equal "a card that was taken out is not read" "$(state)" "taken out"
check "the driver unloads" modprobe -r qgpu_sim
check "qgpu unloads" modprobe -r qgpu
check_fails "nothing is left" test -e /sys/kernel/debug/qgpu
check_fails "and a survey says what is missing" "$qgpuctl" survey
done_testing
