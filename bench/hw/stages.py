# SPDX-License-Identifier: GPL-2.0
"""The stages of bench.py: each asks for something and compares."""
import os
import signal
import subprocess
import time

import network
from loads import ledger_state, worst_deviation

TWO_S = 2_000_000_000


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


def kills(bench):
    """The worker, the guard and both killed while a tenant is stopped, and a tenant killed."""
    executor = bench.start_executor()
    executor.plan("fixed-share", [{"id": 1, "guarantee": 0.3}, {"id": 2, "guarantee": 0.3}])
    running = [bench.load(120, kernel_us=200) for _ in range(2)]
    for i, load in enumerate(running):
        executor.add(load.pid, i + 1)
    controlled(bench, [load.pid for load in running])
    time.sleep(1)
    times = []
    for k in range(25):
        while not any(o["gated"] for o in executor.stats()["objects"]):
            time.sleep(0.003)
        times.append(time.monotonic_ns())
        os.kill(executor.worker(), signal.SIGKILL)
        executor.connect()
        time.sleep(0.35 if k % 5 else 2.2)
    restarts = executor.hello["restarts"]
    processes = executor.hello["processes"]
    running[1].kill()
    time.sleep(1.2)
    left = executor.stats()["objects"]
    guard = executor.process
    worker = executor.worker()
    os.kill(worker, signal.SIGSTOP)  # so that it cannot put things in order
    guard.kill()
    os.kill(worker, signal.SIGKILL)
    guard.wait()
    released = subprocess.run([os.path.join(bench.folder, "qgpu-exec"), "--release", "--run-dir",
                               executor.run_dir], capture_output=True, text=True)
    bench.executor = None
    time.sleep(2)
    running[0].process.send_signal(15)
    first = running[0]
    result = first.wait()
    bench.running = []
    end = result["samples"][-1][0]
    after = first.share(end - 1_500_000_000, end - 100_000_000)
    gaps = []
    for at in times:
        t, base = at, first.work_at(at)
        while t < at + 1_000_000_000 and first.work_at(t) <= base + 500:
            t += 10_000_000
        gaps.append((t - at) / 1e6)
    bench.row("kills", "worker x25", restarts=restarts, processes=processes, worst_gap_ms=max(gaps),
              ok=processes == 2 and max(gaps) <= 500)
    bench.row("kills", "tenant", objects=len(left), ok=len(left) == 1)
    bench.row("kills", "guard and worker", release=released.returncode, said=released.stderr.strip(),
              share_after=after, ok=after > 0.97)


STAGES = {f.__name__: f for f in (shares, sync, delivered, ceilings, online, kills)}
STAGES["network"] = network.stage
