// SPDX-License-Identifier: GPL-2.0
#include "clock.hpp"

#include <ctime>

namespace qgpu {

namespace {

uint64_t readNs(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return static_cast<uint64_t>(now.tv_sec) * kSecondNs + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

uint64_t MonotonicClock::nowNs() const { return readNs(CLOCK_MONOTONIC); }

uint64_t MonotonicClock::cpuNs() const { return readNs(CLOCK_PROCESS_CPUTIME_ID); }

}  // namespace qgpu
