# SPDX-License-Identifier: GPL-2.0
"""ResNet-50 fp16 inference with PyTorch, three batches in flight, as one process of the bench.

  network_load.py SECONDS BATCH...

Says "ready", reads an instant (ns of CLOCK_MONOTONIC) from its input, and then runs each batch size for
so many seconds, one after the other. Prints samples: per batch size, when how many images were done.
"""
import json
import sys
import time

IN_FLIGHT = 3


def main():
    import torch
    import torchvision
    seconds, batches = float(sys.argv[1]), [int(b) for b in sys.argv[2:]]
    torch.backends.cudnn.benchmark = True
    net = torchvision.models.resnet50().half().cuda().eval().to(memory_format=torch.channels_last)
    with torch.no_grad():
        inputs = {b: torch.randn(b, 3, 224, 224, dtype=torch.half, device="cuda")
                  .to(memory_format=torch.channels_last) for b in batches}
        for b in batches:
            for _ in range(4):
                net(inputs[b])
        torch.cuda.synchronize()
        print("ready", flush=True)
        start = int(sys.stdin.readline())
        out = {}
        for k, b in enumerate(batches):
            begin = start + int(k * seconds * 1e9)
            end = begin + int(seconds * 1e9)
            while time.monotonic_ns() < begin:
                time.sleep(0.001)
            done, samples, flying = 0, [], []
            while time.monotonic_ns() < end:
                net(inputs[b])
                event = torch.cuda.Event()
                event.record()
                flying.append(event)
                if len(flying) < IN_FLIGHT:
                    continue
                flying.pop(0).synchronize()
                done += b
                samples.append((time.monotonic_ns(), done))
            torch.cuda.synchronize()
            out[b] = samples
        print(json.dumps(out), flush=True)


main()
