# SPDX-License-Identifier: GPL-2.0
"""Loads of a bench: processes of qgpu-load, what they did when, and the executor beside them."""
import json
import os
import subprocess
import tempfile
import time

from executor import Executor

class Load:
    """One qgpu-load --cuda, and its counters when it has ended."""

    def __init__(self, command):
        self.out = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command, stdout=self.out)
        self.result = None

    @property
    def pid(self):
        return self.process.pid

    def wait(self, timeout=120):
        self.process.wait(timeout=timeout)
        self.out.seek(0)
        raw = self.out.read()
        if raw:
            self.result = json.loads(raw)
        return self.result

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def work_at(self, ns):
        """Kernel time done until then, in us, between samples in a straight line."""
        samples = self.result["samples"]
        low, high = 0, len(samples) - 1
        while high - low > 1:
            mid = (low + high) // 2
            if samples[mid][0] <= ns:
                low = mid
            else:
                high = mid
        (t0, w0), (t1, w1) = samples[low], samples[high]
        return w0 + (w1 - w0) * (ns - t0) / max(1, t1 - t0)

    def share(self, begin_ns, end_ns):
        return (self.work_at(end_ns) - self.work_at(begin_ns)) * 1e3 / (end_ns - begin_ns)


class Bench:
    def __init__(self, folder, card, head):
        self.folder, self.card, self.head = folder, card, head
        self.rows, self.running, self.alone_cache = [], [], {}
        self.executor, self.loops = None, None

    def row(self, stage, case, **values):
        row = {"stage": stage, "case": case, **values}
        self.rows.append(row)
        shown = []
        for key, value in values.items():
            if isinstance(value, float):
                value = "%.4f" % value
            elif isinstance(value, list) and value and isinstance(value[0], float):
                value = " ".join("%.4f" % v for v in value)
            shown.append("%s %s" % (key, value))
        print("  %-28s %s" % (case, ", ".join(shown)), flush=True)
        return row

    def load(self, seconds, **options):
        command = [os.path.join(self.folder, "qgpu-load"), "--cuda", "--json", "--seconds", str(seconds),
                   "--card", self.card]
        if self.loops:
            command += ["--loops-per-us", repr(self.loops)]
        for key, value in options.items():
            command += ["--" + key.replace("_", "-"), str(value)]
        load = Load(command)
        self.running.append(load)
        return load

    def calibrate(self):
        self.loops = self.finish(self.load(1, kernel_us=200))["loops_per_us"]

    def finish(self, load):
        """The result of one that ends by itself."""
        self.running.remove(load)
        return load.wait()

    def alone(self, seconds=1.5, **options):
        """What such a load reaches with the card to itself."""
        key = json.dumps(options, sort_keys=True)
        if key not in self.alone_cache:
            self.alone_cache[key] = self.finish(self.load(seconds, **options))
        return self.alone_cache[key]

    def alone_cache_json(self):
        return {key: {k: value[k] for k in ("share", "kernels", "latency_us") if k in value}
                for key, value in self.alone_cache.items()}

    def start_executor(self):
        if not self.executor:
            self.executor = Executor(os.path.join(self.folder, "qgpu-exec"), self.card)
        return self.executor

    def watch(self, seconds, every=0.05):
        """The ledger over so long: a list of stats."""
        out, end = [], time.monotonic() + seconds
        while time.monotonic() < end:
            out.append(self.executor.stats())
            time.sleep(every)
        out.append(self.executor.stats())
        return out

    def end_loads(self):
        for load in self.running:
            load.process.send_signal(15)
        for load in self.running:
            load.wait()
        ended, self.running = self.running, []
        return ended

    def clean(self):
        for load in self.running:
            load.kill()
        self.running = []
        if self.executor:
            status = self.executor.stop()
            if status:
                self.row("clean", "executor", error="ended with status %d" % status)
            self.executor = None


def worst_deviation(pairs, asked, length_ns, step_ns=50_000_000):
    """Of the shares of all that ran, over every span of a length; pairs: state(ns) a tenant, begin, end."""
    states, begin, end = pairs
    worst, at = 0.0, begin
    while at + length_ns <= end:
        done = [state(at + length_ns) - state(at) for state in states]
        total = sum(done)
        if total > 0:
            worst = max(worst, max(abs(d / total - a) for d, a in zip(done, asked)))
        at += step_ns
    return worst * 100


def ledger_state(watched, tenant):
    times = [s["time_ns"] for s in watched]
    runs = [s["tenants"][tenant]["run_ns"] for s in watched]

    def state(ns):
        low, high = 0, len(times) - 1
        while high - low > 1:
            mid = (low + high) // 2
            if times[mid] <= ns:
                low = mid
            else:
                high = mid
        return runs[low] + (runs[high] - runs[low]) * (ns - times[low]) / max(1, times[high] - times[low])
    return state
