#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# build-programs.sh DIR - build what runs in the guest: qgpud, qgpu-exec, qgpuctl, qgpu-load (-O1: they wait, and compile
# sooner) and the test programs of tests/vm/progs, all into DIR/bin.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
dir=${1:?usage: build-programs.sh DIR}
mkdir -p "$dir/bin"
dir=$(cd "$dir" && pwd)

cmake -S "$top" -B "$dir/build" -G Ninja -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG" \
	-DBUILD_TESTING=OFF
cmake --build "$dir/build" -j2 --target qgpud qgpu-exec qgpuctl qgpu-load
for name in qgpud qgpu-exec qgpuctl qgpu-load; do
	found=$(find "$dir/build" -type f -name "$name" -perm -u+x | head -n 1)
	[ -n "$found" ] || { echo "build-programs.sh: $name was not built" >&2; exit 1; }
	cp -pu "$found" "$dir/bin/"
done
for source in "$here"/progs/*.c "$here"/progs/*.cpp; do
	[ -e "$source" ] || continue
	name=$(basename "${source%.*}")
	[ "$dir/bin/$name" -nt "$source" ] && continue
	case $source in
	*.c) gcc -O2 -Wall -Wextra -Werror -I"$top/include/uapi" -I"$top/kmod" -I"$top/kmod/sim/front" \
		-pthread -o "$dir/bin/$name" "$source" ;;
	*.cpp) g++ -std=c++20 -O2 -Wall -Wextra -Werror -I"$top/include/uapi" -I"$top/kmod" \
		-I"$top/kmod/sim/front" $(pkg-config --cflags libnl-genl-3.0) -pthread \
		-o "$dir/bin/$name" "$source" $(pkg-config --libs libnl-genl-3.0) ;;
	esac
done
ls -l "$dir/bin"
