#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# vm: --icount --timeout 600
# 40-rm.sh: method rm from end to end, with no qgpu.ko: qgpud, qgpu-exec and tenants of the simulated driver. Shares by the
# card's own record, a ceiling, deaths of tenant, worker and guard while a tenant is gated, controls that are refused or slow,
# no permission, an unknown driver; the card is left as it was found.
set -euo pipefail
# shellcheck source=../lib.sh
source "$(dirname "$0")/../lib.sh"
# shellcheck source=../front-lib.sh
source "$(dirname "$0")/../front-lib.sh"

front_load
[[ -x $front_bin/qgpu-exec ]] || { note "no qgpu-exec in $QGPU_PROGRAMS/bin"; exit 1; }
PATH=$front_bin:$PATH
uuid=GPU-71677075-5349-4d54-8034-000000000000
mkdir -p /run/d /run/qgpu /var/lib/qgpu
config=/run/d/qgpud.toml
declare -A pids

configure() { # [POLICY [A'S LINES [B'S]]]
	cat >"$config" <<-END
		[daemon]
		state = "/run/d/state.json"
		[[card]]
		match = 0
		method = "rm"
		policy = "${1:-burst-share}"
		[tenant.a]
		weight = 200
		${2:-}
		[tenant.b]
		weight = 100
		${3:-}
	END
}
reload() {
	configure "$@"
	kill -HUP "$daemon"
}
daemon_start() {
	qgpud --foreground -c "$config" >>/run/d/log 2>&1 &
	daemon=$!
}
daemon_stop() { # SIGNAL
	kill "-$1" "$daemon"
	wait "$daemon" 2>/dev/null || true
}
executor_start() {
	qgpu-exec --card 0 "$@" >>/run/d/exec.log 2>&1 &
	guard=$!
}
executor_stop() { # SIGNAL
	kill "-$1" "$guard"
	wait "$guard" 2>/dev/null || true
}
worker() { # its process, from the guard's children
	local child=""
	read -r child _ <"/proc/$guard/task/$guard/children" || true
	echo "$child"
}
status_has() { qgpuctl status --json >/run/d/status && grep -q -- "$1" /run/d/status; }
is_ok() { status_has '"state": *"ok"'; }
restarted_and_ok() { [[ -n $(worker) ]] && is_ok; }
is_degraded() { status_has '"state": *"degraded"'; }

# Where everything takes longer, kernels do too: who follows 1 ms ones leaves no time for anything else.
load() { # NAME [options]
	local name=$1
	shift
	qgpuctl run --tenant "$name" -- qgpu-load --kernel-us $((1000 * VM_SLOWER)) --depth 32 --seconds $((1000 * VM_SLOWER)) "$@" >/run/d/load-"$name" 2>&1 &
	check "$name is on the card" wait_until 10 has_tsg "$name"
	pids[$name]=$(head -n 1 "/sys/fs/cgroup/qgpu/$name/cgroup.procs")
}
unload() { # NAME...
	local name
	for name in "$@"; do
		kill -9 "${pids[$name]}"
		unset "pids[$name]"
	done
}
has_tsg() {
	local pid
	for pid in $(cat "/sys/fs/cgroup/qgpu/$1/cgroup.procs"); do
		! grep -q " pid $pid .* state live" "$front_debug/card0/tsgs" || return 0
	done
	return 1
}
declare -A ran
measure() { # SECONDS: ran[NAME] in percent of the clock; one is enough where figures are not judged
	local name from_ns seconds=$((VM_SLOWER == 1 ? $1 : 1))
	local -A from
	front_look
	for name in "${!pids[@]}"; do from[$name]=${record[$name]}; done
	from_ns=$card_ns
	sleep "$seconds"
	front_look
	for name in "${!pids[@]}"; do
		ran[$name]=$(calc "100 * (${record[$name]} - ${from[$name]}) / ($card_ns - $from_ns)")
	done
}
runs() { # NAME: it gets work done
	local before
	front_look
	before=${record[$1]}
	sleep 0.1
	front_look
	((record[$1] > before))
}

# The driver's side of a tenant: its slice in us, and how many of its channels are stopped.
gate() { # NAME FIELD
	local line
	while read -r line; do
		# shellcheck disable=SC2086 # words
		set -- "$1" "$2" $line
		[[ $4 != "${pids[$1]}" ]] || { [[ $2 == slice ]] && echo "$8" || echo "${10}"; }
	done <"$front_debug/card0/gates"
}
is_gated() { [[ $(gate "$1" gated) == 1 ]]; }
is_open() { [[ $(gate "$1" gated) == 0 ]]; }
slice_is_other() { ! has_slice "$1" 1024; }
has_slice() { [[ $(gate "$1" slice) == "$2" ]]; }
fault() { echo "$*" >"$front_debug/faults"; }
said() { grep -q -- "$1" /run/d/log; }
exec_said() { grep -q -- "$1" /run/d/exec.log; }
within() { # VALUE LOW HIGH
	awk -v v="$1" -v l="$2" -v h="$3" 'BEGIN { exit !(v >= l && v <= h) }'
}

# ---- without an executor ----
configure
daemon_start
check "the module is not there" test ! -e /sys/module/qgpu
check "without an executor the card is degraded" wait_until 10 is_degraded
check "and says what is missing" status_has "no executor is running"
check "the method is shown" status_has '"method": *"rm"'
check "--check shows it too" sh -c "qgpud --check -c $config | grep -qE '^0 +rm +a '"
run_fails() { ! qgpuctl run --tenant a -- true; }
check "run fails closed" run_fails

# ---- two tenants 2:1 ----
executor_start
check "with one it is enforced" wait_until 20 is_ok

# ---- what the card costs: the chip takes 45 us to load a context, 5 until work begins, 5 until it has stopped and 45 to save it ----
number() { grep -o "\"$1\": *[0-9]*" | grep -o '[0-9]*$'; }
executor_number() { qgpuctl status --json | number "$1"; }
in_microseconds() { calc "$(qgpuctl status --json | tr -d '\n' | grep -o '"costs": *{[^}]*}' | number "$1") / 1000"; }
check "nothing was measured yet" status_has '"measured_s": *0'
measured=""
calibrate() { measured=$(qgpuctl calibrate --seconds 1 "$@" 2>&1); }
check_figure "an idle card is measured" calibrate
note "$measured"
check_figure "what a visit costs, to 10 %" is_within "$(in_microseconds visit_ns)" 55 5.5
check_figure "the gap, to 10 %" is_within "$(in_microseconds switch_gap_ns)" 45 4.5
check_figure "and who is let run by turns loses less than 1 ms" is_within "$(in_microseconds duty_bias_ns)" 500 500
stored_us=$(in_microseconds visit_ns)
check_figure "the switch's cost is that" sh -c "qgpuctl status | grep -qE 'a switch costs (9[0-9]|10[0-9])\.'"
qgpuctl calibrate --seconds 5 >/run/d/calibrate.log 2>&1 &
calibrator=$!
loads_run() { [[ -n $(pgrep -x qgpu-load) ]]; }
no_loads() { ! loads_run; }
check "a calibration is on" wait_until 5 loads_run
sleep 1
kill -9 "$calibrator"
wait "$calibrator" 2>/dev/null || true
check "who calibrates is killed: its loads go" wait_until 5 no_loads
check "and all is well" wait_until 5 is_ok

load a
load b
sleep 2
measure 10
note "a ran ${ran[a]} %, b ${ran[b]} %"
check_figure "2:1 within 2 %" is_within "$(calc "${ran[a]} / ${ran[b]}")" 2 0.04
check_figure "together they get 97 %" is_within "$(calc "${ran[a]} + ${ran[b]}")" 100 3
note "$(qgpuctl status)"
gap_ns=$(executor_number gap_ns)
note "under control after $((gap_ns / 1000)) us"
check_equal "both are under control" "$(executor_number processes)" 2
# 0: found before they ran anything.
check_figure "and were within 200 ms" test "$gap_ns" -lt 200000000
# Slices are corrected by what was counted, by a tenth at most.
check_figure "a has twice b's slice" is_within "$(calc "$(gate a slice) / $(gate b slice)")" 2 0.4

# ---- who ran when: the executor's log, by qgpud ----
log_has() { qgpuctl log --card 0 "$@" >/run/d/who && [[ -s /run/d/who ]]; }
check "the log has a's times on the engine" log_has --tenant a
check "each ended with its slice" test "$(grep -c '  a: slice$' /run/d/who)" -gt 10
check "nobody else's are among them" test "$(grep -vc '  a: ' /run/d/who)" = 0
check "it is for root alone" sh -c "! setpriv --reuid 65534 --regid 65534 --clear-groups qgpuctl log --card 0 2>/dev/null"
check "trace writes it as a file" qgpuctl trace --out /run/d/trace.json
check "with a track for each tenant" sh -c 'grep -q "\"name\":\"a\"" /run/d/trace.json && grep -q "\"name\":\"b\"" /run/d/trace.json'
check "top has the pid" sh -c "qgpuctl top --once | grep -q '[ ,]${pids[a]}\$'"
waits_add_up() { # as many as visits, but for those at either end
	qgpuctl status --json | tr -d ' \n' | grep -o '"visits":[0-9]*,"wait_max_ns":[0-9]*,"wait_ns":[0-9]*,"waits":{"bins":\[[0-9,]*\]' | tr '][:,' ' ' | awk '
		{ n = 0; for (i = 9; i <= NF; i++) n += $i; bad += n > $2 + 3 || n < 0.8 * $2 } END { exit bad || NR != 2 }'
}
check "waits are counted as often as visits" waits_add_up

# ---- a card at work is not measured unless that is asked for ----
exits_with() { # CODE CMD...
	local wanted=$1 status=0
	shift
	"$@" >/run/d/second.log 2>&1 || status=$?
	((status == wanted)) || { echo "exit status $status: $(cat /run/d/second.log)"; return 1; }
}
check "a busy card is refused" exits_with 3 qgpuctl calibrate --seconds 1
check_figure "with force it is measured" calibrate --force --dry-run
note "$measured"
forced_us=$(grep -o 'a switch costs [0-9.]*' <<<"$measured" | grep -o '[0-9.]*$' || true)
check_figure "to a half" is_within "$forced_us" 100 50
check "which changes nothing, and stores nothing" is_within "$(in_microseconds visit_ns)" "$stored_us" 0.001

# ---- a second executor for the card ----
check "a second executor is refused" exits_with 4 qgpu-exec --card 0
check "which names lock and process" grep -q "process $guard (/run/qgpu/exec-$uuid.lock)" /run/d/second.log
check "also with a run folder of its own" exits_with 4 qgpu-exec --card "$uuid" --run-dir /run/d
check "a living one's card is not released" exits_with 4 qgpu-exec --release
check "a keeps its slice" slice_is_other a
check "and all goes on" is_ok

# ---- qgpud dies, and comes back ----
# Against what was promised.
shares_are_kept() {
	measure 1
	note "a ran ${ran[a]} %"
	is_within "${ran[a]}" 66.3 1
}
check_figure "after calibrating both have their shares again" wait_until 10 shares_are_kept
daemon_stop KILL
measure 3
note "without qgpud a ran ${ran[a]} %"
check_figure "without qgpud no share moves by more than 1 pp" is_within "${ran[a]}" 66.3 1
daemon_start
check "qgpud is back" wait_until 20 is_ok
measure 3
note "with it again ${ran[a]} %"
check_figure "and no share has moved" is_within "${ran[a]}" 66.3 1

# ---- a ceiling (a fixed share is one), alone and in company ----
reload fixed-share "guarantee = 30.0" "guarantee = 60.0"
unload b
tenant_gone() { ! has_tsg "$1"; }
check "b is gone" wait_until 5 tenant_gone b
check "a is held now and then" wait_until 5 is_gated a
sleep 1
measure 8
note "a ran ${ran[a]} % of a ceiling of 30"
check_figure "a ceiling of 30 % is kept within 1 pp" is_within "${ran[a]}" 30 1
load b
sleep 1
measure 5
note "a ran ${ran[a]} %, b ${ran[b]} %"
check_figure "in company a keeps it" is_within "${ran[a]}" 30 1
check_figure "and b has its own" is_within "${ran[b]}" 60 1

reload burst-share "ceiling = 30.0"
sleep 2
measure 5
note "burst-share with a ceiling of 30: a ran ${ran[a]} %, b ${ran[b]} %"
check_figure "a ceiling under burst-share is kept" within "${ran[a]}" 27 31
check_figure "and b gets what it leaves" within "${ran[b]}" 66 73
reload fixed-share "guarantee = 30.0" "guarantee = 60.0"

# ---- an enable is lost: its tenant stands still, submits nothing, and nobody else rings it; the next window ends that ----
fault lose 0x2080110b 1
fault_is_over() { ! grep -q lose "$front_debug/faults"; }
check "an enable is lost" wait_until 5 fault_is_over
check "a gets work done" wait_until 1 runs a
check "so does b" wait_until 1 runs b
sleep 1
measure 5
check_figure "a has its share" is_within "${ran[a]}" 30 1
check_figure "and b" is_within "${ran[b]}" 60 1

# ---- the worker dies while a is held ----
check "a is held" wait_until 10 is_gated a
first_worker=$(worker)
kill -9 "$first_worker"
check "its worker is dead: a runs again" wait_until 1 is_open a
check "and gets work done" runs a
restarted() { [[ -n $(worker) && $(worker) != "$first_worker" ]]; }
check "another worker comes" wait_until 10 restarted
check "the card is enforced again" wait_until 10 is_ok
check "a is held again" wait_until 10 is_gated a
sleep 1
measure 5
check_figure "to its ceiling" is_within "${ran[a]}" 30 1

# ---- the worker stands still while a is held ----
first_worker=$(worker)
stands_while_held() {
	kill -STOP "$first_worker"
	is_gated a || { kill -CONT "$first_worker"; return 1; }
}
check "its worker stands still" wait_until 10 stands_while_held
check "a runs again" wait_until 7 is_open a
check "and gets work done" runs a
kill -CONT "$first_worker"
check "when it goes on a is held again" wait_until 5 is_gated a
check "which is told" wait_until 5 said stalled
check "and it is enforced" wait_until 10 is_ok
sleep 1
measure 5
check_figure "to its ceiling" is_within "${ran[a]}" 30 1
kill -STOP "$first_worker"
check "one that stands still for longer is replaced" wait_until 45 restarted
check "the card is enforced again" wait_until 10 is_ok
check "a is held again" wait_until 10 is_gated a

# ---- worker and guard die while a is held ----
check "a is held" wait_until 5 is_gated a
kill -9 "$guard" "$(worker)"
wait "$guard" 2>/dev/null || true
check "the card is degraded" wait_until 10 is_degraded
fault refuse 0x2080110b 0x1b
check_fails "a release that is refused says so" qgpu-exec --release --card 0
fault clear
check "and keeps the record of who is stopped" test -s "/run/qgpu/$uuid.gates"
check "a release by hand lets a run" qgpu-exec --release --card 0
check "a is open" is_open a
check "and gets work done" runs a
check "with the driver's slice" has_slice a 1024
executor_start
check "a new executor is told all" wait_until 20 is_ok
check "a is held again" wait_until 10 is_gated a
kill -9 "$guard" "$(worker)"
wait "$guard" 2>/dev/null || true
rm -f "/run/qgpu/$uuid.gates"
executor_start
check "with the record of who is stopped lost, too" wait_until 20 is_ok
check "a and b run" wait_until 5 runs a
check "both" wait_until 5 runs b
check "and a is held again" wait_until 10 is_gated a

kill -9 "$guard"
wait "$guard" 2>/dev/null || true
executor_start
check "a guard that dies alone is followed when its worker has ended" wait_until 20 restarted_and_ok
check "a is held again" wait_until 10 is_gated a

# ---- a guard that is told to stop while it waits for a former worker has stopped ----
first_worker=$(worker)
kill -STOP "$first_worker"
kill -9 "$guard"
wait "$guard" 2>/dev/null || true
executor_start
sleep 0.5
kill -TERM "$guard"
status=0
wait "$guard" || status=$?
check_equal "it exits with status 0" "$status" 0
kill -CONT "$first_worker"
executor_start
check "and another follows" wait_until 20 restarted_and_ok
check_figure "the card's costs are known after all that" is_within "$(in_microseconds visit_ns)" 55 5.5

# ---- whoever is killed whenever, nobody stays stopped ----
RANDOM=${QGPU_SEED:-1}
note "repeat with QGPU_SEED=${QGPU_SEED:-1}"
for ((i = 0; i < 8; i++)); do
	first_worker=$(worker)
	sleep "0.0$((RANDOM % 10))$((RANDOM % 10))"
	if ((i % 2)); then
		kill -9 "$first_worker"
	else
		kill -9 "$guard" "$first_worker"
		wait "$guard" 2>/dev/null || true
		executor_start
	fi
	restarted() { [[ -n $(worker) && $(worker) != "$first_worker" ]]; }
	wait_until 10 restarted && wait_until 2 runs a && wait_until 2 runs b || break
done
check_equal "after 8 kills at random instants a and b run" "$i" 8
check "and are enforced" wait_until 20 is_ok

# ---- the tenant dies while it is held ----
check "a is held" wait_until 5 is_gated a
unload a
check "a is gone within a second" wait_until 1 tenant_gone a
check "b has the card" runs b
clients() { front_value objects clients; }
only_ours() { (($(clients) <= 3)); } # b's, the worker's, the guard's
check "no descriptor keeps anything of it" wait_until 2 only_ours
reload
unload b
check "b is gone too" wait_until 2 tenant_gone b
load a
load b
sleep 1
measure 3
check_figure "a new a gets its share" is_within "$(calc "${ran[a]} / ${ran[b]}")" 2 0.1

# ---- a control is refused ----
fault refuse 0xa06c0103 0x1b
configure burst-share "guarantee = 80.0"
kill -HUP "$daemon"
check "a refused control is told of" wait_until 10 said control-refused
check "qgpud answers" qgpuctl status
fault clear
sleep 2
measure 5
note "after the refusal a ran ${ran[a]} %"
check_figure "then the shares are right again" within "${ran[a]}" 80 96

# ---- a control takes long: qgpud does not ----
fault slow 0xa06c0103 8000 1
reload
check "the card is degraded while the executor is silent" wait_until 9 is_degraded
check "the sentence says so" status_has "does not answer"
started=${EPOCHREALTIME/./}
check "qgpud answers meanwhile" qgpuctl status
check_figure "within a second" test $((${EPOCHREALTIME/./} - started)) -lt 1000000
check "it is enforced when the control is done" wait_until 20 is_ok
# What a got too much in those 8 s is nobody's debt.
declare -A sum=([a]=0 [b]=0)
least=100
for ((i = 0; i < 4; i++)); do
	measure 1
	note "a ran ${ran[a]} %, b ${ran[b]} %"
	for name in a b; do
		sum[$name]=$(calc "${sum[$name]} + ${ran[$name]}")
		least=$(calc "${ran[$name]} < $least ? ${ran[$name]} : $least")
	done
done
check_figure "both run in any second then" within "$least" 20 100
check_figure "2:1 again" is_within "$(calc "${sum[a]} / ${sum[b]}")" 2 0.1

# ---- classes, waits; what is not kept is refused ----
reload burst-share 'wake_within = "50ms"' 'class = "offline"'
check "a wait and a class are taken" wait_until 5 status_has '"class": *"offline"'
check "and in force" wait_until 5 is_ok
sleep 1
measure 3
note "a ran ${ran[a]} %, offline b ${ran[b]} %"
check_figure "offline gets what a leaves, which is nothing" is_within "${ran[b]}" 0 3
check "--check says what they need" sh -c "qgpud --check -c $config | grep -q 'while the executor has the driver.s context-switch trace'"
before=$(grep -c "is refused, the former" /run/d/log || true)
reload burst-share 'hang_timeout = "1s"'
refused_more() { (($(grep -c "is refused, the former" /run/d/log) > before)); }
check "a hang timeout is refused" wait_until 5 refused_more
check "with a sentence" said "tenant.a.hang_timeout: hang_timeout is not enforced by method rm"
reload
both_as_before() { ! status_has '"class": *"offline"' && is_ok; }
check "and all is as before" wait_until 5 both_as_before

# ---- best-effort, and the end: as it was found ----
check "best-effort" qgpuctl policy 0 best-effort
check "a has the driver's slice again" wait_until 5 has_slice a 1024
check "b too" wait_until 5 has_slice b 1024
check "back to burst-share" qgpuctl policy 0 burst-share
check "slices are ours again" wait_until 5 slice_is_other a
executor_stop TERM
check "the executor stops: a has the driver's slice" has_slice a 1024
check "b too" has_slice b 1024
check "and none is held" is_open a
check_equal "nothing is left of it in its folder" "$(find /run/qgpu -name '*gates*' -size +0 | wc -l)" 0

# ---- no permission ----
setpriv --bounding-set -sys_ptrace --inh-caps -sys_ptrace qgpu-exec --card 0 >>/run/d/exec.log 2>&1 &
guard=$!
check "without permission the tenants cannot be had, and that is said" wait_until 5 said process-blind
check "of each process once" test "$(grep -c "process-blind of tenant a: process ${pids[a]} .*lacks CAP_SYS_PTRACE" /run/d/log)" = 1
is_blind() { status_has '"reason": *"tenant .*lacks CAP_SYS_PTRACE'; }
check "the card is degraded with that reason" wait_until 5 is_blind
check "they run all the same" runs a
note "$(qgpuctl status)"
executor_stop TERM
executor_start
check "with permission all is well again" wait_until 20 is_ok
check "nothing more was said" test "$(grep -c "process-blind of tenant a: process ${pids[a]} " /run/d/log)" = 1
executor_stop TERM
unload a b

# ---- an unknown driver ----
daemon_stop TERM
check "everything is gone" wait_until 5 front_is_empty
check "the driver unloads" modprobe -r qgpu_sim
check "another version loads" modprobe qgpu_sim version=999.12.1
unknown_driver() { qgpu-exec --card 0 >/run/d/unknown 2>&1; }
check_fails "an unknown version is refused" unknown_driver
check "with one sentence" grep -q "999.12.01 is outside" /run/d/unknown
executor_start --force-driver
check "--force-driver tries" wait_until 10 test -S "/run/qgpu/exec-$uuid.sock"
executor_stop TERM
front_unload
((tests_failed == 0)) || note "$(tail -n 40 /run/d/log /run/d/exec.log)"
done_testing
