#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# vm: --smp2 --timeout 240
# 40-rm-front.sh: the calls that an executor makes on the simulated driver, without the executor: discovery through a
# duplicated file, slices, gates and what they lose, the context-switch trace, faults on request, what /proc tells.
set -euo pipefail
# shellcheck source=../lib.sh
source "$(dirname "$0")/../lib.sh"
# shellcheck source=../front-lib.sh
source "$(dirname "$0")/../front-lib.sh"

front_load cards=2
chmod 755 "$front_bin"
information=/proc/driver/nvidia/gpus/0000:02:00.0/information
check "the second card tells its uuid" grep -qE '^GPU UUID: 	 GPU-71677075-5349-4d54-8034-000000000001$' "$information"
check "and its minor" grep -qE '^Device Minor: 	 1$' "$information"
check "the driver tells its version" grep -q ' 550\.90\.07 ' /proc/driver/nvidia/version
relay "$front_bin/front_rm"
seed=${QGPU_SEED:-$EPOCHSECONDS}
relay "$front_bin/front_fuzz" 8 "$seed"
# Nobody can do no more harm.
relay setpriv --reuid=65534 --regid=65534 --clear-groups "$front_bin/front_fuzz" 8 "$seed"
note "$(cat "$front_debug/card0/totals")"
front_unload
check_fails "nothing is left in /proc" test -e /proc/driver/nvidia

check "it loads as another version" modprobe qgpu_sim version=999.1
check "and says so" grep -q ' 999\.1 ' /proc/driver/nvidia/version
check_fails "a tenant of 550 is refused" "$front_bin/qgpu-load" --seconds 0.1
front_unload
done_testing
