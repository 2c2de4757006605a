# SPDX-License-Identifier: GPL-2.0
"""The 2:1 figure with a real network: two processes of network_load.py under none, qgpu, MPS and HAMi-core."""
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

BATCHES = [1, 4, 16, 64, 128, 256]
PHASE_S = 5.0
# Without enforcement, and then with it, in one phase of the same processes.
NONE_S, ENFORCED_S = 3.0, 5.0
# Of each span, what is left out at its ends: a plan takes hold, batches in flight end.
SETTLE_S, END_S = 1.2, 0.3


def start(environments, phase_s=PHASE_S):
    """One process an entry, each with its own additions to the environment."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "network_load.py")
    command = [sys.executable, script, str(phase_s)] + [str(b) for b in BATCHES]
    running = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                text=True, env={**os.environ, **more}) for more in environments]
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


def samples_of(running):
    """Of each process, per batch size, when how many images were done."""
    out = []
    for process in running:
        out.append(json.loads(process.stdout.readline()))
        process.wait(timeout=30)
    return out


def rates(samples, begin, phase_s=PHASE_S, span=(0.0, PHASE_S)):
    """Images a second of each process, per batch size, in this span of each phase."""
    out = []
    for of in samples:
        rate = []
        for k, batch in enumerate(BATCHES):
            low = begin + int((k * phase_s + span[0] + SETTLE_S) * 1e9)
            high = begin + int((k * phase_s + span[1] - END_S) * 1e9)
            inside = [s for s in of[str(batch)] if low <= s[0] <= high]
            if len(inside) < 2:
                raise ValueError("too few batches of %d" % batch)
            (t0, n0), (t1, n1) = inside[0], inside[-1]
            rate.append((n1 - n0) / (t1 - t0) * 1e9)
        out.append(rate)
    return out


def controlled(bench, policy, tenants, phase_s):
    """Two processes under control, and how much of a processor the executor had taken by then."""
    executor = bench.start_executor()
    executor.plan(policy, tenants)
    running = start([{}, {}], phase_s)
    for i, process in enumerate(running):
        executor.add(process.pid, i + 1)
    deadline = time.monotonic() + 10
    while len(executor.stats()["objects"]) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    return running, executor.stats()


def cpu_since(bench, before):
    after = bench.executor.stats()
    return (after["cpu_ns"] - before["cpu_ns"]) / (after["time_ns"] - before["time_ns"])


def by_turns(bench, policy, tenants):
    """Rates without enforcement and under a policy, of the same two processes within each phase."""
    phase_s = NONE_S + ENFORCED_S
    running, before = controlled(bench, "best-effort", tenants, phase_s)
    begin = go(running, 1.0)
    for k in range(len(BATCHES)):
        for at, which in ((0.0, "best-effort"), (NONE_S, policy)):
            due = begin / 1e9 + k * phase_s + at
            time.sleep(max(0.0, due - time.monotonic()))
            bench.executor.plan(which, tenants)
    samples = samples_of(running)
    cpu = cpu_since(bench, before)
    none = rates(samples, begin, phase_s, (0.0, NONE_S))
    return none, rates(samples, begin, phase_s, (NONE_S, phase_s)), cpu


def alone_rates():
    running = start([{}])
    begin = go(running)
    (alone,) = rates(samples_of(running), begin)
    return alone


@contextlib.contextmanager
def mps_server():
    """A control daemon of MPS of our own, in folders of our own."""
    folder = tempfile.mkdtemp(prefix="qgpu-mps-")
    env = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
    subprocess.run(["nvidia-cuda-mps-control", "-d"], env={**os.environ, **env}, check=True, timeout=30)
    try:
        yield env
    finally:
        subprocess.run(["nvidia-cuda-mps-control"], env={**os.environ, **env}, input="quit\n", text=True, timeout=60)
        shutil.rmtree(folder, ignore_errors=True)


def under_mps(bench):
    bench.clean()
    with mps_server() as env:
        running = start([{**env, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": percent} for percent in ("66", "33")])
        begin = go(running, 1.0)
        return rates(samples_of(running), begin)


def under_hami(bench, library):
    bench.clean()
    with tempfile.TemporaryDirectory(prefix="qgpu-hami-") as folder:
        running = start([{"LD_PRELOAD": library, "CUDA_DEVICE_SM_LIMIT": percent, "CUDA_DEVICE_MEMORY_LIMIT": "60g",
                          "GPU_CORE_UTILIZATION_POLICY": "FORCE", "LIBCUDA_LOG_LEVEL": "0",
                          "CUDA_DEVICE_MEMORY_SHARED_CACHE": os.path.join(folder, percent)}
                         for percent in ("66", "33")])
        begin = go(running, 1.0)
        return rates(samples_of(running), begin)


def judge(policy, batch, row):
    if policy == "burst-share" and batch >= 128:
        row["ok"] = abs(row["ratio"] - 2) <= 0.02 and (batch < 256 or row["of_alone_256"] >= 0.985)
    elif policy == "burst-share" and batch == 64:
        row["ok"] = abs(row["ratio"] - 2) <= 0.06
    elif policy == "burst-share" and batch <= 4:
        row["ok"] = row["of_none"] >= 0.95
    elif policy == "fixed-share" and batch == 1:
        row["ok"] = abs(row["ratio"] - 2) <= 0.3


def note(bench, policy, a, b, alone, none, **more):
    """A row a batch size. Of none: both together against what both had without enforcement."""
    for k, batch in enumerate(BATCHES):
        both = a[k] + b[k]
        row = {"ratio": a[k] / b[k], "sum": both, "of_alone_256": both / alone[-1], **more}
        if none:
            row["of_none"] = both / none[k]
        judge(policy, batch, row)
        bench.row("network", "%s %d" % (policy, batch), **row)
    return [x + y for x, y in zip(a, b)]


def stage(bench):
    """ResNet-50 fp16, asked 2:1, by batch size: images a second of two processes, of one alone at 256."""
    alone = alone_rates()
    for k, batch in enumerate(BATCHES):
        bench.row("network", "alone %d" % batch, rate=alone[k])
    none, enforced, cpu = by_turns(bench, "burst-share", [{"id": 1, "weight": 200}, {"id": 2, "weight": 100}])
    sums = note(bench, "best-effort", *none, alone, None)
    note(bench, "burst-share", *enforced, alone, sums, cpu=cpu)


def fixed(bench):
    """The same under fixed-share, 60:30."""
    alone = alone_rates()
    tenants = [{"id": 1, "guarantee": 0.6}, {"id": 2, "guarantee": 0.3}]
    running, before = controlled(bench, "fixed-share", tenants, PHASE_S)
    begin = go(running, 1.0)
    a, b = rates(samples_of(running), begin)
    note(bench, "fixed-share", a, b, alone, None, cpu=cpu_since(bench, before))


def others(bench):
    """The same under MPS 66:33, and HAMi-core 66:33 where HAMI_LIBRARY names its library."""
    alone = alone_rates()
    if shutil.which("nvidia-cuda-mps-control"):
        note(bench, "mps", *under_mps(bench), alone, None)
    else:
        print("  MPS: skipped, nvidia-cuda-mps-control is not here")
    if os.environ.get("HAMI_LIBRARY"):
        note(bench, "hami", *under_hami(bench, os.environ["HAMI_LIBRARY"]), alone, None)
