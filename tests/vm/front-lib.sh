# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
# front-lib.sh: sourced after lib.sh by scripts that test the simulated driver: loads qgpu_sim, runs test programs and
# takes their TAP over, and ends with the checks that nothing is left.

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
