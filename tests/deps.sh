#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# deps.sh [group...]: installs the Debian 12 packages that building and testing need, and nothing else.
# Run as root by ./check and by people on a bare machine; without a group it takes all of them.
# It installs packages by name only and never a kernel image (vm/kernel.sh unpacks that without installing it).
set -euo pipefail

declare -A GROUPS_OF=(
	[build]="g++ make cmake ninja-build pkg-config libnl-3-dev libnl-genl-3-dev libspdlog-dev libfmt-dev
		libcli11-dev libgtest-dev libgmock-dev libtomlplusplus-dev nlohmann-json3-dev libsystemd-dev libmicrohttpd-dev
		libncurses-dev python3-yaml python3-jsonschema"
	[kernel]="linux-headers-amd64 gcc-12 make sparse kmod xz-utils libelf-dev bison flex bc"
	[vm]="qemu-system-x86 busybox-static cpio kmod xz-utils gcc libc6-dev iproute2 util-linux procps libglib2.0-dev pkg-config python3 dpkg-dev"
	[plot]="python3-matplotlib"
	[prometheus]="prometheus" # not for ./check: what reads the metrics
)

(($#)) || set -- build kernel vm plot prometheus
wanted=()
for group; do
	if [[ -z ${GROUPS_OF[$group]:-} ]]; then
		echo "deps.sh: no group '$group' (there are: build kernel vm plot prometheus)" >&2
		exit 2
	fi
	read -ra names -d '' <<<"${GROUPS_OF[$group]}" || true
	wanted+=("${names[@]}")
done

# One dpkg-query for all names, so that the usual answer "all is in" costs milliseconds.
find_missing() {
	local -A installed=()
	local name status
	while read -r name status; do
		[[ $status == *" installed" ]] && installed[$name]=1
	done < <(dpkg-query -W -f '${Package} ${Status}\n' "${wanted[@]}" 2>/dev/null || true)
	missing=()
	for name in "${wanted[@]}"; do
		[[ -n ${installed[$name]:-} ]] || missing+=("$name")
		installed[$name]=1
	done
}

find_missing
((${#missing[@]})) || exit 0

if ((EUID)); then
	echo "deps.sh: must be root to install: ${missing[*]}" >&2
	exit 1
fi

# Two checks may start at the same time: the second waits here and then finds everything in place.
exec 9>/run/lock/qgpu-deps.lock
flock 9
find_missing
((${#missing[@]})) || exit 0

echo "deps.sh: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
run_apt() {
	if ! apt-get -o DPkg::Lock::Timeout=600 -q "$@" >"$log" 2>&1 9>&-; then
		tail -n 20 "$log" >&2
		echo "deps.sh: 'apt-get $*' failed" >&2
		exit 1
	fi
}
run_apt update
run_apt install -y --no-install-recommends "${missing[@]}"
