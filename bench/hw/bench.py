#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What tenants get on a real NVIDIA card through qgpu-exec, against what was asked.

  bench.py --bin FOLDER [--out FOLDER] STAGE...

FOLDER has qgpu-exec and qgpu-load. Each stage prints one line a case and adds it to results.json,
with the card, its driver, the date and the command. Shares are by the tenants' own counters,
divided by what one alone reaches just before; "trace" is what the executor's ledger says. Exit
status 77: no card here.
"""
import argparse
import datetime
import json
import os
import subprocess
import sys
import time

import loads
import stages
from executor import Refused


def card_of():
    try:
        with open("/proc/driver/nvidia/version") as f:
            driver = f.readline().split("  ")[-3:]
        out = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                             capture_output=True, text=True, timeout=30).stdout.strip()
        name, version = [x.strip() for x in out.splitlines()[0].split(",")]
        return {"card": name, "driver": version, "module": " ".join(driver).strip()}
    except (OSError, IndexError, ValueError, subprocess.TimeoutExpired):
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True)
    parser.add_argument("--out", default=".")
    parser.add_argument("--card", default="0")
    parser.add_argument("stage", nargs="+", choices=sorted(stages.STAGES))
    args = parser.parse_args()
    head = card_of()
    if not head:
        print("skipped: no NVIDIA card with its driver here")
        return 77
    head.update(date=datetime.date.today().isoformat(), command=" ".join(["bench.py"] + args.stage))
    print("%(card)s, driver %(driver)s, %(date)s: %(command)s" % head)
    bench = loads.Bench(args.bin, args.card, head)
    try:
        bench.calibrate()
        for name in args.stage:
            begin = time.monotonic()
            print("\n%s: %s" % (name, stages.STAGES[name].__doc__.strip()))
            try:
                stages.STAGES[name](bench)
            except (Refused, OSError, AssertionError, subprocess.SubprocessError, KeyError, ValueError) as error:
                bench.row(name, "stage", error="%s: %s" % (type(error).__name__, error))
            bench.clean()
            print("  (%.0f s)" % (time.monotonic() - begin))
            with open(os.path.join(args.out, "results.json"), "w") as f:
                json.dump({**head, "alone": bench.alone_cache_json(), "rows": bench.rows}, f, indent=1)
    finally:
        bench.clean()
    return 1 if any(row.get("ok") is False or "error" in row for row in bench.rows) else 0


if __name__ == "__main__":
    sys.exit(main())
