// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace qgpu {

// How a kernel can be taken off the engine; values of the simulated kernel's descriptor.
enum class Preemption : uint32_t { kWfi = 0, kCta = 1, kCilp = 2 };

// What a real card is given: kernels one by one, or steps of many kernels as one graph: one at a
// time (inference), or with a copy before each and two in flight (training).
enum class Shape { kKernels, kInference, kTraining };

// Arrivals: independent of each other, or about evenly, half to one and a half of the mean apart.
enum class Spacing { kPoisson, kEven };

// What the load does, all times in nanoseconds.
struct Options {
  unsigned card = 0;
  uint64_t kernel_ns = 1'000'000;
  unsigned depth = 32;            // kernels outstanding per TSG
  std::optional<unsigned> batch;  // if given, it set kernel_ns and host_ns
  uint64_t host_ns = 0;           // time the host takes to prepare one kernel
  uint64_t measured_ns = 10'000'000'000;
  uint64_t warmup_ns = 300'000'000;
  Preemption preemption = Preemption::kCilp;
  unsigned tsgs = 1;
  bool json = false;

  // With --cuda, a real card.
  bool cuda = false;
  Shape shape = Shape::kKernels;
  Spacing spacing = Spacing::kPoisson;
  double arrivals_per_s = 0;  // 0 = as fast as they are served
  double loops_per_us = 0;    // speed of the card; 0 = measured
  uint64_t seed = 1;
  uint64_t copy_bytes = 0, hog_bytes = 0;
  uint64_t sample_ns = 50'000'000;
};

// What --batch stands for: an inference step whose GPU time grows with the batch, and a host that
// prepares one step after the other.
//   kernel length = 10 us + 20 us per item, host time = 1 ms per kernel
// So a tenant alone asks for 3 % of the card at batch 1, 33 % at 16, 65 % at 32, and saturates it
// from batch 50 on.
uint64_t batchKernelNs(unsigned batch);
uint64_t batchHostNs();

// Parses the command line; on --help or a mistake it prints and returns the exit status instead.
std::optional<int> parseOptions(int argc, char **argv, Options &options);

std::string preemptionName(Preemption preemption);

}  // namespace qgpu
