#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# build-device.sh DIR: DIR/tu104.so, the chip model as a PCI device that the installed QEMU loads (pci/tu104.c). QEMU's
# headers come from its source package, by this machine's own package sources; they are kept in the cache folder. Structs
# have to be as in the program, so the distribution's patches are part of it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
dir=${1:?usage: build-device.sh DIR}
mkdir -p "$dir"
version=$(dpkg-query -W -f '${source:Version}' qemu-system-x86)
source=${QGPU_CACHE:-/var/cache/qgpu}/qemu-headers-${version//[^A-Za-z0-9.]/-}

# fetch: the headers alone, and those that are generated from the schema.
fetch() {
	local work apt
	work=$(mktemp -d "${source%/*}/qemu.XXXXXX")
	mkdir -p "$work"/{parts,lists/partial,cache,tree/build/qapi}
	for file in /etc/apt/sources.list.d/*.sources; do
		[ -e "$file" ] && sed 's/^Types:.*/Types: deb-src/' "$file" >"$work/parts/$(basename "$file")"
	done
	[ -e /etc/apt/sources.list ] && sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >"$work/parts/main.list"
	apt=(apt-get -q -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$work/parts" -o Dir::State::lists="$work/lists"
		-o Dir::Cache="$work/cache" -o APT::Sandbox::User=root)
	"${apt[@]}" update || true # one source of several may have no sources; what is needed is asked for next
	(cd "$work" && "${apt[@]}" source --download-only "qemu=$version")
	dpkg-source --no-check -x "$work"/qemu_*.dsc "$work/whole"
	mv "$work"/whole/{include,qapi,scripts} "$work/tree/"
	# What configure would find out and headers ask about.
	printf '#define %s 1\n' CONFIG_POSIX CONFIG_LINUX CONFIG_TCG CONFIG_INT128 CONFIG_ATOMIC64 HOST_X86_64 \
		CONFIG_MALLOC_TRIM CONFIG_IOVEC >"$work/tree/build/config-host.h"
	: >"$work/tree/build/config-poison.h"
	python3 "$work/tree/scripts/qapi-gen.py" -o "$work/tree/build/qapi" -b "$work/tree/qapi/qapi-schema.json"
	mv "$work/tree" "$source"
	rm -rf "$work"
}

mkdir -p "${source%/*}"
(
	flock 9
	[ -e "$source/build/qapi/qapi-types-block-core.h" ] || fetch
) 9>"${source%/*}/qemu.lock"

flags=(-O2 -fPIC -Wall)
read -ra glib <<<"$(pkg-config --cflags glib-2.0)"
gcc "${flags[@]}" -I"$here/pci" -I"$top/kmod" -I"$source/build" -I"$source/include" -I"$source/build/qapi" -I"$source" "${glib[@]}" \
	-c -o "$dir/tu104.o" "$here/pci/tu104.c"
gcc "${flags[@]}" -shared -fvisibility=hidden -I"$here/pci" -I"$top/kmod/sim/chip" -I"$top/kmod" -I"$top/tests/env" \
	-o "$dir/tu104.so" "$dir/tu104.o" "$here/pci/tu104_chip.c" "$here/pci/tu104_mmu.c" "$top"/kmod/sim/chip/*.c
ls -l "$dir/tu104.so"
