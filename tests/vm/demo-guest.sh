#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# demo-guest.sh: the guest's part of ./demo: loads the software T4 and qgpu, starts qgpud with examples/two-tenants.toml
# and sweeps the batch size: one tenant alone, two under best-effort, two under qgpu. One JSON object a point goes to
# /out/points.jsonl; notes are shown as progress. It judges nothing but that everything ran.
set -euo pipefail
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"

BATCHES=(1 2 4 8 16 32 64 128 256)
SECONDS_A_POINT=2
SETTLE=0.3

top=$(cd "$(dirname "$0")/../.." && pwd)
points=/run/points.jsonl
bin=${QGPU_PROGRAMS:?the directory of the built programs}/bin
mkdir -p /etc/qgpu /var/lib/qgpu /run/qgpu
cp "$top/examples/two-tenants.toml" /etc/qgpu/qgpud.toml

check "modules are staged" stage_modules "${QGPU_MODULES:?the directory of the built modules}"
check "qgpu_sim loads" modprobe qgpu_sim
defer modprobe -r qgpu_sim
check "qgpu loads" modprobe qgpu
defer modprobe -r qgpu

"$bin/qgpud" --foreground --config /etc/qgpu/qgpud.toml 2>/run/qgpud.log &
daemon=$!
defer kill "$daemon"
# Without the daemon status is the kernel's.
daemon_is_up() { "$bin/qgpuctl" status --json >/run/status 2>&1 && grep -q '"source": *"qgpud"' /run/status; }
if ! wait_until 10 daemon_is_up; then
	not_ok "qgpud applies its configuration" "$(cat /run/qgpud.log)"
	done_testing
fi
ok "qgpud applies its configuration"

# run_ns PID: by the chip's own record, of all TSGs that PID opened.
run_ns() {
	awk -v pid="$1" '$3 == "pid" && $4 == pid { for (i = 1; i < NF; i++) if ($i == "run_ns") sum += $(i + 1) }
		END { printf "%.0f\n", sum }' /sys/kernel/debug/qgpu_sim/card0/tsgs
}

# tenant NAME BATCH: a load in the tenant's cgroup, in the background; exec keeps the pid.
tenant() {
	"$bin/qgpuctl" run --tenant "$1" -- "$bin/qgpu-load" --batch "$2" --depth 32 \
		--seconds $SECONDS_A_POINT --warmup $SETTLE --json >"/run/$1.json" &
}

# point POLICY BATCH TENANT...
point() {
	local policy=$1 batch=$2 name pid a0=0 b0=0 a1=0 b1=0 failed=0
	shift 2
	local -A pid_of=()
	rm -f /run/a.json /run/b.json
	for name; do
		tenant "$name" "$batch"
		pid_of[$name]=$!
	done
	# The record's interval lies inside the one that the loads measure.
	sleep 0.5
	a0=$(run_ns "${pid_of[a]}")
	[[ -z ${pid_of[b]:-} ]] || b0=$(run_ns "${pid_of[b]}")
	sleep 1.6
	a1=$(run_ns "${pid_of[a]}")
	[[ -z ${pid_of[b]:-} ]] || b1=$(run_ns "${pid_of[b]}")
	for name; do
		wait "${pid_of[$name]}" || failed=1
	done
	if ((failed)); then
		not_ok "$policy, batch $batch" "$(cat /run/a.json /run/b.json 2>/dev/null)"
		return
	fi
	[[ -e /run/b.json ]] || echo null >/run/b.json
	printf '{"policy": "%s", "batch": %d, "chip_a_ns": %d, "chip_b_ns": %d, "a": %s, "b": %s}\n' "$policy" "$batch" \
		$((a1 - a0)) $((b1 - b0)) "$(tr -d '\n' </run/a.json)" "$(tr -d '\n' </run/b.json)" >>"$points"
	tests_run=$((tests_run + 1))
	echo "ok $tests_run - $policy, batch $batch"
}

sweep() {
	local policy=$1 batch
	shift
	note "$policy: batch ${BATCHES[*]}"
	for batch in "${BATCHES[@]}"; do
		point "$policy" "$batch" "$@"
	done
}

check "policy best-effort" "$bin/qgpuctl" policy 0 best-effort
sweep alone a
sweep best-effort a b
check "policy burst-share" "$bin/qgpuctl" policy 0 burst-share
sweep burst-share a b
note "$("$bin/qgpuctl" status)"

cp "$points" /out/points.jsonl
run_deferred
check_fails "nothing is left" grep -E '^qgpu' /proc/modules
done_testing
