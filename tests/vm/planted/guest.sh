#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# guest.sh DIRECTORY BUG: loads planted.ko from DIRECTORY with one bug. Only for run.sh beside it.
set -euo pipefail
# shellcheck source=../lib.sh
source "$(dirname "$0")/../lib.sh"

plan 1
check "it loads" insmod "$1/planted.ko" bug="$2"
done_testing
