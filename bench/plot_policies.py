#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Tables and picture of the comparison of policies that bench/run policies --docs measures.

Reads one JSON object a line; writes DOCS/policies.png and, in DOCS/policies.md, what lies between
the two marks.
Usage: plot_policies.py POINTS.jsonl DOCS
"""
import json
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.colors import LogNorm

BEGIN = "<!-- from here on written by bench/run policies --docs -->"
END = "<!-- up to here -->"

# key, title, format, lowest and highest of the colours
FIGURES = [
    ("error_1s_pp", "Worst share error over 1 s, percentage points", "{:.2f}", 0.05, 50),
    ("error_100ms_pp", "Worst share error over 100 ms, percentage points", "{:.1f}", 0.5, 50),
    ("error_10s_pp", "Worst share error over 10 s, percentage points", "{:.2f}", 0.05, 50),
    ("loss_percent", "Run time missing, % of what those with work could have had", "{:.1f}", 1, 50),
    ("wait_p50_ms", "Wait from wake to running, median, ms", "{:.2f}", 0.1, 100),
    ("wait_p99_ms", "Wait from wake to running, P99, ms", "{:.2f}", 0.1, 100),
    ("wait_max_ms", "Wait from wake to running, longest, ms", "{:.2f}", 0.1, 100),
    ("starved_ms", "Longest time with work and not running, ms", "{:.1f}", 5, 500),
]
DRAWN = ["error_1s_pp", "loss_percent", "wait_p99_ms", "starved_ms"]


def cell(point, key, form):
    if "refused" in point:
        return point["refused"]
    return form.format(point[key]) if key in point else ""


def table(points, workloads, policies, key, form):
    used = [w for w in workloads if any(key in points[w, p] for p in policies)]
    lines = ["| | " + " | ".join(policies) + " |", "|---|" + "---:|" * len(policies)]
    for workload in used:
        cells = [cell(points[workload, policy], key, form) for policy in policies]
        lines.append(f"| {workload} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def draw(points, workloads, policies, path):
    figure, axes = plt.subplots(1, len(DRAWN), figsize=(24, 9), dpi=100, sharey=True)
    for axis, key in zip(axes, DRAWN):
        _, title, form, low, high = next(f for f in FIGURES if f[0] == key)
        values = [[points[w, p].get(key, float("nan")) for p in policies] for w in workloads]
        floor = [[max(v, low) if v == v else v for v in row] for row in values]
        norm = LogNorm(low, high, clip=True)
        axis.imshow(floor, cmap="RdYlGn_r", norm=norm, aspect="auto")
        for y, workload in enumerate(workloads):
            for x, policy in enumerate(policies):
                text = cell(points[workload, policy], key, form)
                dark = floor[y][x] == floor[y][x] and abs(float(norm(floor[y][x])) - 0.5) > 0.38
                axis.text(
                    x,
                    y,
                    text.replace(" at most", " max"),
                    ha="center",
                    va="center",
                    fontsize=6,
                    color="white" if dark else "black",
                )
        axis.set_title(title, fontsize=9)
        axis.set_xticks(range(len(policies)), policies, rotation=60, ha="right", fontsize=8)
        axis.set_yticks(range(len(workloads)), workloads, fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Software": None})


def main():
    with open(sys.argv[1], encoding="utf-8") as source:
        rows = [json.loads(line) for line in source if line.strip()]
    docs = pathlib.Path(sys.argv[2])
    points = {(r["workload"], r["policy"]): r for r in rows}
    workloads = list(dict.fromkeys(r["workload"] for r in rows))
    policies = list(dict.fromkeys(r["policy"] for r in rows))
    draw(points, workloads, policies, docs / "policies.png")

    parts = [f"### {title}\n\n{table(points, workloads, policies, key, form)}" for key, title, form, _, _ in FIGURES]
    page = docs / "policies.md"
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(before + BEGIN + "\n\n" + "\n\n".join(parts) + "\n\n" + END + after, encoding="utf-8")


if __name__ == "__main__":
    main()
