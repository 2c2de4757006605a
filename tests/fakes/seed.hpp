// SPDX-License-Identifier: GPL-2.0
// Randomness that can be repeated: QGPU_SEED=N, else a fresh seed; it is part of the failure's
// text.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

namespace qgpu::fakes {

inline uint64_t seed() {
  static const uint64_t value = [] {
    const char *text = std::getenv("QGPU_SEED");
    return text ? std::strtoull(text, nullptr, 0) : uint64_t{std::random_device{}()};
  }();
  ::testing::Test::RecordProperty("QGPU_SEED", std::to_string(value));
  return value;
}

#define QGPU_TRACE_SEED() \
  SCOPED_TRACE("repeat with QGPU_SEED=" + std::to_string(::qgpu::fakes::seed()))

}  // namespace qgpu::fakes
