#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# vm: --icount --timeout 600
# 22-shares.sh: what is asked is what is delivered: ratios of saturating tenants by the card's own record and by the
# tenants' completions, a fixed share alone, a tenant killed in its window. 1 ms kernels.
set -euo pipefail
# shellcheck source=../lib.sh
source "$(dirname "$0")/../lib.sh"
# shellcheck source=../front-lib.sh
source "$(dirname "$0")/../front-lib.sh"

front_load
check "qgpu loads" modprobe qgpu

declare -A pids
start() { # NAME [SLICE_US]
	"$front_bin/saturate" 1000 $((100 * VM_SLOWER)) 1 ${2:+"$2"} >"/run/$1" &
	pids[$1]=$!
	check "$1 is bound" "$front_bin/qgpunl" bind 0 "$1" pid="${pids[$1]}"
}

# look: run times and clock at one instant, both by the card's own record (front_look) and by the ledger (ledger[NAME],
# error[NAME] = what it says it may be off, stats_ns), which has a clock of its own.
declare -A ledger error ids
look() {
	local name tenant ns error_ns rest
	"$front_bin/qgpunl" stats 0 >/run/stats
	front_look
	while read -r tenant ns error_ns rest; do
		[[ $tenant != card ]] || stats_ns=${rest##* }
		for name in "${!ids[@]}"; do
			[[ $tenant != "${ids[$name]}" ]] || ledger[$name]=$ns error[$name]=$error_ns
		done
	done </run/stats
}

# from ... share NAME WITHIN: what part of the time in between it ran, in percent, by the record. The ledger's own
# answer may differ by WITHIN, and must have said that it may. Any number of shares after one look.
from() {
	local id name rest
	while read -r id name rest; do
		ids[$name]=$id
	done < <("$front_bin/qgpunl" tenants 0)
	look
	for name in a b; do
		record_from[$name]=${record[$name]:-0} ledger_from[$name]=${ledger[$name]:-0}
		error_from[$name]=${error[$name]:-0}
	done
	card_from=$card_ns stats_from=$stats_ns
}
declare -A record_from ledger_from error_from
ran() { echo $((record[$1] - record_from[$1])); }
share() {
	local off published
	share=$(calc "100 * $(ran "$1") / ($card_ns - $card_from)")
	off=$(calc "100 * (${ledger[$1]} - ${ledger_from[$1]}) / ($stats_ns - $stats_from) - $share")
	# Errors of samples add up as squares: so that of the difference of two readings.
	published=$(calc "100 * sqrt(${error[$1]}^2 - ${error_from[$1]}^2) / ($stats_ns - $stats_from)")
	note "$1 ran $share % by the card; the ledger is off by $off pp (says up to $published)"
	check_figure "the ledger knows $1's time" is_within "$off" 0 "$2"
	# 0.05: the two are not read at the same instant of a cycle.
	check_figure "it is off by no more than it says" is_within "$off" 0 "$(calc "$published + 0.05")"
}

# A tenant's own count: the last full second it told of, and how many kernels completed in ten seconds from then.
last_second() { awk 'END { print $1 + 0 }' "/run/$1"; }
has_told() { (($(last_second "$1") >= $2)); }
completions() { awk -v from="$2" '$1 == from { a = $2 } $1 == from + 10 { print $2 - a }' "/run/$1"; }

ratio() { # WEIGHT
	local a b since_a since_b by_card by_tenants
	check "plan $1:1" "$front_bin/qgpunl" plan 0 - replace "a:weight=$((100 * $1))" b:weight=100
	start a
	start b
	check "a and b are at work" wait_until 10 has_told b 1
	since_a=$(last_second a) since_b=$(last_second b)
	from
	sleep 10
	look
	share a 0.3
	share b 0.3
	by_card=$(calc "$(ran a) / $(ran b)")
	# Of one alone, which gets all but 0.01 %.
	check_figure "together they get 98.8 %" is_within "$(calc "100 * ($(ran a) + $(ran b)) / ($card_ns - $card_from)")" 99.4 0.6
	check "a has worked for 10 s" wait_until 5 has_told a $((since_a + 10))
	check "b has worked for 10 s" wait_until 5 has_told b $((since_b + 10))
	stop a
	stop b
	a=$(completions a "$since_a") b=$(completions b "$since_b")
	by_tenants=$(calc "$a / $b")
	note "$1:1: by the card $by_card, by completions $by_tenants ($a, $b)"
	check_figure "$1:1 within 1 % by the card's record" is_within "$by_card" "$1" "$(calc "$1 * 0.01")"
	# One kernel of each more or less.
	check_figure "$1:1 within 1 % and a kernel of each by completions" is_within "$by_tenants" "$1" \
		"$(calc "$1 * 0.01 + ($1 + 1) / $b")"
}
for weight in 1 2 3 9; do
	ratio "$weight"
done

# ---- the slices that the tenants ask the driver for count under best-effort only ----
for policy in 0 3; do
	check "plan: policy $policy" "$front_bin/qgpunl" plan 0 - replace policy=$policy a:weight=100 b:weight=100
	start a 6000
	start b 2000
	check "a and b are at work" wait_until 10 has_told b 1
	from
	sleep 5
	look
	wanted=$((policy ? 1 : 3))
	by_card=$(calc "$(ran a) / $(ran b)")
	note "policy $policy, slices of 6 and 2 ms asked of the driver: $by_card"
	check_figure "policy $policy gives $wanted:1" is_within "$by_card" "$wanted" "$(calc "$wanted * 0.02")"
	stop a
	stop b
done

front_has() { [[ $("$front_bin/qgpunl" tsgs 0 | wc -l) == "$1" ]]; }
check "plan: fixed-share, 30 % for a" "$front_bin/qgpunl" plan 0 - replace policy=2 a:guarantee=300000
start a
sleep 1
from
sleep 10
look
share a 0.11 # 0.2 % of its time, and half a window: the two are not read at the same instant
check_figure "fixed-share 30 % alone on the card is 30 +- 0.3 %" is_within "$share" 30 0.3
stop a

# ---- a tenant is killed in its window: the others lose at most a slice ----
check "plan: fixed-share 50:50" "$front_bin/qgpunl" plan 0 - replace policy=2 a:guarantee=500000 b:guarantee=500000
start a
start b
sleep 1
own_slot() { "$front_bin/qgpunl" tsgs 0 | awk -v pid="${pids[a]}" '$4 == pid && $NF > 0 { found = 1 } END { exit !found }'; }
check "a has its window" wait_until 5 own_slot
stop a
from
sleep 10
look
share b 0.15
check_figure "b keeps its share" is_within "$share" 50 1
check "nothing of a is left" wait_until 2 front_has 1
check "back to burst-share" "$front_bin/qgpunl" plan 0 - policy=3
sleep 0.2 # replanned by then
from
sleep 2
look
share b 0.3
check_figure "b alone has the card" is_within "$share" 100 1
stop b

# ---- work that cannot be cut is told of, and the card is none the worse ----
"$front_bin/qgpunl" events 100 >/run/events &
listener=$!
check "somebody listens" wait_until 5 grep -q listening /run/events
check "plan: fixed-share 50:50 again" "$front_bin/qgpunl" plan 0 - policy=2 a:guarantee=500000 b:guarantee=500000
start b
"$front_bin/saturate" 30000 $((100 * VM_SLOWER)) 1 0 0 >/run/a &
pids[a]=$!
check "a, whose kernels take 30 ms, is bound" "$front_bin/qgpunl" bind 0 a pid="${pids[a]}"
sleep 3
told() { awk -v id="$("$front_bin/qgpunl" tenants 0 | awk '$2 == "a" { print $1 }')" '$1 == 8 && $2 == id' /run/events | wc -l; }
note "refused preemptions told of: $(told)"
check_figure "that a was not cut is told, once a second" test "$(told)" -ge 2 -a "$(told)" -le 5
kill "$listener"
stop a
stop b

check_equal "the card obeyed" "$("$front_bin/qgpunl" cards 0 | cut -d' ' -f2)" 0
note "ledger: $("$front_bin/qgpunl" stats 0 | tr '\n' ';')"
check "qgpu unloads" modprobe -r qgpu
front_unload
done_testing
