# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
# lib.sh: sourced by the scripts that run.sh runs in the guest: TAP, clean-up, staging of modules and files.
# A script sources it, calls plan N or ends with done_testing, and registers each clean-up where it creates the thing.
# Every test line goes through here, so that numbers and the exit status are always right.

# How many times longer everything takes than on the stock kernel, as run.sh says it.
: "${VM_SLOWER:=1}"

tests_run=0
tests_failed=0
plan_printed=
deferred=()

# plan N: says how many tests will be reported. Without it, done_testing prints the plan.
plan() {
	echo "1..$1"
	plan_printed=1
}

# plan_skip_all REASON: nothing here can be tested; ends the script as passed.
plan_skip_all() {
	echo "1..0 # SKIP $1"
	plan_printed=1
	exit 0
}

ok() {
	tests_run=$((tests_run + 1))
	echo "ok $tests_run - $1"
}

# not_ok NAME [REASON]
not_ok() {
	tests_run=$((tests_run + 1))
	tests_failed=$((tests_failed + 1))
	echo "not ok $tests_run - $1"
	[[ -z ${2:-} ]] || note "$2"
}

# skip NAME REASON: counts as a reported test.
skip() {
	tests_run=$((tests_run + 1))
	echo "ok $tests_run - $1 # SKIP $2"
}

# note TEXT: a TAP comment, also for several lines.
note() {
	sed 's/^/# /' <<<"$1"
}

# check NAME CMD...: one test that passes if CMD succeeds; its output is shown only if it fails. CMD runs in this
# shell, so it may set variables, but it must not rely on set -e. Always returns 0: a failed test does not end a script.
check() {
	lib_check not_ok "$@"
}

# check_figure NAME CMD...: as check, of a figure of time: how exact, how fast, how often. On a kernel whose own work
# takes longer (VM_SLOWER) CMD runs all the same, but what it fails by is the kernel's doing: then it counts as skipped.
check_figure() {
	if ((VM_SLOWER == 1)); then
		lib_check not_ok "$@"
	else
		local VM_SLOWER=1 # what CMD waits for is a figure, too
		lib_check lib_not_judged "$@"
	fi
}
lib_not_judged() { # NAME REASON
	skip "$1" "figures of time are judged on the stock kernel"
	note "$2"
}

lib_check() { # WHEN_FAILED NAME CMD...
	local lib_when_failed=$1 lib_name=$2 lib_output=/run/check.$BASHPID lib_status=0
	shift 2
	"$@" >"$lib_output" 2>&1 </dev/null || lib_status=$?
	if ((lib_status == 0)); then
		ok "$lib_name"
	else
		"$lib_when_failed" "$lib_name" "'$*' exited with status $lib_status"
		sed 's/^/# /' "$lib_output"
	fi
	rm -f "$lib_output"
}

# check_fails NAME CMD...: passes if CMD fails by itself (not by a signal, and not because it was not found).
check_fails() {
	local lib_name=$1 lib_output=/run/check.$BASHPID lib_status=0
	shift
	"$@" >"$lib_output" 2>&1 </dev/null || lib_status=$?
	if ((lib_status > 0 && lib_status < 126)); then
		ok "$lib_name"
	else
		not_ok "$lib_name" "'$*' exited with status $lib_status, expected a failure"
		sed 's/^/# /' "$lib_output"
	fi
	rm -f "$lib_output"
}

# check_equal NAME GOT WANTED
check_equal() {
	if [[ $2 == "$3" ]]; then
		ok "$1"
	else
		not_ok "$1" "got '$2', wanted '$3'"
	fi
}

# defer CMD...: registers a clean-up, to be called right after the thing to clean up was created.
defer() {
	deferred+=("$(printf '%q ' "$@")")
}

# run_deferred: undoes in reverse order. Runs at exit; call it earlier to test that nothing is left.
run_deferred() {
	local command
	while ((${#deferred[@]})); do
		command=${deferred[-1]}
		unset 'deferred[-1]'
		eval "$command" || note "clean-up failed: $command"
	done
}

# done_testing: ends the script; fails if a test failed.
done_testing() {
	[[ -n $plan_printed ]] || plan "$tests_run"
	((tests_failed == 0)) || exit 1
	exit 0
}

lib_on_exit() {
	local status=$?
	set +e
	run_deferred
	exit "$status"
}
trap lib_on_exit EXIT

# wait_until SECONDS CMD...: polls until CMD succeeds; fails after SECONDS of guest time, more where the kernel is slower.
wait_until() {
	local deadline=$((${EPOCHREALTIME/./} + $1 * 1000000 * VM_SLOWER))
	shift
	until "$@"; do
		((${EPOCHREALTIME/./} < deadline)) || return 1
		sleep 0.02
	done
}

# stage_modules DIR|FILE.ko|NAME...: makes a module tree in memory from our modules (the .ko files below DIR) and the
# stock modules NAME, each with the stock modules it depends on, and puts it in place of /lib/modules/$(uname -r), so
# that modprobe, depmod aliases and the kernel's own autoload find them. modprobe -d "$STAGED_MODULES" works too.
# May be called again: it adds. What is built into the stock kernel (the auxiliary bus is) needs no file.
STAGED_MODULES=/run/modules
stage_modules() {
	local version stock tree item ko name steps depends_on missing=()
	version=$(uname -r)
	stock=$VM_KROOT/lib/modules/$version
	tree=$STAGED_MODULES/lib/modules/$version
	mkdir -p "$tree/updates"
	cp "$stock"/modules.{builtin,builtin.modinfo,order} "$tree/"

	local wanted=() ours=()
	for item in "$@"; do
		if [[ -d $item ]]; then
			readarray -t -O "${#ours[@]}" ours < <(find "$item" -name '*.ko' | sort)
		elif [[ $item == *.ko ]]; then
			ours+=("$item")
		else
			wanted+=("$item")
		fi
	done
	for ko in ${ours[@]+"${ours[@]}"}; do
		cp "$ko" "$tree/updates/" || return 1
	done
	for ko in ${ours[@]+"${ours[@]}"}; do
		IFS=, read -ra depends_on < <(modinfo -F depends "$ko" && echo)
		for name in ${depends_on[@]+"${depends_on[@]}"}; do
			# Our own modules depend on each other under either spelling of a dash.
			[[ -n $name && ! -e $tree/updates/$name.ko && ! -e $tree/updates/${name//_/-}.ko ]] && wanted+=("$name")
		done
	done
	for name in ${wanted[@]+"${wanted[@]}"}; do
		if ! steps=$(modprobe -d "$VM_KROOT" -S "$version" --show-depends "$name" 2>/dev/null); then
			missing+=("$name")
			continue
		fi
		# Each step is "insmod PATH [options]" or "builtin NAME".
		while read -r item ko _; do
			[[ $item == insmod ]] || continue
			mkdir -p "$tree/kernel"
			cp "$ko" "$tree/kernel/"
		done <<<"$steps"
	done
	if ((${#missing[@]})); then
		note "stage_modules: no stock module ${missing[*]}"
		return 1
	fi
	depmod -b "$STAGED_MODULES" "$version" || return 1
	if ! mountpoint -q "/lib/modules/$version"; then
		mkdir -p "/lib/modules/$version"
		mount --bind "$tree" "/lib/modules/$version"
	fi
}
