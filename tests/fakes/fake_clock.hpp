// SPDX-License-Identifier: GPL-2.0
// Time that moves only when a test says so.
#pragma once

#include "clock.hpp"

namespace qgpu::fakes {

class FakeClock final : public Clock {
 public:
  uint64_t nowNs() const override { return now_ns; }
  uint64_t cpuNs() const override { return cpu_ns += cpu_step_ns; }
  void advance(uint64_t ns) { now_ns += ns; }

  uint64_t now_ns = 1000 * kSecondNs;
  uint64_t cpu_step_ns = 0;  // from one reading to the next
  mutable uint64_t cpu_ns = 0;
};

}  // namespace qgpu::fakes
