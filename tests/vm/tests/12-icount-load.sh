#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# vm: --icount --timeout 240
# 12-icount-load.sh: what a second of guest time costs on the host when tenants run 1,000 and 10,000 kernels a second
# on the simulated card. From this follow the lengths of demos and the batching of timers; nothing asserts on it.
set -euo pipefail
# shellcheck source=../lib.sh
source "$(dirname "$0")/../lib.sh"
# shellcheck source=../front-lib.sh
source "$(dirname "$0")/../front-lib.sh"

# host_now: the host's clock in seconds, through the time it gives to a new file.
host_now() {
	local file=/out/stamp.$RANDOM$RANDOM
	: >"$file"
	stat -c %.9Y "$file"
	rm "$file"
}

guest_now() { cut -d' ' -f1 /proc/uptime; }

# cost NAME CMD...: runs CMD and notes host seconds per guest second; its output is in /run/out. Guest time is taken
# next to CMD only: reading the host's clock makes it jump.
cost() {
	local name=$1 host guest
	shift
	host=$(host_now)
	guest=$(guest_now)
	"$@" >/run/out
	guest=$(awk -v a="$guest" -v b="$(guest_now)" 'BEGIN { print b - a }')
	host=$(awk -v a="$host" -v b="$(host_now)" 'BEGIN { print b - a }')
	note "$(awk -v name="$name" -v h="$host" -v g="$guest" \
		'BEGIN { printf "%s: %.3f host s per guest s (%.2f s for %.2f s)", name, h / g, h, g }')"
}

# load_is NAME RATE ARGS...: the load gets RATE kernels a second within 1 %.
load_is() {
	local name=$1 rate=$2 got
	shift 2
	cost "$name" "$front_bin/qgpu-load" --seconds 5 --json "$@"
	got=$(awk -F'[:,]' '/"kernels_per_s"/ { print $2 }' /run/out)
	if awk -v got="$got" -v rate="$rate" 'BEGIN { exit !(got > 0.99 * rate && got < 1.01 * rate) }'; then
		ok "$name"
	else
		not_ok "$name" "$got kernels a second"
	fi
}

front_load
cost "idle" sleep 5
ok "idle"
load_is "one tenant, 1,000 kernels/s" 1000 --kernel-us 1000 --depth 32
load_is "one tenant, 10,000 kernels/s" 10000 --kernel-us 100 --depth 64
two_tenants() {
	"$front_bin/qgpu-load" --seconds 5 --kernel-us 1000 --depth 32 &
	"$front_bin/qgpu-load" --seconds 5 --kernel-us 1000 --depth 32
	wait
}
cost "two tenants, 1 ms kernels" two_tenants
check_equal "two tenants both get work" "$(grep -c '^work' /run/out)" 2
front_unload
done_testing
