#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# kernel.sh: provides the stock kernel that the VM boots: the image of exactly the version of the installed headers.
# Prints shell variables for eval; called by run.sh and by whatever builds the modules. Unpacks, never installs, the
# image, into ${QGPU_CACHE:-/var/cache/qgpu}/vm, outside the source tree. The second call only reads the cache.
#
# With QGPU_KERNEL, a file of such variables (debug-kernel.sh prints one), those are printed.
#
#   KVER   release, as uname -r says it        KDIR   headers to build modules against
#   KROOT  modprobe -d directory of the image  KIMG   what QEMU boots (uncompressed, entered through PVH)
set -euo pipefail

die() {
	echo "kernel.sh: $*" >&2
	exit 1
}

if [[ -n ${QGPU_KERNEL:-} ]]; then
	cat "$QGPU_KERNEL"
	exit
fi

headers=$(dpkg-query -W -f '${Depends}' linux-headers-amd64 2>/dev/null) ||
	die "linux-headers-amd64 is not installed; run tests/deps.sh kernel"
headers=${headers%% *}
KVER=${headers#linux-headers-}
version=$(dpkg-query -W -f '${Version}' "$headers") || die "$headers is not installed; run tests/deps.sh kernel"
KDIR=/lib/modules/$KVER/build
[[ -e $KDIR/Makefile ]] || die "no kernel headers in $KDIR; reinstall $headers"

cache=${QGPU_CACHE:-/var/cache/qgpu}/vm
KROOT=$cache/$KVER-$version
KIMG=$KROOT/vmlinux

# The image is compressed, and the guest would need 3.5 s to decompress itself: do it here, once.
extract_vmlinux() {
	local offset
	# -P needs the C locale to match bytes; the first hit is the payload.
	offset=$(LC_ALL=C grep -obUaPm1 '\xfd7zXZ\x00' "$1" | head -n 1 | cut -d: -f1) || true
	[[ -n $offset ]] || die "no XZ payload in $1"
	tail -c +$((offset + 1)) "$1" | xz -dc --single-stream >"$2" 2>/dev/null || true
	[[ $(head -c 4 "$2" | tail -c 3) == ELF ]] || die "the payload of $1 is not an ELF file"
}

# The ready file is the last thing written: a killed run leaves nothing that looks complete.
unpack() {
	local package=linux-image-$KVER work
	work=$(mktemp -d "$cache/unpack.XXXXXX")
	# shellcheck disable=SC2064
	trap "rm -rf '$work'" EXIT
	echo "kernel.sh: unpacking $package $version into $KROOT" >&2
	apt-cache show "$package=$version" >/dev/null 2>&1 || apt-get -q update >"$work/apt.log" 2>&1 || true
	(cd "$work" && apt-get -q download "$package=$version" >>apt.log 2>&1) || {
		cat "$work/apt.log" >&2
		die "cannot download $package=$version; if it was superseded, upgrade $headers first"
	}
	dpkg -x "$work/$package"_*.deb "$work/root"
	depmod -b "$work/root" "$KVER"
	extract_vmlinux "$work/root/boot/vmlinuz-$KVER" "$work/root/vmlinux"
	rm -rf "$KROOT"
	mv "$work/root" "$KROOT"
	touch "$KROOT/ready"
}

if [[ ! -e $KROOT/ready ]]; then
	mkdir -p "$cache"
	exec 9>"$cache/lock"
	flock 9
	[[ -e $KROOT/ready ]] || unpack
fi

printf '%s=%q\n' KVER "$KVER" KDIR "$KDIR" KROOT "$KROOT" KIMG "$KIMG"
