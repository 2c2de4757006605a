#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# vm: --icount --pci --reboot --timeout 120
# 27-reboot.sh: a reboot in the middle of work leaves a card on the PCI bus as its driver believes it: nobody is left
# held, and its list is in the slot. What the card says at the end is compared outside of the guest (run.sh).
set -euo pipefail
# shellcheck source=../lib.sh
source "$(dirname "$0")/../lib.sh"
# shellcheck source=../front-lib.sh
source "$(dirname "$0")/../front-lib.sh"

plan 7
front_load pci=1
check "qgpu loads, by gates" modprobe qgpu
check "plan 2:1" "$front_bin/qgpunl" plan 0 - replace a:weight=200 b:weight=100
for name in a b; do
	"$front_bin/saturate" 1000 600 1 >/run/$name &
	check "$name is bound" "$front_bin/qgpunl" bind 0 $name pid=$!
done
sleep 1
# The one whose turn it is not is closed: two channels of two are enabled only if they are given back.
one_is_held() { awk '$1 == "enable" && $3 != $4' "$front_debug/card0/believes" | grep -q .; }
check "somebody is held" wait_until 2 one_is_held
awk '{ wanted[$1] = $3 } $1 == "enable" { enabled += $3 }
	END { printf "tu104: left with base %s%s submit %s sched_disable %s enabled %d\n",
		substr(wanted["base_hi"], 7), wanted["base_lo"], wanted["submit"], wanted["sched_disable"], enabled }' \
	"$front_debug/card0/believes" >/out/expected
sync
wait_until 2 one_is_held
busybox reboot -f
