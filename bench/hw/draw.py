#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Draws what bench.py measured.

  draw.py FOLDER OUT.png

FOLDER is what tests/hw/run.sh wrote: a folder with results.json for each stage. Drawn are the
stages network, online and sync, those of them that are there.
"""
import json
import os
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

# Told apart by people who do not see red or green, too.
NONE, OURS, ASKED = "#999999", "#0072b2", "#d55e00"


def results(folder, stage):
    path = os.path.join(folder, stage, "results.json")
    if not os.path.exists(path):
        return None
    with open(path) as f:
        return json.load(f)


def network(axes, rows):
    of = {}
    for row in rows:
        policy, batch = row["case"].rsplit(" ", 1)
        of.setdefault(policy, []).append((int(batch), row))
    for policy, color, name in (("best-effort", NONE, "none"), ("burst-share", OURS, "qgpu")):
        batches = [str(batch) for batch, _ in of[policy]]
        axes[0].plot(batches, [row["ratio"] for _, row in of[policy]], "o-", color=color, label=name)
        axes[1].plot(batches, [row["sum"] for _, row in of[policy]], "o-", color=color, label=name)
    axes[0].axhline(2, color=ASKED, ls="--", label="asked")
    axes[1].plot(batches, [row["rate"] for _, row in of["alone"]], "k:", label="one alone")
    axes[0].set(title="ResNet-50, asked 2:1", xlabel="batch", ylabel="images a second, A : B", ylim=(0, 2.3))
    axes[1].set(title="both together", xlabel="batch", ylabel="images a second")
    for axis in axes:
        axis.legend()


def online(axis, rows):
    names = [row["case"].replace(" us", " µs") for row in rows]
    for quantile, marker in (("p50", "o"), ("p99", "s"), ("p99.9", "^")):
        axis.plot(names, [row[quantile] for row in rows], marker, color=OURS, label=quantile.upper(),
                  mfc="none" if quantile == "p99.9" else OURS)
    axis.axhline(rows[0]["p99"] + 450, color=ASKED, ls="--", label="asked of P99")
    axis.set(title="online, 200 kernels of 300 µs a second", xlabel="offline beside it", ylabel="latency, µs",
             ylim=(0, 1.4 * max(row["p99.9"] for row in rows)))
    axis.tick_params(axis="x", labelrotation=20)
    axis.legend()


def sync(axis, rows):
    names = [row["case"].replace(" us", " µs") for row in rows]
    axis.bar(names, [row["got"][0] for row in rows], color=OURS, label="got")
    axis.axhline(0.3, color=ASKED, ls="--", label="asked")
    axis.set(title="launch-and-sync at 30 % beside a queued one", xlabel="its kernels", ylabel="of one alone")
    axis.legend(loc="lower right")


def main():
    folder, out = sys.argv[1:3]
    found = {stage: results(folder, stage) for stage in ("network", "online", "sync")}
    heads = [r for r in found.values() if r]
    if not heads:
        sys.exit("draw.py: %s has results of no stage that is drawn" % folder)
    figure, axes = plt.subplots(2, 2, figsize=(11, 8))
    if found["network"]:
        network(axes[0], found["network"]["rows"])
    if found["online"]:
        online(axes[1][0], found["online"]["rows"])
    if found["sync"]:
        sync(axes[1][1], found["sync"]["rows"])
    figure.suptitle("%(card)s, driver %(driver)s, %(date)s" % heads[0])
    figure.tight_layout()
    figure.savefig(out, dpi=80)


if __name__ == "__main__":
    main()
