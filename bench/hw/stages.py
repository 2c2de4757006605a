# SPDX-License-Identifier: GPL-2.0
"""The stages of bench.py: each asks for something and compares."""
import os
import signal
import subprocess
import time

import network
from loads import ledger_state, worst_deviation

TWO_S = 2_000_000_000
# What a process has of the card by its setting up is less.
WORKS_NS = 30_000_000
# What many lose at least: each a switch in a cycle, which a wake-up of 50 ms bounds.
SWITCH_NS, MANY_CYCLE_NS = 210_000, 50_000_000


def tenants_of(weights, **more):
    return [{"id": i + 1, "weight": w, **more} for i, w in enumerate(weights)]


def controlled(bench, pids, timeout=10):
    """Waits until all are under control; the gap of each in ms."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        known = {o["pid"]: o["uncontrolled_ns"] / 1e6 for o in bench.executor.stats()["objects"]}
        if all(pid in known for pid in pids):
            return [known[pid] for pid in pids]
        time.sleep(0.02)
    raise AssertionError("not under control after %d s: %s" % (timeout, bench.executor.events[-5:]))


def working(bench, count, timeout=20):
    """Waits until each of so many tenants computes: one that starts is under control before that."""
    at_begin = bench.executor.stats()["tenants"]
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        now = bench.executor.stats()["tenants"]
        if all(now[i]["run_ns"] >= at_begin[i]["run_ns"] + WORKS_NS for i in range(1, count + 1)):
            return
        time.sleep(0.02)
    raise AssertionError("not at work after %d s" % timeout)


def compare(bench, stage, case, loads, asked, spans, alone):
    """Rows of spans that were watched with these loads running, after they have ended."""
    for (name, watched, want) in spans:
        begin, end = watched[0]["time_ns"], watched[-1]["time_ns"]
        got = [load.share(begin, end) / alone for load in loads]
        states = [(lambda ns, l=load: l.work_at(ns)) for load in loads]
        by_trace = [ledger_state(watched, i + 1) for i in range(len(loads))]
        trace = [(s(end) - s(begin)) / (end - begin) for s in by_trace]
        total = sum(got)
        worst = worst_deviation((states, begin, end), want, TWO_S)
        worst_trace = worst_deviation((by_trace, begin, end), want, TWO_S)
        off = max(abs(g / total - w) for g, w in zip(got, want)) * 100
        cpu = (watched[-1]["cpu_ns"] - watched[0]["cpu_ns"]) / (end - begin)
        bench.row(stage, case + " " + name, got=got, sum=total, off_pp=off, worst_2s_pp=worst,
                  trace=trace, trace_worst_2s_pp=worst_trace, cpu=cpu,
                  lost=watched[-1]["lost_records"], ok=off <= 1 and worst <= 1)


def shares(bench):
    """Saturating processes at weights; share of what all got, over the run and every 2 s."""
    for kernel in (100, 5000, 50000):
        alone = bench.alone(kernel_us=kernel)["share"]
        executor = bench.start_executor()
        for ratios in ([(1, 1), (2, 1), (3, 1), (9, 1)], [(4, 3, 2, 1)]):
            n = len(ratios[0])
            executor.plan("burst-share", tenants_of([100 * w for w in ratios[0]]))
            running = [bench.load(120, kernel_us=kernel) for _ in range(n)]
            for i, load in enumerate(running):
                executor.add(load.pid, i + 1)
            gaps = controlled(bench, [load.pid for load in running])
            working(bench, n)
            spans = []
            for ratio in ratios:
                executor.plan("burst-share", tenants_of([100 * w for w in ratio]))
                time.sleep(0.6)
                total = sum(ratio)
                spans.append((":".join(map(str, ratio)), bench.watch(4), [w / total for w in ratio]))
            loads = bench.end_loads()
            compare(bench, "shares", "%g us" % kernel, loads, None, spans, alone)
            bench.row("shares", "%g us %d control gap" % (kernel, n), gap_ms=gaps)


def sync(bench):
    """Launch-and-sync at 30 % beside a queued one at 70 %."""
    executor = bench.start_executor()
    queued_alone = bench.alone(kernel_us=200)["share"]
    for kernel in (100, 300, 1000, 5000):
        alone = bench.alone(kernel_us=kernel, depth=1)["share"]
        executor.plan("burst-share", tenants_of([30, 70]))
        running = [bench.load(120, kernel_us=kernel, depth=1), bench.load(120, kernel_us=200)]
        for i, load in enumerate(running):
            executor.add(load.pid, i + 1)
        controlled(bench, [load.pid for load in running])
        time.sleep(3)
        watched = bench.watch(10)
        loads = bench.end_loads()
        begin, end = watched[0]["time_ns"], watched[-1]["time_ns"]
        got = [loads[0].share(begin, end), loads[1].share(begin, end) / queued_alone]
        t0, t1 = watched[0]["tenants"], watched[-1]["tenants"]
        trace = [(t1[i]["run_ns"] - t0[i]["run_ns"]) / (end - begin) for i in (1, 2)]
        need = {100: 0.26, 300: 0.28, 1000: 0.29, 5000: 0.295}[kernel]
        bench.row("sync", "%g us" % kernel, got=got, sum=sum(got), trace=trace, alone=alone,
                  windows=t1[1]["windows"] - t0[1]["windows"], gates=t1[2]["gates"] - t0[2]["gates"],
                  cpu=(watched[-1]["cpu_ns"] - watched[0]["cpu_ns"]) / (end - begin),
                  ok=got[0] >= need and sum(got) >= 0.96)


def delivered(bench):
    """What n equal processes get together, of what one gets alone: without qgpu, and with it."""
    alone = bench.alone(kernel_us=200)["share"]
    for n in (2, 4, 8):
        for policy in ("best-effort", "burst-share"):
            executor = bench.start_executor()
            executor.plan(policy, tenants_of([100] * n))
            running = [bench.load(120, kernel_us=200) for _ in range(n)]
            for i, load in enumerate(running):
                executor.add(load.pid, i + 1)
            controlled(bench, [load.pid for load in running], 20)
            working(bench, n)
            time.sleep(1)
            watched = bench.watch(3)
            loads = bench.end_loads()
            begin, end = watched[0]["time_ns"], watched[-1]["time_ns"]
            got = [load.share(begin, end) / alone for load in loads]
            need = {2: 0.985, 4: 0.98, 8: 0.965}[n]
            bench.row("delivered", "%d %s" % (n, policy), sum=sum(got), least=min(got), most=max(got),
                      cpu=(watched[-1]["cpu_ns"] - watched[0]["cpu_ns"]) / (end - begin),
                      **({"ok": sum(got) >= need} if policy != "best-effort" else {}))


def ceilings(bench):
    """A lone process with a ceiling, against itself without one."""
    alone = bench.alone(kernel_us=200)["share"]
    for policy, key in (("burst-share", "ceiling"), ("fixed-share", "guarantee")):
        executor = bench.start_executor()
        executor.plan(policy, [{"id": 1, "guarantee": 0.3}])
        load = bench.load(120, kernel_us=200)
        executor.add(load.pid, 1)
        controlled(bench, [load.pid])
        spans = []
        for ceiling in (0.3, 0.1, 0.5):
            executor.plan(policy, [{"id": 1, key: ceiling}])
            time.sleep(1)
            spans.append((ceiling, bench.watch(8)))
        (load,) = bench.end_loads()
        for ceiling, watched in spans:
            begin, end = watched[0]["time_ns"], watched[-1]["time_ns"]
            got = load.share(begin, end) / alone
            t0, t1 = watched[0]["tenants"][1], watched[-1]["tenants"][1]
            bench.row("ceilings", "%s %g" % (policy, ceiling), got=got, off=got / ceiling - 1,
                      trace=(t1["run_ns"] - t0["run_ns"]) / (end - begin),
                      gates=t1["gates"] - t0["gates"],
                      cpu=(watched[-1]["cpu_ns"] - watched[0]["cpu_ns"]) / (end - begin),
                      ok=abs(got / ceiling - 1) <= 0.01)


def online(bench):
    """Latency of an online tenant of 200 kernels of 300 us a second beside saturating offline ones."""
    shape = {"kernel_us": 300, "arrivals": 200, "spacing": "even"}
    alone = bench.alone(seconds=5, **shape)["latency_us"]
    bench.row("online", "alone", **alone)
    for n, kernel in ((1, 200), (3, 200), (8, 200), (3, 50000)):
        executor = bench.start_executor()
        executor.plan("burst-share", [{"id": 1, "class": "online", "wake_ns": 0}] +
                      [{"id": i + 2, "class": "offline"} for i in range(n)])
        others = [bench.load(120, kernel_us=kernel) for _ in range(n)]
        for i, load in enumerate(others):
            executor.add(load.pid, i + 2)
        controlled(bench, [load.pid for load in others], 20)
        load = bench.load(10, warmup=2, **shape)
        executor.add(load.pid, 1)
        result = bench.finish(load)
        watched = [executor.stats()]
        loads = bench.end_loads()
        begin, end = result["begin_ns"], result["end_ns"]
        lone = bench.alone(kernel_us=kernel)["share"]
        got = [other.share(begin, end) / lone for other in loads]
        latency = result["latency_us"]
        bench.row("online", "%d x %g us" % (n, kernel), **latency,
                  p99_over=latency["p99"] - alone["p99"], p999_over=latency["p99.9"] - alone["p99.9"],
                  others=got, others_sum=sum(got), online=result["share"], cpu_ns=watched[0]["cpu_ns"],
                  ok=latency["p99"] - alone["p99"] <= 450 and latency["p99.9"] - alone["p99.9"] <= 1000
                  and sum(got) >= 0.94 * (1 - result["share"]))


def longest_silence_ms(load, begin_ns, end_ns, busy=1e-3):
    """The longest span in which a load's counters did not move, between samples."""
    samples = [s for s in load.result["samples"] if begin_ns <= s[0] <= end_ns]
    longest, since, done = 0, samples[0][0], samples[0][1]
    for at, work in samples:
        if work > done + busy:
            longest, since, done = max(longest, at - since), at, work
    return max(longest, samples[-1][0] - since) / 1e6


def cycles(bench):
    """1,000 times stopped and let run: one that queues, one that waits for each kernel, one that sleeps."""
    executor = bench.start_executor()
    executor.plan("fixed-share", tenants_of([100] * 3, guarantee=0.3))
    shapes = ({}, {"depth": 1}, {"arrivals": 50, "spacing": "even"})
    running = [bench.load(240, kernel_us=300, **shape) for shape in shapes]
    for i, load in enumerate(running):
        executor.add(load.pid, i + 1)
    controlled(bench, [load.pid for load in running])
    begin, first = time.monotonic_ns(), executor.stats()
    deadline, gates = time.monotonic() + 120, 0
    while gates < 1000 and time.monotonic() < deadline:
        time.sleep(0.5)
        now = executor.stats()
        gates = sum(now["tenants"][i]["gates"] - first["tenants"][i]["gates"] for i in now["tenants"])
    end = time.monotonic_ns()
    executor.plan("best-effort", tenants_of([100] * 3))
    time.sleep(1)
    after = time.monotonic_ns()
    left = [o for o in executor.stats()["objects"] if o["gated"] or o["slice_ns"] != o["found_ns"]]
    time.sleep(1)
    events = [e["kind"] for e in executor.events]
    loads = bench.end_loads()
    silent = [longest_silence_ms(load, begin, end) for load in loads]
    shares = [load.share(begin, end) for load in loads]
    freed = [load.share(after, after + 900_000_000) for load in loads]
    bench.row("cycles", "3 tenants", gates=gates, seconds=(end - begin) / 1e9, shares=shares,
              silent_ms=silent, freed=freed, not_as_found=len(left), no_progress=events.count("no-progress"),
              ok=gates >= 1000 and max(silent) <= 550 and not left and min(freed) > 0.005)


class Killed:
    """Two processes under fixed-share 30 % each, and who controls them killed while one is stopped."""

    def __init__(self, bench):
        self.bench, self.times = bench, []
        self.plan()
        self.loads = [bench.load(300, kernel_us=200) for _ in range(2)]
        self.add()

    def plan(self):
        self.bench.start_executor().plan("fixed-share", tenants_of([100, 100], guarantee=0.3))

    def add(self):
        for i, load in enumerate(self.loads):
            self.bench.executor.add(load.pid, i + 1)
        controlled(self.bench, [load.pid for load in self.loads])

    def wait_stopped(self):
        deadline = time.monotonic() + 5
        while not any(o["gated"] for o in self.bench.executor.stats()["objects"]):
            assert time.monotonic() < deadline, "nobody is stopped any more"
            time.sleep(0.003)
        self.times.append(time.monotonic_ns())

    def worker(self):
        os.kill(self.bench.executor.worker(), signal.SIGKILL)
        self.bench.executor.connect()
        assert self.bench.executor.hello["processes"] == 2

    def guard(self, both):
        """And what a service manager does then."""
        executor, worker = self.bench.executor, self.bench.executor.worker()
        if both:
            os.kill(worker, signal.SIGSTOP)  # so that it cannot put things in order
        executor.process.kill()
        if both:
            os.kill(worker, signal.SIGKILL)
        executor.process.wait()
        deadline = time.monotonic() + 10
        while os.path.exists("/proc/%d" % worker) and time.monotonic() < deadline:
            time.sleep(0.005)
        binary = os.path.join(self.bench.folder, "qgpu-exec")
        subprocess.run([binary, "--release", "--run-dir", executor.run_dir], check=True,
                       stderr=subprocess.DEVNULL)
        self.bench.executor = None
        self.plan()
        self.add()


def kills(bench):
    """100 times the worker, the guard or both killed while a tenant is stopped; and a tenant killed."""
    killed = Killed(bench)
    time.sleep(1)
    kinds = ["worker", "worker", "worker", "guard", "both"] * 20
    for kind in kinds:
        killed.wait_stopped()
        if kind == "worker":
            killed.worker()
        else:
            killed.guard(both=kind == "both")
        time.sleep(0.3)
    first, second = killed.loads
    bench.running.remove(second)
    second.kill()
    time.sleep(1.2)
    left = len(bench.executor.stats()["objects"])
    bench.executor.plan("best-effort", tenants_of([100, 100]))
    time.sleep(2)
    bench.end_loads()
    end = first.result["samples"][-1][0]
    gaps = [longest_silence_ms(first, at, at + 1_000_000_000) for at in killed.times]
    after = first.share(end - 1_500_000_000, end - 100_000_000) / bench.alone(kernel_us=200)["share"]
    for kind, most in (("worker", 500), ("guard", 1000), ("both", 1000)):
        of = [gap for k, gap in zip(kinds, gaps) if k == kind]
        bench.row("kills", kind, kills=len(of), worst_silence_ms=max(of), ok=max(of) <= most)
    bench.row("kills", "a tenant", objects_left=left, share_after=after, ok=left == 1 and after > 0.97)


def worker_seconds(executor):
    """What the worker spent in user space and in the kernel."""
    with open("/proc/%d/stat" % executor.worker()) as f:
        ticks = f.read().rsplit(")", 1)[1].split()[11:13]
    return [int(t) / os.sysconf("SC_CLK_TCK") for t in ticks]


def many(bench):
    """16 equal processes: what they get, and what the executor costs once all are known."""
    n, alone = 16, bench.alone(kernel_us=200)["share"]
    executor = bench.start_executor()
    executor.plan("burst-share", tenants_of([100] * n))
    running = [bench.load(120, kernel_us=200) for _ in range(n)]
    for i, load in enumerate(running):
        executor.add(load.pid, i + 1)
    gaps = controlled(bench, [load.pid for load in running], 30)
    time.sleep(12)
    spent = worker_seconds(executor)
    watched = bench.watch(10, every=0.5)
    spent = [(after - before) / 10 for before, after in zip(spent, worker_seconds(executor))]
    loads = bench.end_loads()
    begin, end = watched[0]["time_ns"], watched[-1]["time_ns"]
    got = [load.share(begin, end) / alone for load in loads]
    cpu = (watched[-1]["cpu_ns"] - watched[0]["cpu_ns"]) / (end - begin)
    bench.row("many", "16", sum=sum(got), least=min(got), most=max(got), gap_most_ms=max(gaps), cpu=cpu,
              cpu_user=spent[0], cpu_system=spent[1],
              controls_per_s=(watched[-1]["controls"] - watched[0]["controls"]) / (end - begin) * 1e9,
              lost=watched[-1]["lost_records"], ok=sum(got) >= 1 - n * SWITCH_NS / MANY_CYCLE_NS and cpu <= 0.02)


def joins(bench):
    """A process that starts beside three: how long after its first work it is under control."""
    executor = bench.start_executor()
    executor.plan("burst-share", tenants_of([100] * 4))
    for i in range(3):
        executor.add(bench.load(120, kernel_us=200).pid, i + 1)
    controlled(bench, [load.pid for load in bench.running])
    time.sleep(2)
    gaps = []
    for _ in range(6):
        load = bench.load(120, kernel_us=200)
        executor.add(load.pid, 4)
        gaps += controlled(bench, [load.pid])
        time.sleep(0.5)
        bench.running.remove(load)
        load.kill()
        time.sleep(0.5)
    bench.row("joins", "fourth", gap_ms=gaps, ok=max(gaps) <= 200)


STAGES = {f.__name__: f for f in (shares, sync, delivered, ceilings, online, many, joins, cycles, kills)}
STAGES["network"] = network.stage
STAGES["fixed"] = network.fixed
STAGES["others"] = network.others
