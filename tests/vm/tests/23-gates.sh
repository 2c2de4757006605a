#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# vm: --icount --timeout 300
# 23-gates.sh: method gates with the real module beside a driver that keeps its list: 2:1, a limit alone, a tenant killed
# while it is held, and channels that all run on after an unload in the middle of it. 1 ms kernels.
set -euo pipefail
# shellcheck source=../lib.sh
source "$(dirname "$0")/../lib.sh"
# shellcheck source=../front-lib.sh
source "$(dirname "$0")/../front-lib.sh"

front_load
check_fails "an unknown method is refused" modprobe qgpu method=lists
check_fails "a hold of 5 ms is refused" modprobe qgpu hold_max_ms=5
check_fails "a hold of 3 s is refused" modprobe qgpu hold_max_ms=3000
check "qgpu loads with method gates" modprobe qgpu method=gates

declare -A pids
start() { # NAME
	"$front_bin/saturate" 1000 $((100 * VM_SLOWER)) 1 >"/run/$1" &
	pids[$1]=$!
	check "$1 is bound" "$front_bin/qgpunl" bind 0 "$1" pid="${pids[$1]}"
}
# No list of qgpu's: the driver submits when its list changes, and nobody else at all.
submits() { front_value totals submits; }

check "plan 2:1" "$front_bin/qgpunl" plan 0 - replace a:weight=200 b:weight=100
start a
start b
sleep 1
before=$(submits)
over 10
check_equal "nothing was submitted" "$(submits)" "$before"
part=$(calc "100 * ${ran[a]} / (${ran[a]} + ${ran[b]})")
delivered=$(calc "100 * (${ran[a]} + ${ran[b]}) / $card_ran_ns")
note "2:1 by gates: $part % of what both ran, together $delivered % of the card"
check_figure "2:1 within 1 pp over 10 s" is_within "$part" 66.6667 1
check_figure "together they get 95 %" is_within "$delivered" 97.5 2.5

# ---- unloaded under load: whoever is held runs on, by the driver's list ----
for round in 1; do
	check "qgpu unloads in the middle ($round)" modprobe -r qgpu
	over 0.5
	check "a runs on" test "${ran[a]}" -gt 150000000
	check "b runs on" test "${ran[b]}" -gt 150000000
	check "qgpu is back ($round)" modprobe qgpu method=gates
	sleep 0.$round
done

# ---- a limit, alone ----
stop b
check "plan: 30 % for a" "$front_bin/qgpunl" plan 0 - replace policy=3 a:guarantee=300000:ceiling=300000 c:weight=100
check "a is bound" "$front_bin/qgpunl" bind 0 a pid="${pids[a]}"
sleep 1
over 3
share=$(calc "100 * ${ran[a]} / $card_ran_ns")
note "30 % alone by gates: $share %"
check_figure "30 % alone is 30 %" is_within "$share" 30 0.5

# ---- killed while it is held: freed at once, and nobody else loses ----
start c
sleep 1
stop a
over 2
share=$(calc "100 * ${ran[c]} / $card_ran_ns")
check_figure "c has the card" is_within "$share" 100 1
stop c
check "qgpu unloads" modprobe -r qgpu
front_unload
done_testing
