#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest-guest.sh CASE: a guest script that goes wrong in one way, to see that run.sh notices. Only for selftest.sh.
# "good" is the control: the same script with nothing wrong.
set -euo pipefail
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"

case $1 in
good)
	plan 2
	ok "first"
	skip "second" "no reason"
	;;
fails)
	plan 2
	ok "first"
	check "second" false
	;;
dies)
	ok "first"
	no_such_command
	;;
panics)
	plan 1
	ok "first"
	echo c >/proc/sysrq-trigger
	;;
hangs)
	plan 1
	ok "first"
	sleep 100000
	;;
esac
done_testing
