#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What must hold on a real NVIDIA card, in stages of less than eight minutes each. Needs root, the
# driver, Python 3.9 and the programs built:
#
#   cmake -S . -B build && cmake --build build --target qgpud qgpuctl qgpu-exec qgpu-load hw_probe
#   tests/hw/run.sh build [OUT] [STAGE...]
#
# Without stages: all of them. Leaves the card as it was found; touches no clock, power limit or mode.
# Exit status 77: skipped, with a reason.
set -u
here=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${1:?usage: run.sh BUILD [OUT] [STAGE...]}" && pwd) || exit 2
out=${2:-$PWD/hw-results}
shift; [ $# -gt 0 ] && shift
stages=("$@")
[ ${#stages[@]} -gt 0 ] || stages=(probe system shares sync delivered ceilings online many joins cycles kills network fixed others)

skip() { echo "skipped: $1"; exit 77; }
[ -r /proc/driver/nvidia/version ] || skip "the NVIDIA driver is not loaded"
[ "$(id -u)" = 0 ] || skip "needs root: descriptors of other processes are duplicated"
command -v python3 >/dev/null || skip "needs Python"
pgrep -x nvidia-cuda-mps >/dev/null && skip "an MPS server would make all tenants one"

bin=$(mktemp -d); trap 'rm -rf "$bin"' EXIT
for program in daemon/exec/qgpu-exec daemon/exec/hw_probe tools/qgpu-load/qgpu-load; do
  [ -x "$build/$program" ] || skip "$build/$program is not built"
  cp "$build/$program" "$bin/"
done
for program in daemon/qgpud tools/qgpuctl/qgpuctl; do
  [ ! -x "$build/$program" ] || cp "$build/$program" "$bin/"
done
mkdir -p "$out"

# Each control by itself on two processes of our own.
probe() {
  "$bin/qgpu-load" --cuda --kernel-us 200 --seconds 20 >/dev/null & local a=$!
  "$bin/qgpu-load" --cuda --kernel-us 200 --seconds 20 >/dev/null & local b=$!
  sleep 4
  local status=0
  for section in objects slices trace gate owngate; do
    "$bin/hw_probe" "$section" $a $b >"$out/probe-$section.txt" || status=1
    echo "probe $section: $(grep -c ' ok ' "$out/probe-$section.txt") controls ok"
  done
  kill $a $b; wait $a $b
  return $status
}

failed=0
for stage in "${stages[@]}"; do
  mkdir -p "$out/$stage"
  if [ "$stage" = probe ]; then
    probe || failed=1
  elif [ "$stage" = system ]; then
    timeout 480 "$here/tests/hw/system.sh" "$bin" "$out/system"
    case $? in 0 | 77) ;; *) failed=1 ;; esac
  else
    timeout 480 python3 "$here/bench/hw/bench.py" --bin "$bin" --out "$out/$stage" "$stage" || failed=1
  fi
done
exit $failed
