#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# debug-kernel.sh: provides a kernel with KASAN, UBSAN, lockdep, kmemleak and their like: Debian's own sources of the stock
# kernel, configured by debug-kernel.config. Prints the variables that kernel.sh prints, for QGPU_KERNEL and run.sh --kernel.
# Built once, in minutes, into ${QGPU_CACHE:-/var/cache/qgpu}/vm, outside the source tree.
set -euo pipefail

die() {
	echo "debug-kernel.sh: $*" >&2
	exit 1
}

here=$(cd "$(dirname "$0")" && pwd)
package=linux-source-6.1
version=$(apt-cache policy $package | awk '$1 == "Candidate:" { print $2 }')
[[ -n $version && $version != "(none)" ]] || die "no package $package; run apt-get update"
key=$(sha256sum <"$here/debug-kernel.config" | cut -c1-12)
cache=${QGPU_CACHE:-/var/cache/qgpu}/vm
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
root=$cache/debug-$version-$key
KDIR=$root/build

unpack() {
	mkdir -p "$root/deb" "$KDIR"
	(cd "$root/deb" && apt-get -q download "$package=$version" >&2) || die "cannot download $package=$version"
	dpkg-deb --fsys-tarfile "$root/deb/$package"_*.deb |
		tar -xO --wildcards '*/linux-source-*.tar.xz' | tar -xJ -C "$KDIR" --strip-components=1
	rm -rf "$root/deb"
}

# What is asked for and not in the result depends on something that is missing: nothing is left out in silence.
configure() {
	local line
	make -s -C "$KDIR" tinyconfig
	(cd "$KDIR" && scripts/kconfig/merge_config.sh -m .config "$here/debug-kernel.config" >/dev/null && make -s olddefconfig)
	while read -r line; do
		[[ $line != *=n ]] || line="# ${line%=n} is not set"
		grep -qxF "$line" "$KDIR/.config" || [[ $line == "# "* ]] || echo "$line"
	done < <(grep '^CONFIG_' "$here/debug-kernel.config") >"$root/missing"
	[[ ! -s $root/missing ]] || die "not in the configuration that came of it: $(tr '\n' ' ' <"$root/missing")"
}

build() {
	rm -rf "$root"
	unpack
	configure
	make -s -C "$KDIR" -j"$(nproc)" bzImage modules
	make -s -C "$KDIR" INSTALL_MOD_PATH="$root" modules_install
	cp "$KDIR/arch/x86/boot/bzImage" "$root/"
	touch "$root/ready"
}

if [[ ! -e $root/ready ]]; then
	exec 9>"$cache/debug-lock"
	flock 9
	if [[ ! -e $root/ready ]]; then
		echo "debug-kernel.sh: building $package $version in $root" >&2
		build >"$cache/debug-build.log" 2>&1 || { tail -n 20 "$cache/debug-build.log" >&2 && die "see $cache/debug-build.log"; }
	fi
fi
KVER=$(make -s -C "$KDIR" kernelrelease)
# Every access is checked: what a script may take on the stock kernel is not enough.
printf '%s=%q\n' KVER "$KVER" KDIR "$KDIR" KROOT "$root" KIMG "$root/bzImage" KSLOWER 10 KMEM_MB 2048
