// SPDX-License-Identifier: GPL-2.0
// Load on a real card through CUDA, and what came of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "options.hpp"

namespace qgpu {

struct CudaSample {
  uint64_t time_ns;  // CLOCK_MONOTONIC
  double work_us;    // done since the start of the program
  uint64_t kernels;  // ended
};

struct CudaMeasured {
  std::string card;
  int cuda_version = 0;
  double loops_per_us = 0;
  uint64_t begin_ns = 0, end_ns = 0;   // CLOCK_MONOTONIC
  double work_us = 0;                  // kernel time done in between, as on a card of one's own
  uint64_t kernels = 0;                // ended in between
  uint64_t copied_bytes = 0;           // in between
  uint64_t held_bytes = 0;             // by --hog-mb
  std::vector<uint64_t> latencies_ns;  // with --arrivals and at depth 1: from due to done
  std::vector<CudaSample> samples;     // every --sample-ms, from the start of the program
};

// Throws CudaError. `stop` ends it early; what was measured until then is returned.
CudaMeasured runCudaLoad(const Options &options, const std::atomic<bool> &stop);

}  // namespace qgpu
