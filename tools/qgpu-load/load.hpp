// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "options.hpp"
#include "tenant.hpp"

namespace qgpu {

// What was got in the measured time: kernels by the time at which the card ended them.
struct Measured {
  uint64_t begin_ns = 0, end_ns = 0;   // CLOCK_MONOTONIC
  uint64_t rings = 0;                  // all of them, warm-up included
  std::vector<uint64_t> kernels;       // per TSG
  std::vector<uint64_t> latencies_ns;  // from the ring to the end
};

// Runs the load until the measured time is over or `stop` is set (then end_ns is that moment).
Measured runLoad(const Options &options, Tenant &tenant, const std::atomic<bool> &stop);

}  // namespace qgpu
