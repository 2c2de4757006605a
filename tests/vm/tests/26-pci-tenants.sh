#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# vm: --icount --pci --timeout 600
# 26-pci-tenants.sh: a card on the PCI bus with a driver and tenants on it, and qgpu.ko beside that driver by MMIO and DMA
# of its own: 2:1 by images and by gates, everything as the driver set it after an unload under load, nothing written
# where nothing may be, and whoever comes back is taken up again. 1 ms kernels.
set -euo pipefail
# shellcheck source=../lib.sh
source "$(dirname "$0")/../lib.sh"
# shellcheck source=../front-lib.sh
source "$(dirname "$0")/../front-lib.sh"

front_load pci=1
device=$(grep -l 0x1eb8 /sys/bus/pci/devices/*/device)
device=${device%/device}
judge() { "$front_bin/judge" "$device" "$@"; }
qgpunl() { "$front_bin/qgpunl" "$@"; }
# said WHAT: the kernel's log says it since the last mark.
log_from=1
mark() { log_from=$(($(dmesg | wc -l) + 1)); }
said() { dmesg | tail -n "+$log_from" | grep -q "$1"; }

check_equal "the driver has the card" "$(basename "$(readlink -f "$device/driver")")" qgpu_sim
check "its registers are the driver's" grep -q qgpu_sim /proc/iomem

declare -A pids
start() { # NAME
	"$front_bin/saturate" 1000 $((600 * VM_SLOWER)) 1 >"/run/$1" &
	pids[$1]=$!
}
# two_to_one METHOD [SECONDS]: both tenants are at work.
two_to_one() {
	local part delivered
	check "a is bound" qgpunl bind 0 a pid="${pids[a]}"
	check "b is bound" qgpunl bind 0 b pid="${pids[b]}"
	sleep 1
	over "${2:-5}"
	part=$(calc "100 * ${ran[a]} / (${ran[a]} + ${ran[b]})")
	delivered=$(calc "100 * (${ran[a]} + ${ran[b]}) / $card_ran_ns")
	note "2:1 by $1: $part % of what both ran, together $delivered % of the card"
	check_figure "2:1 within 1 pp over ${2:-5} s by $1" is_within "$part" 66.6667 1
	check_figure "together they get 95 % by $1" is_within "$delivered" 97.5 2.5
}
# As the driver last set it: list in the slot, scheduling, and every channel's instance block and enable bit.
as_the_driver_set_it() {
	local off
	off=$(awk '$3 != $4' "$front_debug/card0/believes")
	check_equal "the slot and $(awk '$1 == "enable"' "$front_debug/card0/believes" | wc -l) channels are as the driver set them" \
		"$off" ""
}
shares_are_kept() { # WHEN
	over 2
	check_figure "the shares are kept $1" is_within "$(calc "100 * ${ran[a]} / (${ran[a]} + ${ran[b]})")" 66.6667 2
}
# What was on the engine or saved there is lost with the power, and who waits for it waits for ever.
restart() {
	local name
	for name in a b; do
		stop $name
		start $name
		check "$name is bound" qgpunl bind 0 $name pid="${pids[$name]}"
	done
	sleep 1
}
# Everybody frozen, every device put to sleep, the card without power, and all of it woken. What the guest says in the end
# goes through a device that does not come back by itself.
freeze() {
	local out status=0
	out=$(basename "$(dirname "$(grep -lx out /sys/bus/virtio/devices/*/mount_tag)")")
	umount /out && echo "$out" >/sys/bus/virtio/drivers/9pnet_virtio/unbind
	echo devices >/sys/power/pm_test
	echo 0 >/sys/module/suspend/parameters/pm_test_delay
	echo freeze >/sys/power/state || status=$?
	echo "$out" >/sys/bus/virtio/drivers/9pnet_virtio/bind
	mount -t 9p -o rw,cache=mmap,trans=virtio,version=9p2000.L,msize=524288 out /out && return $status
}
sleeps() { # METHOD
	if [[ ! -w /sys/power/pm_test ]]; then
		skip "sleep by $1" "this kernel cannot"
		return
	fi
	mark
	check "the machine falls asleep by $1" freeze
	check "the driver has its card for that" said "given back to its driver for sleep"
	check "and no longer" said "taken over again"
	restart
	shares_are_kept "after sleep by $1"
}
state_is() { [[ $(qgpunl cards | cut -d' ' -f2) == "$1" ]]; }
is_lost() { # METHOD
	judge presence 1
	check "a card off the bus is lost by $1" wait_until 5 state_is 2
	sleep 0.1
	judge presence 0
	check "it is back by $1" wait_until 5 state_is 0
	sleep 1 # rings were lost: who waits for one is found by and by
	shares_are_kept "after that by $1"
}
# Without a word: what was in registers is gone, and set anew by the driver as it believes it.
loses_power() { # METHOD
	local i
	for i in 1 2 3; do
		echo 1 >"$front_debug/card0/power_cycle"
		sleep 0.1
	done
	check "a card that was without power is taken up again by $1" state_is 0
	restart
	shares_are_kept "after that by $1"
}
both_run() { # AFTER WHAT; with what slices the driver gave them
	over 0.5
	check "a runs on $1" test "${ran[a]}" -gt 40000000
	check "b runs on $1" test "${ran[b]}" -gt 40000000
}

start a
start b

# ---- looked at, and nothing else ----
check "qgpu loads with readonly=1" modprobe qgpu readonly=1
before=$(judge writes)
survey=/sys/kernel/debug/qgpu/$(basename "$device")
check "the card is surveyed" grep -q "state read" "$survey"
sleep 0.5
check_equal "nothing was written" "$(judge writes)" "$before"
check_equal "nothing is scheduled" "$(qgpunl cards)" ""
both_run "beside a survey"
check "qgpu unloads" modprobe -r qgpu

# ---- by gates, which is what a card on a bus gets ----
mark
check "qgpu loads" modprobe qgpu
check "by gates" said "scheduling runlist 0 by gates"
check "no register is claimed" bash -c "! grep -w qgpu /proc/iomem"
check "plan 2:1" qgpunl plan 0 - replace a:weight=200 b:weight=100
submits=$(front_value totals submits)
two_to_one gates
check_equal "nothing was submitted" "$(front_value totals submits)" "$submits"
# As whenever a program anywhere makes, frees or re-slices something.
echo 30 >"$front_debug/card0/restless_ms"
two_to_one "gates beside a restless driver" 3
check "which submits all the time" test "$(front_value totals submits)" -gt $((submits + 60))
echo 0 >"$front_debug/card0/restless_ms"
sleeps gates
loses_power gates
is_lost gates
check "qgpu unloads under load" modprobe -r qgpu
as_the_driver_set_it
both_run "after gates"

# ---- by images ----
check "qgpu loads with images" modprobe qgpu method=images
check "with a warning" said "beside a driver is for tests"
check "plan 2:1" qgpunl plan 0 - replace a:weight=200 b:weight=100
two_to_one images
check_fails "nobody else submitted" said "somebody else submitted"
echo 1 >"$front_debug/card0/insist"
check "a list of the driver's is noticed" wait_until 2 said "somebody else submitted"
over 1
check_figure "and the shares are kept" is_within "$(calc "100 * ${ran[a]} / (${ran[a]} + ${ran[b]})")" 66.6667 3
echo 100 >"$front_debug/card0/restless_ms"
two_to_one "images beside a restless driver" 3
echo 0 >"$front_debug/card0/restless_ms"
sleeps images
loses_power images
is_lost images
# It goes on and on: then the list that stays is its own.
exec {nothing}<> <(:)
for ((i = 0; i < 400; i++)); do
	echo 1 >"$front_debug/card0/insist"
	read -rt 0.002 -u "$nothing" _ || true
done
check_figure "who submits all the time keeps the slot" wait_until 2 said "by gates from now on"
sleep 0.1
submits=$(front_value totals submits)
shares_are_kept "by gates"
check_equal "nobody submits any more" "$(front_value totals submits)" "$submits"
check "qgpu unloads under load" modprobe -r qgpu
as_the_driver_set_it
both_run "after images"

# ---- a card that is away when it should be given back, or taken ----
check "qgpu loads with images" modprobe qgpu method=images
check "plan 2:1" qgpunl plan 0 - replace a:weight=200 b:weight=100
check "a is bound" qgpunl bind 0 a pid="${pids[a]}"
check "b is bound" qgpunl bind 0 b pid="${pids[b]}"
sleep 1
if [[ -w /sys/power/pm_test ]]; then
	mark
	judge presence 1
	check "the machine falls asleep beside a card that does not answer" freeze
	check "who is in a list that cannot be seen is not known: it stays with its driver" said "stays with its driver"
	judge presence 0
	check "it is taken when it answers" wait_until 5 said "taken over again"
	restart
	shares_are_kept "by who took it late"
fi
if [[ -e /sys/kernel/debug/dma-api ]]; then
	skip "memory that the card may read is kept" "this kernel counts that as a leak, which it is"
else
	mark
	judge presence 1
	check "qgpu unloads from a card that does not answer" modprobe -r qgpu
	check "memory that the card may read is kept" said "that the card may read are never freed"
	judge presence 0
	both_run "on by a list whose owner is gone"
	echo 1 >"$front_debug/card0/insist"
	as_the_driver_set_it
fi
! grep -q '^qgpu ' /proc/modules || modprobe -r qgpu

# ---- somebody whom the driver does not tell of ----
start_hidden() {
	bash -c "echo \$\$ >$front_debug/card0/hidden_pid; exec $front_bin/saturate 1000 $((600 * VM_SLOWER)) 1" >/run/c &
	pids[c]=$!
	wait_until 5 test -s /run/c
}
check "qgpu loads with images" modprobe qgpu method=images
check "plan 2:1" qgpunl plan 0 - replace a:weight=200 b:weight=100
check "a is bound" qgpunl bind 0 a pid="${pids[a]}"
check "b is bound" qgpunl bind 0 b pid="${pids[b]}"
start_hidden || true
over 0.5
check_equal "a list of ours leaves a stranger out" "${ran[c]}" 0
mark
echo 1 >"$front_debug/card0/insist"
check "the driver's list has it" wait_until 2 said "the driver keeps its list: by gates"
sleep 1
shares_are_kept "beside a stranger"
check "and it runs" test "${ran[c]}" -gt 100000000
check "qgpu unloads" modprobe -r qgpu
mark
check "qgpu loads with images" modprobe qgpu method=images
check "a stranger is there already: by gates" said "scheduling runlist 0 by gates"
check "qgpu unloads" modprobe -r qgpu
as_the_driver_set_it
for name in a b c; do stop $name; done
echo 0 >"$front_debug/card0/hidden_pid"
check "nothing of them is left" wait_until 5 front_is_empty

# ---- a card that it may not touch ----
left_alone() { # WHY, AS THE LOG SAYS IT
	local writes
	writes=$(judge writes)
	mark
	modprobe qgpu
	check "left alone: $1" said "$1"
	check_equal "nothing is scheduled then" "$(qgpunl cards)" ""
	check_equal "and nothing is written" "$(judge writes)" "$writes"
	modprobe -r qgpu
}
judge firmware 1
left_alone "firmware on the card runs its scheduler"
judge firmware 0
judge boot0 0x162000a1
left_alone "it is another chip"
judge boot0 0x164000a1
judge presence 1
left_alone "it does not answer"
judge presence 0

# ---- the driver goes first, and comes back ----
check "qgpu is there" modprobe qgpu
check "with the card" test -n "$(qgpunl cards)"
start a
start b
sleep 0.5
judge presence 2
check "a card without power is lost" wait_until 5 state_is 2
judge presence 0 # with nothing in it
sleep 0.2
check "and so it is with power and nothing in it" state_is 2
stop a
stop b
check "its tenants go all the same" wait_until 5 front_is_empty
check "the driver unloads" modprobe -r qgpu_sim
check_equal "its card is gone" "$(qgpunl cards)" ""
mark
check "a driver that says that firmware runs it" modprobe qgpu_sim pci=1 firmware=550.90.07
check "is believed" said "firmware on the card runs its scheduler"
check "it unloads" modprobe -r qgpu_sim
check "the driver is back" modprobe qgpu_sim pci=1
check "plan 2:1" qgpunl plan 0 - replace a:weight=200 b:weight=100
start a
start b
two_to_one "gates of the driver that came back" 3
check "qgpu unloads last but one" modprobe -r qgpu
as_the_driver_set_it
stop a
stop b
front_unload
done_testing
