#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest.sh: runs the rig on scripts that go wrong in known ways and checks that run.sh says so, in words.
# A rig that passes everything is worse than none. Takes about a minute; the last line is "N passed, N failed".
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
expect 0 'passed .*: 0 tests' skips_all
expect 1 'the script exited with status 1' fails
expect 1 '1 tests failed' fails_quietly
expect 1 'the script exited with status 127' dies
expect 1 'the script exited with status 3' exits_nonzero
expect 1 'no TAP plan line' omits_plan
expect 1 '3 tests were planned, 1 reported' reports_too_few
expect 1 'the plan is empty' plans_nothing
expect 1 'the guest kernel panicked' panics
expect 1 'the guest stopped without saying' reboots
expect 1 'timed out after 8 s' hangs --timeout 8
expect 1 'the kernel log has 1 bad lines, first: .*WARNING' warns
expect 1 'the kernel log has 1 bad lines, first: .*circular locking' locks_badly
expect 1 'the kernel log did not come back whole' clears_log

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
