// SPDX-License-Identifier: GPL-2.0
// Keeps the card supplied in one of four ways: a queue of a given depth, launch-and-sync, arrivals
// at random instants, or steps of a network. A second thread reads the progress that the kernels
// write to memory.
#include "cuda_load.hpp"

#include <algorithm>
#include <random>
#include <thread>

#include "clock.hpp"
#include "cuda_card.hpp"

namespace qgpu {
namespace {

// A step of a network: so many kernels of so much of --kernel-us each.
constexpr unsigned kInferenceKernels = 20, kTrainingKernels = 60;
constexpr size_t kTrainingCopyBytes = 16 << 20;
constexpr uint64_t kSpinNs = 100'000;  // before an arrival, for sleeps end late

class Run {
 public:
  Run(const Options &options, const std::atomic<bool> &stop)
      : options_(options),
        stop_(stop),
        card_(static_cast<int>(options.card), options.loops_per_us),
        kernel_us_(static_cast<double>(options.kernel_ns) / 1e3) {
    measured_.card = card_.name();
    measured_.cuda_version = card_.driverVersion();
    measured_.loops_per_us = card_.loopsPerUs();
    hog();
    measured_.begin_ns = nowNs() + options_.warmup_ns;
    measured_.end_ns = measured_.begin_ns + options_.measured_ns;
  }

  CudaMeasured run() {
    std::atomic<bool> over = false;
    std::thread sampler([&] { sample(over); });
    try {
      load();
    } catch (...) {
      over = true;
      sampler.join();
      throw;
    }
    over = true;
    sampler.join();
    measured_.end_ns = std::min(measured_.end_ns, measured_.samples.back().time_ns);
    account();
    return std::move(measured_);
  }

 private:
  bool goesOn() const { return !stop_ && nowNs() < measured_.end_ns; }
  bool counts() const {
    const uint64_t now = nowNs();
    return now >= measured_.begin_ns && now < measured_.end_ns;
  }

  void load() {
    if (options_.copy_bytes)
      copy();
    else if (options_.arrivals_per_s > 0)
      arrivals();
    else if (options_.shape != Shape::kKernels)
      steps();
    else if (options_.depth == 1)
      launchAndSync();
    else
      queued();
    card_.synchronize();
  }

  void hog() {
    CUdeviceptr at = 0;
    if (!options_.hog_bytes) return;
    card_.driver().check(card_.driver().memAlloc(&at, options_.hog_bytes), "--hog-mb");
    card_.driver().check(card_.driver().memsetD8(at, 1, options_.hog_bytes), "--hog-mb");
    measured_.held_bytes = options_.hog_bytes;
  }

  // Sleeps no longer than half of what is queued takes.
  void queued() {
    uint64_t launched = 0;
    const auto nap_ns =
        static_cast<uint64_t>(std::clamp(kernel_us_ * options_.depth * 1e3 / 4, 5e3, 2e6));
    while (goesOn()) {
      while (launched - card_.ended() < options_.depth) {
        card_.launch(kernel_us_);
        launched++;
      }
      sleepUntil(nowNs() + nap_ns);
    }
  }

  void note(uint64_t due_ns) {
    if (counts()) measured_.latencies_ns.push_back(nowNs() - due_ns);
  }

  void launchAndSync() {
    while (goesOn()) {
      const uint64_t due = nowNs();
      card_.launch(kernel_us_);
      card_.synchronize();
      note(due);
      if (options_.host_ns) sleepUntil(nowNs() + options_.host_ns);
    }
  }

  // Who comes while another is served waits in line, and that counts.
  void arrivals() {
    std::mt19937_64 random(options_.seed);
    std::exponential_distribution<double> poisson(options_.arrivals_per_s);
    std::uniform_real_distribution<double> even(0.5 / options_.arrivals_per_s,
                                                1.5 / options_.arrivals_per_s);
    for (uint64_t due = nowNs(); goesOn();) {
      due += static_cast<uint64_t>(
          1e9 * (options_.spacing == Spacing::kPoisson ? poisson(random) : even(random)));
      if (due > nowNs() + kSpinNs) sleepUntil(due - kSpinNs);
      while (nowNs() < due) {
      }
      card_.launch(kernel_us_);
      card_.synchronize();
      note(due);
    }
  }

  // Inference: one step and wait. Training: a batch is copied and two steps are in flight.
  void steps() {
    const bool training = options_.shape == Shape::kTraining;
    const unsigned kernels = training ? kTrainingKernels : kInferenceKernels;
    const CUhandle graph = card_.makeGraph(kernels, kernel_us_ / kernels);
    const CudaDriver &cuda = card_.driver();
    CUdeviceptr batch = 0;
    void *host = nullptr;
    cuda.check(cuda.memAlloc(&batch, kTrainingCopyBytes), "cuMemAlloc");
    cuda.check(cuda.memHostAlloc(&host, kTrainingCopyBytes, 0), "cuMemHostAlloc");
    for (uint64_t launched = 0; goesOn(); launched += kernels) {
      const uint64_t due = nowNs();
      if (training)
        cuda.check(cuda.memcpyHtoDAsync(batch, host, kTrainingCopyBytes, card_.stream()),
                   "cuMemcpyHtoDAsync");
      card_.launchGraph(graph);
      if (!training)
        card_.synchronize();
      else
        while (goesOn() && launched - card_.ended() + kernels > 2 * kernels)
          sleepUntil(nowNs() + 20'000);
      note(due);
      if (options_.host_ns) sleepUntil(nowNs() + options_.host_ns);
    }
  }

  void copy() {
    const CudaDriver &cuda = card_.driver();
    CUdeviceptr to = 0;
    void *from = nullptr;
    cuda.check(cuda.memAlloc(&to, options_.copy_bytes), "cuMemAlloc");
    cuda.check(cuda.memHostAlloc(&from, options_.copy_bytes, 0), "cuMemHostAlloc");
    while (goesOn()) {
      for (unsigned i = 0; i < options_.depth; i++)
        cuda.check(cuda.memcpyHtoDAsync(to, from, options_.copy_bytes, card_.stream()),
                   "cuMemcpyHtoDAsync");
      card_.synchronize();
      if (counts()) measured_.copied_bytes += options_.depth * options_.copy_bytes;
    }
  }

  void takeSample() { measured_.samples.push_back({nowNs(), card_.workUs(), card_.ended()}); }

  // At the beginning and at the end of what is measured as well.
  void sample(const std::atomic<bool> &over) {
    const uint64_t edges[] = {measured_.begin_ns, measured_.begin_ns + options_.measured_ns};
    for (uint64_t at = nowNs(); !over;) {
      takeSample();
      const uint64_t before = at;
      at += options_.sample_ns;
      for (const uint64_t edge : edges)
        if (edge > before && edge < at) at = edge;
      while (!over && nowNs() < at) sleepUntil(std::min(at, nowNs() + 20'000'000));
    }
    takeSample();
  }

  // What was done until then, between the samples that are next to it in a straight line.
  CudaSample stateAt(uint64_t ns) const {
    const auto &s = measured_.samples;
    const auto after = std::lower_bound(
        s.begin(), s.end(), ns, [](const CudaSample &a, uint64_t t) { return a.time_ns < t; });
    if (after == s.end()) return s.empty() ? CudaSample{} : s.back();
    if (after == s.begin()) return *after;
    const CudaSample &before = *(after - 1);
    const double part = static_cast<double>(ns - before.time_ns) /
                        static_cast<double>(after->time_ns - before.time_ns);
    return {ns, before.work_us + (after->work_us - before.work_us) * part,
            before.kernels +
                static_cast<uint64_t>(static_cast<double>(after->kernels - before.kernels) * part)};
  }

  void account() {
    if (measured_.end_ns <= measured_.begin_ns) return;
    const CudaSample begin = stateAt(measured_.begin_ns), end = stateAt(measured_.end_ns);
    measured_.work_us = end.work_us - begin.work_us;
    measured_.kernels = end.kernels - begin.kernels;
  }

  const Options &options_;
  const std::atomic<bool> &stop_;
  CudaCard card_;
  double kernel_us_;
  CudaMeasured measured_;
};

}  // namespace

CudaMeasured runCudaLoad(const Options &options, const std::atomic<bool> &stop) {
  return Run(options, stop).run();
}

}  // namespace qgpu
