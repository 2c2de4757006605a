#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# vm: --smp2 --timeout 480
# 20-module.sh: the module without a card; both orders of loading and unloading, idle and under load; dumps while objects
# come and go. A module that unloads with an object left warns, and a warning fails the run.
set -euo pipefail
# shellcheck source=../lib.sh
source "$(dirname "$0")/../lib.sh"
# shellcheck source=../front-lib.sh
source "$(dirname "$0")/../front-lib.sh"

check "modules are staged" stage_modules "${QGPU_MODULES:?the directory of the built modules}"
front_bin=${QGPU_PROGRAMS:?the directory of the built programs}/bin

is_in_log() { dmesg | grep -q "$1"; }
cards() { "$front_bin/qgpunl" cards; }
has_tsgs() { [[ $("$front_bin/qgpunl" tsgs 0 | wc -l) == "$1" ]]; }
start_loads() {
	loads=()
	for _ in 1 2 3; do
		"$front_bin/saturate" 300 100000 2 >/dev/null &
		loads+=($!)
	done
}
stop_loads() {
	kill -9 "${loads[@]}" 2>/dev/null || true
	wait "${loads[@]}" 2>/dev/null || true
}
kernels() { front_value totals kernels; }
# A busy host may be slow, work that is stuck never goes on.
has_done() { (($(kernels) > $1)); }
goes_on() { wait_until 10 has_done $(($(kernels) + 20)); }

# ---- no card ----
check "qgpu loads on a machine without a card" modprobe qgpu
check "it says so" is_in_log "qgpu: loaded; no card found yet"
check_equal "it lists no card" "$(cards)" ""
check_fails "asking for card 0 is refused" "$front_bin/qgpunl" tenants 0
check "it unloads" modprobe -r qgpu

# ---- qgpu first, the card comes later ----
check "qgpu loads first" modprobe qgpu
check "then the simulator" modprobe qgpu_sim
check_equal "the card is listed" "$(cards | cut -d' ' -f1-4)" "0 0 3 1"
check "the simulator unloads first" modprobe -r qgpu_sim
check_equal "the card is gone" "$(cards)" ""
check "the simulator comes back" modprobe qgpu_sim cards=3
check_equal "with three cards" "$(cards | cut -d' ' -f1 | tr '\n' ' ')" "0 1 2 "
check "the simulator goes again" modprobe -r qgpu_sim
check "qgpu unloads" modprobe -r qgpu

# ---- the card first, under load; qgpu comes and goes ----
check "the simulator loads first" modprobe qgpu_sim
start_loads
check "tenants work without qgpu" goes_on
for round in 1 2 3; do
	check "qgpu takes a busy card over ($round)" modprobe qgpu
	check "it finds the tenants' TSGs ($round)" wait_until 5 has_tsgs 6
	check "work goes on under qgpu ($round)" goes_on
	check "qgpu leaves a busy card ($round)" modprobe -r qgpu
	check "work goes on without it ($round)" goes_on
done

# ---- the same through the bus: one card is taken from the driver and given back ----
check "qgpu loads again" modprobe qgpu
device=$(basename /sys/bus/auxiliary/drivers/qgpu.card/qgpu_sim.card.*)
unbind() { echo "$device" >/sys/bus/auxiliary/drivers/qgpu.card/unbind; }
bind() { echo "$device" >/sys/bus/auxiliary/drivers/qgpu.card/bind; }
check "a busy card is unbound" unbind
check_equal "it is not listed" "$(cards)" ""
check "work goes on" goes_on
check "it is bound again" bind
check "its TSGs are found" wait_until 5 has_tsgs 6
check "work goes on under qgpu again" goes_on
check "qgpu leaves" modprobe -r qgpu

# ---- dumps and plans while tenants come and go ----
check "qgpu loads" modprobe qgpu
churn() {
	local end=$((SECONDS + 6))
	while ((SECONDS < end)); do
		timeout -s KILL 0.2 "$front_bin/saturate" 100 10 4 >/dev/null || true
	done
} 2>/dev/null # bash says who was killed
replan() {
	local end=$((SECONDS + 6)) i=0
	while ((SECONDS < end)); do
		i=$((i + 1))
		"$front_bin/qgpunl" plan 0 - "a:weight=$((i % 9 + 1))" "t$((i % 5)):guarantee=$((i % 100000))" >/dev/null || return 1
		"$front_bin/qgpunl" plan 0 - "t$(((i + 2) % 5))" >/dev/null || return 1
		"$front_bin/qgpunl" plan 0 - "t$(((i + 2) % 5)):remove" >/dev/null || return 1
	done
}
read_all() {
	local end=$((SECONDS + 6))
	while ((SECONDS < end)); do
		"$front_bin/qgpunl" cards >/dev/null && "$front_bin/qgpunl" tenants 0 >/dev/null &&
			"$front_bin/qgpunl" tsgs 0 >/dev/null && "$front_bin/qgpunl" stats 0 >/dev/null || return 1
	done
}
churn &
churning=$!
replan &
replanning=$!
check "dumps are answered all the while" read_all
check "plans are accepted all the while" wait "$replanning"
wait "$churning" || true
check_equal "the card obeyed" "$(cards | cut -d' ' -f2)" 0
check "work goes on" goes_on

# ---- under load, the simulator is in use: it cannot go before the tenants, qgpu can ----
check_fails "the simulator stays while tenants hold it" modprobe -r qgpu_sim
stop_loads
check "nobody is left" wait_until 10 has_tsgs 0
check "the simulator unloads under qgpu" modprobe -r qgpu_sim
check_equal "no card is listed" "$(cards)" ""
check "qgpu unloads" modprobe -r qgpu

# ---- unload while events, dumps and a load are in progress ----
check "the simulator loads" modprobe qgpu_sim
for round in 1 2 3 4; do
	check "qgpu loads ($round)" modprobe qgpu
	start_loads
	"$front_bin/qgpunl" events 2 >/dev/null &
	listener=$!
	sleep 0.3
	stop_loads &
	check "qgpu unloads while its tenants are killed ($round)" wait_until 5 modprobe -r qgpu
	wait
	kill "$listener" 2>/dev/null || true
done
front_unload
done_testing
