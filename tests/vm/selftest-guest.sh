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
skips_all) plan_skip_all "nothing to do here" ;;
fails)
	plan 2
	ok "first"
	check "second" false
	;;
fails_quietly) # a "not ok" whose script still exits 0
	plan 1
	echo "not ok 1 - hidden"
	exit 0
	;;
dies)
	ok "first"
	no_such_command
	;;
exits_nonzero)
	plan 1
	ok "first"
	exit 3
	;;
omits_plan)
	ok "first"
	exit 0
	;;
reports_too_few)
	plan 3
	ok "first"
	exit 0
	;;
plans_nothing)
	plan 0
	exit 0
	;;
panics)
	plan 1
	ok "first"
	echo c >/proc/sysrq-trigger
	;;
reboots)
	plan 1
	ok "first"
	echo b >/proc/sysrq-trigger
	sleep 60
	;;
hangs)
	plan 1
	ok "first"
	sleep 100000
	;;
warns)
	plan 1
	ok "first"
	echo "<4>WARNING: CPU: 0 PID: 1 at kernel/selftest.c:1 selftest+0x0/0x0" >/dev/kmsg
	;;
locks_badly)
	plan 1
	ok "first"
	echo "<6>WARNING: possible circular locking dependency detected" >/dev/kmsg
	;;
clears_log)
	plan 1
	ok "first"
	dmesg -C
	;;
esac
done_testing
