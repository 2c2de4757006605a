#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# vm: --timeout 300
# 30-daemon.sh: qgpud and qgpuctl over the real module: a configuration reaches the card and the tenants, a restart adopts,
# bad input changes nothing, the module may go and come under a living daemon. Asserts no times and no shares.
set -euo pipefail
# shellcheck source=../lib.sh
source "$(dirname "$0")/../lib.sh"
# shellcheck source=../front-lib.sh
source "$(dirname "$0")/../front-lib.sh"

front_load cards=2
[[ -x $front_bin/qgpud ]] || { note "no qgpud in $QGPU_PROGRAMS/bin"; exit 1; }
PATH=$front_bin:$PATH
mkdir -p /run/d /var/lib/qgpu
config=/run/d/qgpud.toml

two_to_one() {
	cat >"$config" <<-END
		[daemon]
		state = "/run/d/state.json"
		[[card]]
		match = 0
		[tenant.a]
		weight = 200
		[tenant.b]
		weight = ${1:-100}
	END
}
daemon_start() {
	qgpud --foreground -c "$config" >>/run/d/log 2>&1 &
	daemon=$!
}
daemon_kill() {
	kill "-$1" "$daemon"
	wait "$daemon" 2>/dev/null || true
}
answers() { qgpuctl status --json >/run/d/status; }
# What the module says, not the daemon.
generation() { qgpunl cards | awk -v card="$1" '$1 == card { print $4 }'; }
policy() { qgpunl cards | awk '$1 == 0 { print $3 }'; }
weight() { qgpunl tenants 0 | awk -v name="$1" '$2 == name { print $3 }'; }
tsgs() { qgpunl tenants 0 | awk -v name="$1" '$2 == name { print $NF }'; }
weight_is() { [[ $(weight "$1") == "$2" ]]; }
logged() { grep -q -- "$1" /run/d/log; }
exits_with() { # CODE CMD...
	local wanted=$1 status=0
	shift
	"$@" || status=$?
	((status == wanted)) || { echo "exit status $status"; return 1; }
}

two_to_one
# ---- without the module ----
daemon_start
check "qgpud runs without the module" wait_until 10 answers
check "and says once what it waits for" logged "module qgpu is not loaded"
check "run fails closed without the module" exits_with 125 qgpuctl run --tenant a -- touch /run/d/never
check_fails "its command was not started" test -e /run/d/never

# ---- a configuration on the card ----
check "qgpu loads" modprobe qgpu
check "the plan is on the card soon after" wait_until 10 weight_is a 200
check_equal "b has its weight" "$(weight b)" 100
check_equal "only the named card is touched" "$(generation 1)" 1
note "$(qgpuctl status)"

# ---- a restart adopts ----
before=$(generation 0)
for signal in KILL TERM KILL; do
	daemon_kill "$signal"
	check_equal "SIG$signal changes nothing on the card" "$(generation 0)" "$before"
	daemon_start
	check "qgpud is back after SIG$signal" wait_until 10 answers
done
check_equal "a restart sends no plan" "$(generation 0)" "$before"
check_fails "a second qgpud does not start" qgpud --foreground -c "$config"
check "read-only verbs work with the daemon dead" qgpuctl --socket /nowhere tenant list

# ---- run ----
check "run starts a command in the tenant's cgroup" \
	test "$(qgpuctl run --tenant a -- grep -c '^0::/qgpu/a$' /proc/self/cgroup)" = 1
qgpuctl run --tenant a -- "$front_bin/saturate" 1000 100 >/run/d/load &
load=$!
owns_work() { [[ $(tsgs "$1") == 1 ]]; }
check "its work on the card belongs to the tenant" wait_until 10 owns_work a
check "the command's own exit code comes through" exits_with 7 qgpuctl run --tenant b -- sh -c 'exit 7'
check "a command that does not exist is 127" exits_with 127 qgpuctl run --tenant b -- /no/such/command
check "an unknown tenant is not started" exits_with 125 qgpuctl run --tenant x -- true

# ---- changes ----
check "set is live" qgpuctl tenant set a --weight 300
check_equal "on the card" "$(weight a)" 300
before=$(generation 0)
check "dry run says yes" qgpuctl tenant set a --weight 400 --dry-run
check_equal "and changes nothing" "$(generation 0)" "$before"
check "a card that the configuration does not name is left alone" exits_with 6 \
	qgpuctl tenant set a --guarantee 60 --card 1
check "guarantees up to a whole card are taken" qgpuctl tenant set a --guarantee 60
check "over a whole card they are refused" exits_with 3 qgpuctl tenant set b --guarantee 40.1
check "zero weight is refused" exits_with 3 qgpuctl tenant set a --weight 0
check "equal-share would be taken" qgpuctl policy 0 equal-share --dry-run
check "fixed-share without a guarantee is refused" exits_with 3 qgpuctl policy 0 fixed-share
check "unprivileged users change nothing" exits_with 4 \
	setpriv --reuid 65534 --regid 65534 --clear-groups qgpuctl tenant set a --weight 1
check_equal "refusals left the weight" "$(weight a)" 300
daemon_kill KILL
daemon_start
check "qgpud is back" wait_until 10 answers
check_equal "the edit survived" "$(weight a)" 300
check "reset goes back to the file" qgpuctl tenant reset a
check_equal "on the card again" "$(weight a)" 200
check "policy switches live" qgpuctl policy 0 best-effort
check_equal "the card has it" "$(policy)" 0
check "and back" qgpuctl policy 0 burst-share

# ---- stale and foreign plans ----
check_equal "a stale generation is refused by name" "$(qgpunl plan 0 1 a:weight=5 2>&1 | cut -d' ' -f1)" ESTALE
check "somebody else replaces the plan" qgpunl plan 0 - a:weight=5
check "qgpud puts it right" wait_until 20 weight_is a 200

# ---- reload ----
two_to_one 50
kill -HUP "$daemon"
check "a good file is in force after SIGHUP" wait_until 10 weight_is b 50
before=$(generation 0)
sed -i 's/weight = 50/weight = 0/' "$config"
kill -HUP "$daemon"
check "a bad file is refused with its line" wait_until 10 logged "$config:8: tenant.b.weight: is 0"
check_equal "and changes nothing" "$(generation 0)" "$before"
check_fails "--check refuses it too" qgpud --check -c "$config"
two_to_one

# ---- a damaged state ----
daemon_kill TERM
echo rubbish >/run/d/state.json
daemon_start
check "qgpud starts with a damaged state file" wait_until 10 answers
check "says so" logged "state.json.bad-1"
check "and kept it" test -s /run/d/state.json.bad-1

# ---- the module goes and comes under the daemon and under load ----
check "the load is still there" kill -0 "$load"
check "the module unloads under qgpud" modprobe -r qgpu
driver_gone() { answers && grep -q "not loaded" /run/d/status; }
check "qgpud knows" wait_until 10 driver_gone
check "the module loads again" modprobe qgpu
check "and has the whole plan" wait_until 40 weight_is a 200
check "with the tenant's work" wait_until 10 owns_work a
check "qgpud still answers" answers

capabilities() { awk '$1 == "CapEff:" { print $2 }' "/proc/$daemon/status"; }
check_equal "qgpud keeps CAP_NET_ADMIN alone" "$(capabilities)" 0000000000001000
note "$(awk '/VmRSS/ { print "qgpud resident:", $2, $3 }' "/proc/$daemon/status")"

kill -9 "$load" 2>/dev/null || true
wait "$load" 2>/dev/null || true
daemon_kill TERM
check "qgpu unloads" modprobe -r qgpu
front_unload
((tests_failed == 0)) || note "$(tail -n 60 /run/d/log)"
done_testing
