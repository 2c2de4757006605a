#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# vm: --icount --timeout 300
# 30-daemon.sh: qgpud and qgpuctl over the real module: a configuration reaches the card and the tenants, a restart adopts,
# bad input changes nothing, the module may go and come under a living daemon, ceilings, classes and times from the file to
# what a capped tenant gets of the card, by the card's own record. Asserts no other times and shares.
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
# It does itself: of a dead one the kernel would tell.
answers() { qgpuctl status --json >/run/d/status && grep -q '"source": *"qgpud"' /run/d/status; }
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
printf '[daemon]\nsocket = "/run/d/second.sock"\nstate = "/run/d/second.json"\n[[card]]\nmatch = 0\n' >/run/d/second.toml
for file in "$config" /run/d/second.toml; do
	second() { qgpud --foreground -c "$file" >/run/d/second.log 2>&1; }
	check "a second qgpud does not start" exits_with 4 second
	check "and names lock and process" grep -q "another qgpud runs.*, process $daemon (/run/qgpu/qgpud.lock)" /run/d/second.log
done
check "--check does not ask for the lock" qgpud --check -c "$config"
check_equal "the first has its card as before" "$(generation 0)" "$before"
check "read-only verbs work with the daemon dead" qgpuctl tenant list --socket /nowhere
kill -STOP "$daemon"
in_time() {
	local start=$SECONDS
	qgpuctl status >/dev/null 2>/run/d/second.log && ((SECONDS - start <= 8))
}
check "with a stopped one they come from the kernel, in time" in_time
check "which is said" grep -q "did not answer within 5 s: read from the kernel directly" /run/d/second.log
kill -CONT "$daemon"
check "it answers when it goes on" answers

# ---- run ----
check "run starts a command in the tenant's cgroup" \
	test "$(qgpuctl run --tenant a -- grep -c '^0::/qgpu/a$' /proc/self/cgroup)" = 1
qgpuctl run --tenant a -- "$front_bin/saturate" 1000 1000 >/run/d/load &
load=$!
owns_work() { [[ $(tsgs "$1") == 1 ]]; }
check "its work on the card belongs to the tenant" wait_until 10 owns_work a
says_why() { qgpuctl explain a --card 0 --json | grep -q '"reason": "as-promised"'; }
check "explain: alone it has what is promised" wait_until 10 says_why
check "and where it stands" grep -q "rotates: once in each cycle" <(qgpuctl explain a)
note "$(qgpuctl explain a)"
# Alone it is on without interruption: whatever the log has of it is not over.
still_on() { qgpuctl log --card 0 --tenant a >/run/d/who && grep -q "  a: still on$" <(tail -n 1 /run/d/who); }
check "the scheduler's log has who is on the engine" wait_until 10 still_on
check "also as JSON" wait_until 10 sh -c 'qgpuctl log --card 0 --tenant a --json | grep -q "\"ongoing\":true.*\"tenant\":\"a\""'
drawn() { qgpuctl trace --card 0 --out /run/d/trace.json >/run/d/who && grep -q '"name":"still on"' /run/d/trace.json; }
check "and trace draws it" wait_until 10 drawn
qgpuctl log --follow >/run/d/follow 2>/run/d/follow.log &
follower=$!
# What was on before a is over.
check "who follows has what is over" wait_until 10 test -s /run/d/follow
check_fails "and not what is on" grep -q "still on" /run/d/follow
check "explain of one without work says that nothing of it is there" \
	grep -q "no process of it has a context on this card\|none of its cgroups exists" <(qgpuctl explain b)
check "an unknown tenant has no explanation" exits_with 6 qgpuctl explain nobody
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
check "who follows the log is told" wait_until 10 grep -q "the module's log: .*; waiting for it" /run/d/follow.log
check "the module loads again" modprobe qgpu
check "and has the whole plan" wait_until 40 weight_is a 200
check "with the tenant's work" wait_until 10 owns_work a
check "qgpud still answers" answers
check "who follows goes on with the new log" wait_until 10 grep -q "the log of card 0 began anew" /run/d/follow.log
kill "$follower"
wait "$follower" 2>/dev/null || true
check_equal "and was told once each" "$(sort /run/d/follow.log | uniq -d)" ""

capabilities() { awk '$1 == "CapEff:" { print $2 }' "/proc/$daemon/status"; }
check_equal "qgpud keeps CAP_NET_ADMIN alone" "$(capabilities)" 0000000000001000
note "$(awk '/VmRSS/ { print "qgpud resident:", $2, $3 }' "/proc/$daemon/status")"

# ---- two who take turns ----
counted() { # TENANT KEY, by qgpuctl
	qgpuctl counters --json | tr -d ' \n' | grep -o "\"$1\":{\"hangs\".*" | grep -o "\"$2\":[0-9]*" | head -n 1 | grep -o '[0-9]*$'
}
visits_are_counted() { (($(counted a visits) > 1 && $(counted b visits) > 1)); }
gave_way() { qgpuctl log --card 0 --tenant "$1" >/run/d/who && grep -qE "  $1: (slice|window)" /run/d/who; }
qgpuctl run --tenant b -- "$front_bin/saturate" 1000 1000 >/run/d/other &
other=$!
check "two who take turns are on the engine again and again" wait_until 20 visits_are_counted
check "the log has that one gave way" wait_until 20 gave_way a
check "and so did the other" wait_until 20 gave_way b

# ---- one gets nothing: every view says who, one says why and what to do, and that helps ----
check "b takes what a leaves, which is nothing" qgpuctl tenant set b --class offline
is_starved() { qgpuctl status | grep -q "starved: b (waits for .*; why: qgpuctl explain b$"; }
check "status names who is starved, and for how long it waits" wait_until 20 is_starved
check "so does top" sh -c 'qgpuctl top --once | grep -q "^  b .*STARVED"'
doctor_names_b() { { qgpuctl doctor || true; } | grep -q "tenant b is starved: it had work for"; }
check "and doctor" doctor_names_b
check "explain has no other opinion" sh -c 'qgpuctl explain | grep -q "^  b .*STARVED .*online and normal tenants leave it nothing"'
remedy=$(qgpuctl explain b --card 0 --json | grep -o '"remedy": "[^"]*"' | cut -d '"' -f 4)
check_equal "and a remedy" "$remedy" "qgpuctl tenant set b --class normal"
# shellcheck disable=SC2086 # it is a command
check "which is a command" $remedy
is_fed() { qgpuctl explain b --card 0 --json | grep -q '"reason": "as-promised"'; }
check "that helps" wait_until 20 is_fed
check "b is as the file says again" qgpuctl tenant reset b
kill -9 "$load" "$other" 2>/dev/null || true
wait "$load" "$other" 2>/dev/null || true

# ---- with nobody at work all views show the same, to the unit ----
removed() { qgpuctl counters --json | tr -d ' \n' | grep -o '"removed_ns":[0-9]*' | head -n 1 | grep -o '[0-9]*$'; }
a_id=$(qgpunl tenants 0 | awk '$2 == "a" { print $1 }')
views_agree() {
	[[ $(qgpunl stats 0 | awk -v id="$a_id" '$1 == id { print $2, $NF }') == "$(counted a run_ns) $(counted a visits)" ]]
}
check "what the module counted is what qgpuctl shows" wait_until 5 views_agree
ran_ns=$(($(counted a run_ns) + $(counted b run_ns)))
gone_ns=$(removed)

# ---- ceilings, classes, waits, hang timeouts ----
classes() { # WAKE
	cat >"$config" <<-END
		[daemon]
		state = "/run/d/state.json"
		[[card]]
		match = 0
		[tenant.web]
		class = "online"
		wake_within = "$1"
		[tenant.lab]
		ceiling = 30
		hang_timeout = "5ms"
		[tenant.batch]
		class = "offline"
	END
}
shows() { qgpuctl tenant show "$1" | grep -q -- "$2"; }
column() { # TITLE NAME: that tenant's cell below that title; "wake within", "hang timeout", "of wall time" are one each
	qgpuctl status | sed 's/wake within/wake_within/; s/hang timeout/hang_timeout/; s/of wall time/of_wall_time/
		s/\([0-9]\) \(%\|ms\|us\|s\)\( \|$\)/\1\2\3/g' |
		awk -v title="$1" -v name="$2" '$1 == "tenant" { for (i = 1; i <= NF; i++) if ($i == title) at = i }
			$1 == name && at { print $at }'
}
classes 2ms
check "an online, a capped and an offline tenant are accepted" qgpud --check -c "$config"
check "--check shows what only some ask for" sh -c "qgpud --check -c $config | grep -qE 'ceiling +class +wake within'"
check "and who gets nothing in a crowd" sh -c "qgpud --check -c $config | grep -q 'batch gets nothing while all others are busy'"
kill -HUP "$daemon"
check "and on the card" wait_until 10 shows web "class online, wake within 2.0 ms"
kept() { (($(removed) == gone_ns + ran_ns)); }
check "what a and b ran is kept, though they are gone" wait_until 5 kept
check "the capped one with its ceiling" shows lab "ceiling 30.0 %, class normal, hang timeout 5.0 ms"
check "the offline one" shows batch "class offline"
note "$(qgpuctl status)"
check_equal "status shows a class" "$(column class web) $(column class lab) $(column class batch)" "online - offline"
check_equal "and a ceiling" "$(column ceiling lab)" "30.0%"
check_equal "and a wait" "$(column wake_within web)" "2.0ms"
check_equal "and a hang timeout" "$(column hang_timeout lab)" "5.0ms"
before=$(generation 0)
classes 300us
kill -HUP "$daemon"
check "a wait that cannot be kept is refused with the least that can" wait_until 10 logged \
	"$config:7: tenant.web.wake_within: \"300us\" cannot be kept on card .* must be \"400us\" at least"
check_equal "and changes nothing" "$(generation 0)" "$before"
classes 2ms
check "a ceiling is changed live" qgpuctl tenant set lab --ceiling 50 --class offline --hang-timeout off
check "on the card" shows lab "ceiling 50.0 %, class offline"
check "a wait that cannot be kept is refused live" exits_with 3 qgpuctl tenant set web --wake-within 399us
check "reset goes back to the file's" qgpuctl tenant reset lab
check "on the card again" shows lab "ceiling 30.0 %, class normal, hang timeout 5.0 ms"
check "a policy that knows no classes is refused" exits_with 3 qgpuctl policy 0 equal-share

# What lab ran, and the card's clock, by the card's own record; read without starting a process.
look() {
	local lines line
	mapfile -t lines <"$front_debug/card0/tsgs"
	for line in "${lines[@]}"; do
		[[ $line != *" pid $load "* ]] || ran_ns=${line##* }
	done
	mapfile -t lines <"$front_debug/card0/totals"
	card_ns=${lines[0]#time_ns }
}
qgpuctl run --tenant lab -- "$front_bin/saturate" 1000 1000 >/run/d/load &
load=$!
check "the capped tenant's work is on the card" wait_until 10 owns_work lab
sleep 1
look
from_ns=$ran_ns from_card_ns=$card_ns
sleep 10
look
share=$(awk -v ran="$((ran_ns - from_ns))" -v all="$((card_ns - from_card_ns))" 'BEGIN { printf "%.3f", 100 * ran / all }')
note "alone on the card, ceiling 30 %: ran $share % of the clock's time"
check "a capped tenant alone keeps to its ceiling within 1 pp" \
	awk -v share="$share" 'BEGIN { exit !(share >= 29 && share <= 31) }'
kill -9 "$load" 2>/dev/null || true
wait "$load" 2>/dev/null || true

# ---- a kernel that keeps the engine from others for longer than it may ----
qgpuctl events >/run/d/events &
listener=$!
qgpuctl run --tenant web -- "$front_bin/saturate" 1000 1000 >/run/d/other &
other=$!
qgpuctl run --tenant lab -- "$front_bin/saturate" 30000 1000 1 0 0 >/run/d/load &
load=$!
hang_told() { grep -q "hang  tenant lab" /run/d/events; }
check "it is told of with its tenant's name" wait_until 20 hang_told
check "and logged with it" logged 'work of tenant "lab" runs for longer'
kill -9 "$load" "$other" "$listener" 2>/dev/null || true
wait "$load" "$other" "$listener" 2>/dev/null || true

daemon_kill TERM
check "qgpu unloads" modprobe -r qgpu
front_unload
((tests_failed == 0)) || note "$(tail -n 60 /run/d/log)"
done_testing
