#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""plot.py OUT: draws what `qgpuctl plot` recorded, read from stdin, as PNG or SVG (by OUT's ending): for each card the
tenants' shares of its time, how much of the time they waited with work, how long single waits were, and, where the
scheduler's log was to be had, how long they were off the engine between two visits.

stdin: {"samples": [qgpuctl counters --json, ...], "log": [one object of qgpuctl log --json, ...]}"""
import json
import sys

try:
    import matplotlib
except ImportError:
    sys.exit("python3-matplotlib is not installed")
matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

# Wong's palette: told apart with any kind of colour blindness; dashes tell the same.
COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000"]
DASHES = ["-", "--", "-.", ":"]


def style(place):
    return {"color": COLOURS[place % len(COLOURS)], "linestyle": DASHES[place // len(COLOURS) % len(DASHES)]}


def rates(samples, card, tenant, key):
    """(seconds from the first sample, percent of elapsed) between each two samples that differ."""
    points, first, last = [], None, None
    for sample in samples:
        found = [c for c in sample["cards"] if c["uuid"] == card]
        if not found or tenant not in found[0]["tenants"]:
            last = None
            continue
        counters = found[0]["counters"]
        now = (counters["since_ns"], counters["elapsed_ns"], found[0]["tenants"][tenant][key])
        first = now[1] if first is None else first
        if last and now[0] == last[0] and now[1] > last[1]:
            points.append(((now[1] - first) / 1e9, 100 * (now[2] - last[2]) / (now[1] - last[1])))
        if not last or now[1] != last[1]:
            last = now
    return points


def waits(samples, card, tenant):
    """(ms, percent of the waits that were shorter) over the whole recording."""
    tellings = []
    for sample in samples:
        for found in sample["cards"]:
            told = found["tenants"].get(tenant, {}) if found["uuid"] == card else {}
            if "waits" in told:
                tellings.append((found["counters"]["since_ns"], told["waits"]["bins"]))
    tellings = [bins for since, bins in tellings if since == tellings[-1][0]]
    if not tellings:
        return []
    counts = [last - first for first, last in zip(tellings[0], tellings[-1])]
    total, points = 0, []
    for place, count in enumerate(counts[:-1]):  # the last bin has no bound
        total += count
        points.append((2 ** (16 + place) / 1e6, 100 * total / max(1, sum(counts))))
    return points if sum(counts) else []


def gaps_ms(log, card_index, tenant):
    """Times off the engine between two visits of the tenant while somebody else was on it."""
    gaps, left, others = [], None, False
    for record in log:
        if record["card"] != card_index:
            continue
        if record.get("tenant") == tenant:
            if left is not None and others:
                gaps.append((record["from_ns"] - left) / 1e6)
            left, others = record["to_ns"], False
        else:
            others |= record["seen"] in ("tenant", "nobody")
    return sorted(gaps)


def draw(recording, out):
    samples, log = recording["samples"], recording["log"]
    cards = {c["uuid"]: c for sample in samples for c in sample["cards"]}
    if not cards:
        sys.exit("nothing was recorded: no card tells counters")
    figure, rows = pyplot.subplots(len(cards), 4, figsize=(20, 4 * len(cards)), squeeze=False)
    for row, (uuid, card) in zip(rows, sorted(cards.items(), key=lambda item: item[1]["index"])):
        for place, tenant in enumerate(sorted(card["tenants"])):
            for axis, key in ((row[0], "run_ns"), (row[1], "wait_ns")):
                points = rates(samples, uuid, tenant, key)
                axis.plot([p[0] for p in points], [p[1] for p in points], label=tenant, **style(place))
            points = waits(samples, uuid, tenant)
            if points:
                row[2].plot([p[0] for p in points], [p[1] for p in points], label=tenant, **style(place))
            gaps = gaps_ms(log, card["index"], tenant)
            if gaps:
                row[3].step(gaps, [100 * (i + 1) / len(gaps) for i in range(len(gaps))], label=tenant, **style(place))
        row[0].set(title=f"card {card['index']}: share of its time", xlabel="s", ylabel="%", ylim=(0, 100))
        row[1].set(title="waiting with work", xlabel="s", ylabel="% of the time", ylim=(0, 100))
        row[2].set(title="single waits shorter than", xlabel="ms", ylabel="%", ylim=(0, 100), xscale="log")
        row[3].set(title="off the engine between two visits", xlabel="ms", ylabel="% of the gaps", ylim=(0, 100))
        row[0].legend(fontsize="small")
        for axis in row[2:]:
            if not axis.lines:
                axis.text(0.5, 0.5, "not told by who drives it", ha="center", transform=axis.transAxes)
    figure.tight_layout()
    figure.savefig(out)


if len(sys.argv) != 2 or not sys.argv[1].endswith((".png", ".svg")):
    sys.exit("usage: plot.py FILE.png|FILE.svg <RECORDING")
draw(json.load(sys.stdin), sys.argv[1])
