# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
# front-lib.sh: sourced after lib.sh by scripts that test the simulated driver: loads qgpu_sim, runs test programs and
# takes their TAP over, measures tenants by the card's record, and ends with the checks that nothing is left.

front_debug=/sys/kernel/debug/qgpu_sim

# front_load [cards=N...]: stage both modules and load the simulator.
front_load() {
	check "modules are staged" stage_modules "${QGPU_MODULES:?the directory of the built modules}"
	check "qgpu_sim loads" modprobe qgpu_sim "$@"
	front_bin=${QGPU_PROGRAMS:?the directory of the built programs}/bin
}

# relay PROGRAM [args...]: its TAP lines become ours; notes pass; one more test that it says what it exits with.
relay() {
	local line status failed_before=$tests_failed
	local -a lines
	readarray -t lines < <(status=0; "$@" 2>&1 || status=$?; echo "status $status")
	for line in "${lines[@]}"; do
		case $line in
		"ok "*) ok "${line#ok * - }" ;;
		"not ok "*) not_ok "${line#not ok * - }" ;;
		"status "*) status=${line#status } ;;
		"#"*) echo "$line" ;;
		*) note "$line" ;;
		esac
	done
	if ((status == 0 || (status == 1 && tests_failed > failed_before))); then
		ok "$(basename "$1") ran to its end"
	else
		not_ok "$(basename "$1") ran to its end" "exit status $status"
	fi
}

# front_value FILE NAME: a number from debugfs, of card 0.
front_value() {
	awk -v name="$2" '$1 == name { print $2 }' "$front_debug/card0/$1"
}

front_is_empty() {
	awk '$2 != 0 { left = 1 } END { exit left }' "$front_debug/card0/objects"
}

# front_look: record[NAME] for each of pids[NAME], and card_ns, at one instant by the card's own record; without starting
# a process, which takes milliseconds.
declare -A record
front_look() {
	local lines line name
	mapfile -t lines <"$front_debug/card0/tsgs"
	for line in "${lines[@]}"; do
		for name in "${!pids[@]}"; do
			[[ $line != *" pid ${pids[$name]} "* ]] || record[$name]=${line##* }
		done
	done
	mapfile -t lines <"$front_debug/card0/totals"
	# shellcheck disable=SC2034 # for who calls
	card_ns=${lines[0]#time_ns }
}

# over SECONDS: ran[NAME] for each of pids[NAME] in that time, and card_ran_ns, by the card's own record.
declare -A ran
over() {
	local name since
	local -A from
	front_look
	since=$card_ns
	for name in "${!pids[@]}"; do from[$name]=${record[$name]:-0}; done
	sleep "$1"
	front_look
	# shellcheck disable=SC2034 # for who calls
	card_ran_ns=$((card_ns - since))
	for name in "${!pids[@]}"; do ran[$name]=$((${record[$name]:-0} - from[$name])); done
}

# stop NAME: kill pids[NAME].
stop() {
	kill -9 "${pids[$1]}"
	wait "${pids[$1]}" 2>/dev/null || true
	unset "pids[$1]"
}

calc() { awk "BEGIN { printf \"%.6f\", $* }"; }
is_within() { # VALUE WANTED TOLERANCE
	[[ $1 =~ ^-?[0-9.]+$ ]] || return # of nothing at all
	awk -v v="$1" -v w="$2" -v t="$3" 'BEGIN { d = v - w; exit !(d <= t && d >= -t) }'
}

# front_unload: nothing may be left of anybody, and the modules go.
front_unload() {
	if wait_until 5 front_is_empty; then
		ok "no object is left"
	else
		not_ok "no object is left" "$(cat "$front_debug/card0/objects")"
	fi
	check_equal "the model saw no protocol error" "$(front_value totals protocol_errors)" 0
	check "qgpu_sim unloads" modprobe -r qgpu_sim
	check_fails "its device nodes are gone" test -e /dev/nvidiactl
}
