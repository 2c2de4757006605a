#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""plot_test.py SCRIPT: a recording becomes a PNG and an SVG, an empty one a sentence. Exit 77: matplotlib is missing."""
import json
import os
import subprocess
import sys
import tempfile

try:
    import matplotlib  # noqa: F401
except ImportError:
    print("SKIP: python3-matplotlib is not installed")
    sys.exit(77)


def sample(second):
    tenants = {name: {"run_ns": part * second, "wait_ns": part * second // 3,
                      "waits": {"bins": [second * k for k in range(16)], "sum_ns": second}}
               for name, part in (("web", 600_000_000), ("batch", 300_000_000))}
    counters = {"since_ns": 1, "elapsed_ns": second * 1_000_000_000}
    return {"cards": [{"index": 0, "uuid": "GPU-0", "counters": counters, "tenants": tenants}]}


def record(serial):
    return {"card": 0, "seen": "tenant", "tenant": ("web", "batch")[serial % 2], "from_ns": serial * 1000, "to_ns": serial * 1000 + 900}


def draw(recording, out):
    return subprocess.run([sys.executable, sys.argv[1], out], input=json.dumps(recording), text=True,
                          stderr=subprocess.PIPE, check=False)


with tempfile.TemporaryDirectory() as folder:
    recording = {"samples": [sample(s) for s in range(1, 6)], "log": [record(i) for i in range(50)]}
    for name, head in (("a.png", b"\x89PNG"), ("a.svg", b"<?xml")):
        path = os.path.join(folder, name)
        done = draw(recording, path)
        assert done.returncode == 0, done.stderr
        with open(path, "rb") as file:
            assert file.read(len(head)) == head, name
    done = draw({"samples": [], "log": []}, os.path.join(folder, "b.png"))
    assert done.returncode == 1 and "nothing was recorded" in done.stderr, done.stderr
