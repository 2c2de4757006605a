#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# qgpud, qgpu-exec and qgpuctl together on a real card, with tenants in control groups: the card is calibrated, 2:1 by the
# tenants' own counters, a change of weight, a daemon that is killed and comes back, an online tenant beside an offline one, a
# wait that is promised, everything as found when they have stopped. Called by run.sh; needs root and cgroup v2.
#
#   tests/hw/system.sh BIN OUT      BIN has qgpud, qgpuctl, qgpu-exec and qgpu-load
#
# Exit status 77: skipped, with a reason.
set -uo pipefail
bin=$(cd "${1:?usage: system.sh BIN OUT}" && pwd) out=${2:?usage: system.sh BIN OUT}
mkdir -p "$out" && out=$(cd "$out" && pwd)
skip() { echo "skipped: $1"; exit 77; }
[ -e /sys/fs/cgroup/cgroup.controllers ] || skip "cgroup v2 is not mounted"
for program in qgpud qgpuctl; do [ -x "$bin/$program" ] || skip "$program is not built"; done
[ ! -e /run/qgpu/qgpud.sock ] || skip "a qgpud runs here already"
PATH=$bin:$PATH
failed=0
check() { # NAME COMMAND...
  local name=$1
  shift
  if "$@"; then echo "ok      $name"; else echo "not ok  $name"; failed=1; fi
}
wait_for() { # SECONDS COMMAND...
  local end=$((SECONDS + $1))
  shift
  until "$@"; do [ $SECONDS -lt $end ] || return 1; sleep 0.1; done
}
declare -a running=()
finish() {
  kill "${running[@]}" 2>/dev/null
  wait
}
trap finish EXIT

cat >"$out/qgpud.toml" <<END
[daemon]
state = "$out/state.json"
[[card]]
match = 0
method = "rm"
policy = "burst-share"
[tenant.a]
weight = 200
[tenant.b]
weight = 100
[tenant.web]
weight = 100
[tenant.batch]
class = "offline"
END
mkdir -p /run/qgpu
qgpu-exec --card 0 2>"$out/exec.log" & executor=$!
running+=($executor)
start_daemon() {
  qgpud --foreground -c "$out/qgpud.toml" 2>>"$out/qgpud.log" & daemon=$!
}
start_daemon
state_is() { qgpuctl status --json 2>/dev/null | grep -q "\"state\": *\"$1\""; }
check "the card is in order" wait_for 10 state_is ok

check "the card is calibrated" qgpuctl calibrate --card 0 >"$out/calibrate.txt"
cat "$out/calibrate.txt"

# By the speed of the card alone: measured beside each other, two would mean different kernels.
loops=$(qgpu-load --cuda --json --kernel-us 200 --seconds 1 | python3 -c 'import json, sys; print(json.load(sys.stdin)["loops_per_us"])')
load() { # NAME SECONDS
  qgpuctl run --tenant "$1" -- qgpu-load --cuda --json --loops-per-us "$loops" --kernel-us 200 --seconds "$2" >"$out/$1.json" &
  running+=($!)
}
# Of what both got in a span of CLOCK_MONOTONIC, the part of a.
mark() { python3 -c 'import time; print(time.monotonic_ns())'; }
part_of_a() { # BEGIN END
  python3 - "$out" "$1" "$2" <<'END'
import json, sys
folder, begin, end = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
def done(name):
    samples = json.load(open("%s/%s.json" % (folder, name)))["samples"]
    def at(ns):
        low = max((s for s in samples if s[0] <= ns), default=samples[0])
        high = min((s for s in samples if s[0] > ns), default=samples[-1])
        return low[1] + (high[1] - low[1]) * (ns - low[0]) / max(1, high[0] - low[0])
    return at(end) - at(begin)
a, b = done("a"), done("b")
print("%.4f" % (a / (a + b)))
END
}
near() { python3 -c 'import sys; v, w, t = map(float, sys.argv[1:]); sys.exit(abs(v - w) > t)' "$@"; }
runs() { grep -q . "/sys/fs/cgroup/qgpu/$1/cgroup.procs"; }

load a 24
load b 24
check "both are in their groups" wait_for 10 runs b
sleep 6
t0=$(mark); sleep 4; t1=$(mark)
qgpuctl status | tee "$out/status.txt"
qgpuctl explain a >"$out/explain.txt"; cat "$out/explain.txt"
check "a weight is changed" qgpuctl tenant set a --weight 300
sleep 1
t2=$(mark); sleep 3; t3=$(mark)
kill -9 $daemon; wait $daemon 2>/dev/null
t4=$(mark); sleep 2; t5=$(mark)
start_daemon
check "a daemon that was killed comes back to a card in order" wait_for 10 state_is ok
check "and knows the weight" sh -c "qgpuctl tenant show a --json | grep -q 300"
check "best-effort is set" qgpuctl policy 0 best-effort
wait "${running[@]:1}"
first=$(part_of_a "$t0" "$t1") second=$(part_of_a "$t2" "$t3") third=$(part_of_a "$t4" "$t5")
echo "a's part: asked .6667 got $first, asked .75 got $second, without a daemon $third"
check "2:1" near "$first" 0.6667 0.01
check "3:1 after the change" near "$second" 0.75 0.01
check "3:1 while no daemon runs" near "$third" 0.75 0.01

# Kernels of 300 us now and then, alone, beside an offline tenant, and among owners with a wait that was asked for.
check "burst-share is set" qgpuctl policy 0 burst-share
arrivals() { # NAME SECONDS A_SECOND
  qgpuctl run --tenant web -- qgpu-load --cuda --json --loops-per-us "$loops" --kernel-us 300 --arrivals "$3" --spacing even \
    --warmup 2 --seconds "$2" >"$out/$1.json"
}
latency() { # NAME WHICH
  python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["latency_us"][sys.argv[2]])' "$out/$1.json" "$2"
}
over() { # NAME WHICH: over alone, in us
  python3 -c 'import sys; print(float(sys.argv[1]) - float(sys.argv[2]))' "$(latency "$1" "$2")" "$(latency alone "$2")"
}
at_most() { python3 -c 'import sys; sys.exit(float(sys.argv[1]) > float(sys.argv[2]))' "$@"; }
arrivals alone 4 200
check "class online" qgpuctl tenant set web --class online
load batch 10 && beside=$!
check "the offline one is in its group" wait_for 10 runs batch
arrivals online 5 200
qgpuctl status >"$out/status-online.txt"
wait $beside
check "class normal" qgpuctl tenant set web --class normal
load a 22 && beside=$!
load b 22 && beside="$beside $!"
check "two owners are in their groups" wait_for 10 runs b
arrivals owners 5 20
check "a wait is asked for" qgpuctl tenant set web --wake-within 10ms
arrivals promised 8 20
qgpuctl status | tee "$out/status-promised.txt"
qgpuctl explain web | tee "$out/explain-web.txt"
wait $beside
for case in online owners promised; do
  echo "web $case: over alone P50 $(over $case p50), P99 $(over $case p99), P99.9 $(over $case p99.9) us"
done
check "online beside offline: P99 at most 450 us over alone" at_most "$(over online p99)" 450
check "a wait of 10 ms is kept" at_most "$(over promised max)" 10000
kill $daemon $executor
wait $daemon $executor
check "the executor ended in order" [ $? = 0 ]
check "nothing is left in its folder but locks" [ -z "$(ls /run/qgpu | grep -v '\.lock$')" ]
trap - EXIT
exit $failed
