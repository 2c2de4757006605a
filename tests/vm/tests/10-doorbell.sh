#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# vm: --smp2 --timeout 480
# 10-doorbell.sh: a store into the doorbell page is noticed, whatever else is done with the page: read first, two
# threads, fork, kill -9 while it is writable, two CPUs.
set -euo pipefail
# shellcheck source=../lib.sh
source "$(dirname "$0")/../lib.sh"
# shellcheck source=../front-lib.sh
source "$(dirname "$0")/../front-lib.sh"

front_load
# shellcheck disable=SC2154 # front_load sets front_bin
relay "$front_bin/doorbell"
# The same on one CPU: there the pass must not come before the store is retried.
relay taskset 1 "$front_bin/doorbell"
front_unload
done_testing
