// SPDX-License-Identifier: GPL-2.0
// The only source of time in qgpud; tests bring their own.
#pragma once

#include <cstdint>

namespace qgpu {

class Clock {
 public:
  virtual ~Clock() = default;

  // Nanoseconds of CLOCK_MONOTONIC: the clock of the kernel's statistics too. Never goes back.
  virtual uint64_t nowNs() const = 0;

  // Processor time that this process has taken.
  virtual uint64_t cpuNs() const = 0;
};

class MonotonicClock final : public Clock {
 public:
  uint64_t nowNs() const override;
  uint64_t cpuNs() const override;
};

constexpr uint64_t kMillisecondNs = 1'000'000;
constexpr uint64_t kSecondNs = 1'000'000'000;

}  // namespace qgpu
