// SPDX-License-Identifier: GPL-2.0
//
// promises_turns_test.cpp - the rotation beside windows goes on where it was.
#include "scenario/promise.hpp"

namespace qgpu::scenario {
namespace {

// A tail is on for longer than one image: the rotation goes on where it was cut nevertheless.
TEST(Turns, ATailOnTheClockCostsNobodyItsSlice) {
  QGPU_TRACE_SEED();
  World world({.seed = fakes::seed()});
  auto &small = world.addTenant({.weight = 300}), &large = world.addTenant({.weight = 1400});
  auto &fixed = world.addTenant(fixedAt(160'000));
  small.saturate({.duration_ns = 2 * kMilli}, 2);
  large.saturate({.duration_ns = 5 * kMilli}, 2);
  fixed.saturate({.duration_ns = 27 * kMilli, .preemption = CHIP_WFI}, 2);
  world.start();
  const Verdict verdict = watch(world, 5 * kSecond, 25 * kSecond);
  const auto ran = [&](const WorldTenant &tenant) {
    return static_cast<double>(verdict.runNs(tenant.index));
  };
  EXPECT_NEAR(100 * ran(large) / (ran(large) + ran(small)), 100 * 14.0 / 17, 0.35);
}

}  // namespace
}  // namespace qgpu::scenario
