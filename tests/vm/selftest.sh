#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest.sh: runs the rig on scripts that go wrong in known ways and checks that run.sh says so, in words.
# A rig that passes everything is worse than none. The last line is "N passed, N failed".
set -euo pipefail

RIG=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/qgpu-selftest.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0

verdict() {
	if [[ $1 == pass ]]; then
		passed=$((passed + 1))
		echo "PASS $2"
	else
		failed=$((failed + 1))
		echo "FAIL $2: $3"
		sed 's/^/    /' "$scratch/log"
	fi
}

# expect STATUS SENTENCE CASE [options...]: run.sh must exit with STATUS and print SENTENCE (a pattern of grep -E).
expect() {
	local wanted=$1 sentence=$2 case=$3 status=0
	shift 3
	"$RIG/run.sh" --out "$scratch/out" --timeout 60 "$@" "$RIG/selftest-guest.sh" "$case" >"$scratch/log" 2>&1 || status=$?
	if ((status != wanted)); then
		verdict fail "$case" "exit status $status, wanted $wanted"
	elif ! grep -qE "^run.sh: .*$sentence" "$scratch/log"; then
		verdict fail "$case" "no sentence like '$sentence'"
	else
		verdict pass "$case"
	fi
}

expect 0 'passed .*: 2 tests, 1 skipped' good
cp -r "$scratch/out" "$scratch/good"
expect 1 'the script exited with status 1' fails
expect 1 'the script exited with status 127' dies
expect 1 'the guest kernel panicked' panics
expect 1 'timed out after 8 s' hangs --timeout 8

# What the good run left, with one thing changed: judged without another VM.
GOOD=33 BAD=35 MARK="qgpu-vm: script starts"
judge() { # STATUS SENTENCE CASE QEMU_STATUS [REBOOT]: on $scratch/out
	local wanted=$1 sentence=$2 case=$3 status=0
	"$RIG/verdict.sh" "$scratch/out" "$4" 60 "$MARK" "${5:-}" >"$scratch/log" 2>&1 || status=$?
	if ((status == wanted)) && grep -qE "^$sentence" "$scratch/log"; then
		verdict pass "$case"
	else
		verdict fail "$case" "exit status $status, wanted $wanted and a sentence like '$sentence'"
	fi
}
left() { # FILE TEXT: the good run, but FILE holds TEXT
	rm -rf "$scratch/out"
	cp -r "$scratch/good" "$scratch/out"
	[[ $# == 0 ]] || printf '%b' "$2" >"$scratch/out/$1"
}
logged() { # LINE: the good run, and the kernel said LINE
	left
	echo "$1" >>"$scratch/out/dmesg"
}

left && judge 0 '2 tests, 1 skipped' "the good run, judged again" $GOOD
left tap '1..0 # SKIP nothing to do here\n' && judge 0 '0 tests' skips_all $GOOD
left tap '1..1\nnot ok 1 - hidden\n' && judge 1 '1 tests failed' fails_quietly $GOOD
left status '3\n' && judge 1 'the script exited with status 3' exits_nonzero $BAD
left tap 'ok 1 - first\n' && judge 1 'no TAP plan line' omits_plan $GOOD
left tap '1..3\nok 1 - first\n' && judge 1 '3 tests were planned, 1 reported' reports_too_few $GOOD
left tap '1..0\n' && judge 1 'the plan is empty' plans_nothing $GOOD
left tap '1..1\n1..1\nok 1 - first\n' && judge 1 '2 TAP plan lines' plans_twice $GOOD
left && judge 1 'the guest stopped without saying' reboots 0
left && judge 1 'the script ended without rebooting' stays_up $GOOD 1
left && judge 1 'the script expects nothing' expects_nothing 0 1
left expected 'tu104: left with nobody\n' && judge 1 'not as expected: tu104: left with nobody' left_otherwise 0 1
left expected 'tu104: left\n' && echo "tu104: left" >>"$scratch/out/qemu.log" && judge 0 '2 tests' reboots_well 0 1
left && judge 1 'the guest could not set itself up' no_root 37
left tainted '512\n' && judge 1 'the guest kernel is tainted' taints $GOOD
logged 'WARNING: CPU: 0 PID: 1 at kernel/selftest.c:1 selftest+0x0/0x0' &&
	judge 1 'the kernel log has 1 bad lines, first: .*WARNING' warns $GOOD
logged 'WARNING: possible circular locking dependency detected' &&
	judge 1 'the kernel log has 1 bad lines, first: .*circular locking' locks_badly $GOOD
logged 'BUG: KASAN: slab-out-of-bounds in selftest' &&
	judge 1 'the kernel log has 1 bad lines, first: .*KASAN' writes_beyond $GOOD
left dmesg 'nothing\n' && judge 1 'the kernel log did not come back whole' clears_log $GOOD
rm -rf "$scratch/out"

# QEMU that does not start must not look like a pass: its own error status is 1.
status=0
"$RIG/run.sh" --out "$scratch/out" --mem 1 "$RIG/selftest-guest.sh" good >"$scratch/log" 2>&1 || status=$?
if ((status == 1)) && grep -qE '^run.sh: FAILED' "$scratch/log"; then
	verdict pass "a VM that cannot start"
else
	verdict fail "a VM that cannot start" "exit status $status"
fi

echo "$passed passed, $failed failed"
((failed == 0))
