#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# verdict.sh OUT QEMU_STATUS TIMEOUT_S LOG_MARK [1]: judges what a run of run.sh left in its folder OUT: tap, status,
# dmesg, console, tainted, qemu.log; with 1 a run that ends by rebooting, of which each line of OUT/expected is among
# QEMU's. Prints one line of numbers and exits with 0 if it passed; else why not, a reason a line.
set -euo pipefail

out=$1 qemu_status=$2 timeout_s=$3 log_mark=$4 reboot=${5:-}

PASSED=33 FAILED=35 INIT_FAILED=37 # (code << 1) | 1 of guest.sh's codes; QEMU's own errors exit 1, a panic exits 0
reasons=()
fail() { reasons+=("$1"); }

# Anything the kernel says when it, or a module, is wrong. Case matters: these are its spellings.
BAD_LOG='\b(BUG|WARNING|Oops|KASAN|KCSAN|UBSAN|KFENCE|ODEBUG)\b|[Uu]nable to handle|Kernel panic|general protection'
BAD_LOG+='|Call Trace|soft lockup|hard LOCKUP|blocked for more than|detected stall|detected expedited stall'
BAD_LOG+='|possible (recursive|circular|irq lock)|(circular|recursive) locking|lock inversion|inconsistent lock state'
BAD_LOG+='|suspicious RCU usage|bad unlock balance|held lock freed|lock held (when returning|at task exit)'
BAD_LOG+='|still has locks held|sleeping function called|scheduling while atomic|refcount_t:|list_(add|del) corruption'
BAD_LOG+='|double free|memory leak|new suspected memory leaks|nobody cared|DMA-API: .*(error|leak)|Bad page'
BAD_LOG+='|divide error|invalid opcode|stack guard page|page allocation failure|# *not ok|\] +not ok '
# dmesg is read from the mark on; the console has only warnings and worse, and before the mark there should be none.
bad_lines() {
	{
		[[ ! -e $out/dmesg ]] || awk -v mark="$log_mark" 'found; index($0, mark) { found = 1 }' "$out/dmesg"
		[[ ! -e $out/console ]] || tr -d '\r' <"$out/console"
	} | grep -aE "$BAD_LOG" | awk '!seen[$0]++'
}

case $qemu_status in
"$PASSED") [[ -z $reboot ]] || grep -qaiE '^1\.\.0 *# *skip' "$out/tap" || fail "the script ended without rebooting" ;;
"$FAILED") fail "the script exited with status $(cat "$out/status" 2>/dev/null || echo unknown)" ;;
"$INIT_FAILED") fail "the guest could not set itself up" ;;
124 | 137) fail "timed out after $timeout_s s" ;;
0)
	if grep -qa 'Kernel panic' "$out/console"; then
		fail "the guest kernel panicked"
	elif [[ -n $reboot ]]; then
		expected=$(cat "$out/expected" 2>/dev/null || true)
		[[ -n $expected ]] || fail "the script expects nothing of the card"
		while read -r line; do
			grep -qxF "$line" "$out/qemu.log" || fail "not as expected: $line; but: $(tail -n 1 "$out/qemu.log")"
		done <<<"$expected"
	else
		fail "the guest stopped without saying how the script ended"
	fi
	;;
*) fail "QEMU failed with status $qemu_status: $(head -n 1 "$out/qemu.log")" ;;
esac

plans=$(grep -acE '^1\.\.[0-9]+' "$out/tap" || true)
oks=$(grep -acE '^ok\b' "$out/tap" || true)
not_oks=$(grep -acE '^not ok\b' "$out/tap" || true)
skips=$(grep -aciE '^ok\b.*# *skip' "$out/tap" || true)
planned=$(grep -aoEm1 '^1\.\.[0-9]+' "$out/tap" | cut -c4- || true)
((plans)) || fail "no TAP plan line was printed"
((plans < 2)) || fail "$plans TAP plan lines were printed"
((not_oks == 0)) || fail "$not_oks tests failed"
if ((plans == 1 && oks + not_oks != planned)); then
	fail "$planned tests were planned, $((oks + not_oks)) reported"
fi
if ((plans == 1 && planned == 0)) && ! grep -qaiE '^1\.\.0 *# *skip' "$out/tap"; then
	fail "the plan is empty and gives no reason to skip"
fi

if ((qemu_status == PASSED || qemu_status == FAILED)); then
	grep -qF "$log_mark" "$out/dmesg" 2>/dev/null || fail "the kernel log did not come back whole"
	# bad page 5, died 7, warned 9, soft lockup 14
	tainted=$(cat "$out/tainted" 2>/dev/null || echo 0)
	(((tainted & (1 << 5 | 1 << 7 | 1 << 9 | 1 << 14)) == 0)) || fail "the guest kernel is tainted ($tainted)"
fi
bad=$(bad_lines || true)
[[ -z $bad ]] || fail "the kernel log has $(wc -l <<<"$bad") bad lines, first: $(head -n 20 <<<"$bad")"

if ((${#reasons[@]} == 0)); then
	echo "$oks tests, $skips skipped"
	exit 0
fi
printf '%s\n' "${reasons[@]}"
exit 1
