#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# vm: --smp2 --timeout 5400
# loads.sh: the module comes and goes a thousand times while tenants work, by images and by gates, at random instants of
# their windows. Nobody stops for it, nothing stays of it. For ./check --soak.
set -euo pipefail
# shellcheck source=../lib.sh
source "$(dirname "$0")/../lib.sh"
# shellcheck source=../front-lib.sh
source "$(dirname "$0")/../front-lib.sh"

ROUNDS=1000
SETTLED=100 # what the kernel keeps for later it has by then

front_load
RANDOM=${QGPU_SEED:-1}
note "repeat with QGPU_SEED=${QGPU_SEED:-1}"
declare -A pids
for name in a b c; do
	"$front_bin/saturate" 300 100000 2 >/dev/null &
	pids[$name]=$!
done
stop_loads() { kill -9 "${pids[@]}" 2>/dev/null || true; }
defer stop_loads

one_round() { # METHOD
	modprobe qgpu method="$1" || return
	"$front_bin/qgpunl" plan 0 - replace a:weight=200 b:weight=100 c:ceiling=200000 || return
	local name
	for name in a b c; do
		"$front_bin/qgpunl" bind 0 $name pid="${pids[$name]}" || return
	done
	sleep "0.0$((RANDOM % 6))$((RANDOM % 10))"
	modprobe -r qgpu
}
everybody_runs() {
	local name
	local -A before
	front_look
	for name in a b c; do before[$name]=${record[$name]}; done
	# Each of three has its slice in far less.
	sleep 0.1
	front_look
	for name in a b c; do ((record[$name] > before[$name])) || return 1; done
}
kept_kb() { awk '/^(Slab|VmallocUsed|KernelStack|Percpu):/ { sum += $2 } END { print sum }' /proc/meminfo; }

methods=(images gates)
settled_kb=0
for ((round = 1; round <= ROUNDS; round++)); do
	one_round "${methods[round % 2]}" >/run/round 2>&1 || break
	((round != SETTLED)) || settled_kb=$(kept_kb)
	((round % 50)) || wait_until 5 everybody_runs || break
done
check_equal "$ROUNDS rounds" "$((round - 1))" "$ROUNDS"
((round > ROUNDS)) || note "$(cat /run/round)"
kept=$(($(kept_kb) - settled_kb))
note "$kept kB more are kept than after $SETTLED rounds"
check "nothing is kept: less than a page a round" test "$kept" -lt $((4 * (ROUNDS - SETTLED)))
check "everybody runs" wait_until 5 everybody_runs
stop_loads
wait 2>/dev/null || true
front_unload
done_testing
