#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Table and picture of the batch sweep that ./demo measures.

Reads one JSON object a line (see tests/vm/demo-guest.sh), prints the table, writes ratio.png.
Usage: plot_ratio.py POINTS.jsonl OUT.png
"""
import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ASKED = 2.0
NAMES = {"best-effort": "driver alone (best-effort)", "burst-share": "qgpu, weights 200 : 100"}


def ratio(point):
    return point["a"]["work_per_s"] / point["b"]["work_per_s"]


def record_ratio(point):
    """By the chip's own record of who ran, over the same seconds."""
    return point["chip_a_ns"] / point["chip_b_ns"]


def total(point, alone):
    return (point["a"]["work_per_s"] + point["b"]["work_per_s"]) / alone["a"]["work_per_s"]


def main():
    with open(sys.argv[1], encoding="utf-8") as source:
        points = [json.loads(line) for line in source if line.strip()]
    alone = {p["batch"]: p for p in points if p["policy"] == "alone"}
    print(f"{'':>6} | {'driver alone':^45} | {'qgpu, asked 2:1':^45}")
    header = f"{'A /s':>9} {'B /s':>9} {'ratio':>6} {'record':>7} {'sum':>8}"
    print(f"{'batch':>6} | {header:^45} | {header:^45}")
    by_policy = {}
    for policy in NAMES:
        by_policy[policy] = {p["batch"]: p for p in points if p["policy"] == policy}
    for batch in sorted(alone):
        cells = []
        for policy in NAMES:
            p = by_policy[policy][batch]
            cells.append(
                f"{p['a']['work_per_s']:>9.1f} {p['b']['work_per_s']:>9.1f} {ratio(p):>6.2f} "
                f"{record_ratio(p):>7.3f} {100 * total(p, alone[batch]):>6.1f} %"
            )
        print(f"{batch:>6} | {cells[0]:^45} | {cells[1]:^45}")
    print("A, B: items completed a second; record: ratio by the chip's own record of who ran;")
    print("sum: both together against one tenant alone. Small batches leave the card idle: both get")
    print("all they ask, and there is nothing to share.")

    figure, axes = plt.subplots(figsize=(8, 4.5), dpi=120)
    style = {"best-effort": ("o--", "#7f7f7f"), "burst-share": ("o-", "#0072b2")}
    for policy, label in NAMES.items():
        batches = sorted(by_policy[policy])
        marker, colour = style[policy]
        axes.plot(batches, [ratio(by_policy[policy][b]) for b in batches], marker, color=colour, label=label)
    axes.axhline(ASKED, color="#d55e00", linewidth=1, label="asked: 2.00")
    axes.set_xscale("log", base=2)
    axes.set_xticks(sorted(alone), [str(b) for b in sorted(alone)])
    axes.set_ylim(0.8, 2.3)
    axes.set_xlabel("batch size")
    axes.set_ylabel("completed work, A : B")
    axes.set_title("Two tenants on the software T4, asked 2:1")
    axes.grid(alpha=0.3)
    axes.legend(loc="center right")
    figure.tight_layout()
    figure.savefig(sys.argv[2])

    largest = max(by_policy["burst-share"])
    print(f"ratio at batch {largest}: {ratio(by_policy['burst-share'][largest]):.2f} (asked {ASKED:.2f})")


if __name__ == "__main__":
    main()
