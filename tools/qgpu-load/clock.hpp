// SPDX-License-Identifier: GPL-2.0
// The clock that loads live by: CLOCK_MONOTONIC, in nanoseconds.
#pragma once

#include <cstdint>
#include <ctime>

namespace qgpu {

inline uint64_t nowNs() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

inline void sleepUntil(uint64_t ns) {
  const timespec t = {.tv_sec = static_cast<time_t>(ns / 1'000'000'000),
                      .tv_nsec = static_cast<long>(ns % 1'000'000'000)};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr);
}

}  // namespace qgpu
