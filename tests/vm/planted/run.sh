#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# run.sh DIRECTORY: builds planted.c there for the kernel of QGPU_KERNEL, plants each bug in a VM of its own and checks that
# the verdict names it. The last line is "N passed, N failed".
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
directory=${1:?usage: run.sh DIRECTORY}
mkdir -p "$directory"
directory=$(realpath "$directory")
eval "$("$here/../kernel.sh")"

cp "$here/planted.c" "$directory/"
echo "obj-m += planted.o" >"$directory/Kbuild"
make -s -C "$KDIR" M="$directory" modules >"$directory/build.log" 2>&1 || { cat "$directory/build.log" >&2 && exit 2; }

passed=0 failed=0
finds() { # BUG SENTENCE
	local status=0
	"$here/../run.sh" --out "$directory/out" "$here/guest.sh" "$directory" "$1" >"$directory/log" 2>&1 || status=$?
	if ((status == 1)) && grep -qE "^run.sh: FAILED .*the kernel log has .*$2" "$directory/log"; then
		passed=$((passed + 1))
		echo "PASS $1"
	else
		failed=$((failed + 1))
		echo "FAIL $1: exit status $status, wanted 1 and '$2'"
		sed 's/^/    /' "$directory/log"
	fi
}
finds write-beyond 'KASAN: slab-out-of-bounds'
finds use-freed 'KASAN: slab-use-after-free|KASAN: use-after-free'
finds index 'UBSAN: array-index-out-of-bounds'
finds shift 'UBSAN: shift-out-of-bounds'
finds lock-both-ways 'possible circular locking|circular locking dependency'
finds sleep-in-atomic 'sleeping function called|scheduling while atomic'
finds leak 'new suspected memory leaks'
# And a module without one is clean.
status=0
"$here/../run.sh" --out "$directory/out" "$here/guest.sh" "$directory" none >"$directory/log" 2>&1 || status=$?
if ((status == 0)); then passed=$((passed + 1)) && echo "PASS none"; else failed=$((failed + 1)) && cat "$directory/log"; fi

echo "$passed passed, $failed failed"
((failed == 0))
