#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# symbols.sh BUILD_DIR - the scheduling core and the chip layer must not know that a simulator
# exists: no undefined symbol of theirs may be one that the chip model defines.
set -euo pipefail
dir=${1:?usage: symbols.sh BUILD_DIR}

library() { find "$dir" -name "lib$1.a" | head -n 1 | grep . || { echo "symbols.sh: no lib$1.a in $dir" >&2; exit 1; }; }
chip=$(library qgpu_chip)
core=$(library qgpu_core)
hw=$(library qgpu_hw)

defined=$(nm --defined-only "$chip" 2>/dev/null | awk 'NF == 3 {print $3}' | sort -u)
used=$(nm --undefined-only "$core" "$hw" 2>/dev/null | awk '$1 == "U" {print $2}' | sort -u)
[ -n "$defined" ] && [ -n "$used" ] || { echo "symbols.sh: nm found nothing to compare" >&2; exit 1; }

both=$(comm -12 <(echo "$defined") <(echo "$used"))
if [ -n "$both" ]; then
	echo "core/ or hw/ uses symbols of the simulator:" $both
	exit 1
fi
if grep -rnE '#include "(sim/|chip)' kmod/core kmod/hw kmod/turn.c kmod/turn.h; then
	echo "core/, hw/ or turn.c includes a header of the simulator"
	exit 1
fi
echo "ok: $(wc -l <<<"$used") undefined symbols, none defined by the chip model"
