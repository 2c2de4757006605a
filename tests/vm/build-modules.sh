#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# build-modules.sh [--sparse] DIR - build both modules for the VM's kernel from a copy of the
# sources in DIR, so that the tree stays clean. A warning about one of our files is a failure.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)

check=()
if [ "${1:-}" = --sparse ]; then
	check=(C=2 "CF=-D__CHECK_ENDIAN__")
	shift
fi
dir=${1:?usage: build-modules.sh [--sparse] DIR}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
eval "$("$here/kernel.sh")"

# The copy follows deletions too, or a removed file would go on being built.
for item in kmod include; do
	mkdir -p "$dir/$item"
	(cd "$top/$item" && find . -type f -name '*.[chS]' -print -o -type f -name Kbuild -print | sort) >"$dir/$item.new"
	(cd "$dir/$item" && find . -type f \( -name '*.c' -o -name '*.h' \) ! -name '*.mod.c' | sort) |
		comm -13 "$dir/$item.new" - | while read -r gone; do rm -f "$dir/$item/$gone"; done
	(cd "$top/$item" && xargs -a "$dir/$item.new" cp -pu --parents -t "$dir/$item")
	rm "$dir/$item.new"
done
cp -pu "$top/Kbuild" "$top/Makefile" "$dir/"

log=$dir/build.log
make -C "$KDIR" M="$dir" W=1 "${check[@]}" modules 2>&1 | tee "$log"
if grep -E '(warning|error):' "$log" | grep -q "$dir\|^kmod\|\./kmod"; then
	echo "build-modules.sh: warnings above are failures here"
	exit 1
fi
