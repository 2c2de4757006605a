# SPDX-License-Identifier: GPL-2.0
"""The 2:1 figure with a real network: two processes of network_load.py under none and qgpu."""
import json
import os
import subprocess
import sys
import time

BATCHES = [1, 4, 16, 64, 128, 256]
PHASE_S = 5.0
# Of each phase, what is left out at its ends: a plan takes hold, batches in flight end.
SETTLE_S, END_S = 1.2, 0.3


def start(n):
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "network_load.py")
    command = [sys.executable, script, str(PHASE_S)] + [str(b) for b in BATCHES]
    running = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, text=True) for _ in range(n)]
    for process in running:
        if process.stdout.readline().strip() != "ready":
            raise ValueError("PyTorch with torchvision does not run here")
    return running


def go(running, seconds=0.3):
    begin = time.monotonic_ns() + int(seconds * 1e9)
    for process in running:
        process.stdin.write("%d\n" % begin)
        process.stdin.flush()
    return begin


def rates(running, begin):
    """Images a second of each process, per batch size."""
    out = []
    for process in running:
        samples = json.loads(process.stdout.readline())
        process.wait(timeout=30)
        of = []
        for k, batch in enumerate(BATCHES):
            low = begin + int((k * PHASE_S + SETTLE_S) * 1e9)
            high = begin + int(((k + 1) * PHASE_S - END_S) * 1e9)
            inside = [s for s in samples[str(batch)] if low <= s[0] <= high]
            if len(inside) < 2:
                raise ValueError("too few batches of %d" % batch)
            (t0, n0), (t1, n1) = inside[0], inside[-1]
            of.append((n1 - n0) / (t1 - t0) * 1e9)
        out.append(of)
    return out


def stage(bench):
    """ResNet-50 fp16, asked 2:1, by batch size: images a second of two processes, of one alone at 256."""
    running = start(1)
    (alone,) = rates(running, go(running))
    for k, batch in enumerate(BATCHES):
        bench.row("network", "alone %d" % batch, rate=alone[k])
    sums = {}
    for policy in ("best-effort", "burst-share"):
        executor = bench.start_executor()
        executor.plan(policy, [{"id": 1, "weight": 200}, {"id": 2, "weight": 100}])
        running = start(2)
        for i, process in enumerate(running):
            executor.add(process.pid, i + 1)
        deadline = time.monotonic() + 10
        while len(executor.stats()["objects"]) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        before = executor.stats()
        a, b = rates(running, go(running, 1.0))
        after = executor.stats()
        cpu = (after["cpu_ns"] - before["cpu_ns"]) / (after["time_ns"] - before["time_ns"])
        for k, batch in enumerate(BATCHES):
            both = a[k] + b[k]
            sums.setdefault(batch, []).append(both)
            row = {"ratio": a[k] / b[k], "sum": both, "of_alone_256": both / alone[-1], "cpu": cpu}
            if policy == "burst-share":
                row["of_none"] = both / sums[batch][0]
                if batch >= 128:
                    row["ok"] = abs(row["ratio"] - 2) <= 0.02 and (batch < 256 or row["of_alone_256"] >= 0.985)
                elif batch == 64:
                    row["ok"] = abs(row["ratio"] - 2) <= 0.06
                elif batch <= 4:
                    row["ok"] = row["of_none"] >= 0.95
            bench.row("network", "%s %d" % (policy, batch), **row)
