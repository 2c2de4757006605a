#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# vm: --timeout 480
# 21-netlink.sh: requests that are malformed, impossible or not allowed are refused by name and change nothing; a card
# that is in use goes through the same.
set -euo pipefail
# shellcheck source=../lib.sh
source "$(dirname "$0")/../lib.sh"
# shellcheck source=../front-lib.sh
source "$(dirname "$0")/../front-lib.sh"

front_load cards=2
check "qgpu loads" modprobe qgpu
check_equal "both cards are listed" "$("$front_bin/qgpunl" cards | wc -l)" 2

relay "$front_bin/netlink_abuse" ${QGPU_SEED:+"$QGPU_SEED"}

# Again with a tenant at work: plans are then real images.
"$front_bin/saturate" 200 100000 2 >/run/work &
load=$!
busy() { [[ $("$front_bin/qgpunl" tsgs 0 | wc -l) == 2 ]]; }
check "a tenant is at work" wait_until 10 busy
relay "$front_bin/netlink_abuse" ${QGPU_SEED:+"$QGPU_SEED"}
check_equal "the card obeys all the while" "$("$front_bin/qgpunl" cards 0 | cut -d' ' -f2)" 0
kill -9 "$load"
wait "$load" 2>/dev/null || true

check "qgpu unloads" modprobe -r qgpu
front_unload
done_testing
