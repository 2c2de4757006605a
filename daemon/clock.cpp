// SPDX-License-Identifier: GPL-2.0
#include "clock.hpp"

#include <ctime>

namespace qgpu {

uint64_t MonotonicClock::nowNs() const {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * kSecondNs + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace qgpu
