// SPDX-License-Identifier: GPL-2.0
//
// promises_hang_test.cpp - row 50: a kernel that keeps the engine for longer than hang_timeout
// while others wait is told of, and its tenant has windows at its share; work that yields never is.
#include "scenario/promise.hpp"

namespace qgpu::scenario {
namespace promises_hang_test {

constexpr uint64_t kHangNs = 200 * kMilli;

TEST(HangPromise, Row50_AKernelThatDoesNotYieldIsToldOfAndItsTenantSetApart) {
  World world;
  auto &a = world.addTenant({.weight = 30, .hang_ns = kHangNs}),
       &b = world.addTenant({.weight = 70});
  b.saturate({.duration_ns = kMilli}, 2);
  world.start();
  world.runFor(kSecond);
  a.channel().launch({.duration_ns = kSecond, .preemption = CHIP_WFI});
  world.runFor(kSecond + 100 * kMilli);
  EXPECT_EQ(a.core.hangs, 1u);
  EXPECT_EQ(b.core.hangs, 0u);
  EXPECT_TRUE(a.core.misfit);
  // What it took is made up for, and then both have their shares.
  a.saturate({.duration_ns = kMilli}, 2);
  const Verdict verdict = watch(world, 4 * kSecond, 10 * kSecond);
  EXPECT_NEAR(verdict.percent(a.index), 30, 0.5);
  EXPECT_EQ(a.core.hangs, 1u);
}

TEST(HangPromise, Row50_ATenantThatNeverYieldsTakesNoMoreThanItsShareInTheLongRun) {
  World world;
  auto &a = world.addTenant({.weight = 30, .hang_ns = kHangNs}),
       &b = world.addTenant({.weight = 70});
  a.saturate({.duration_ns = kSecond, .preemption = CHIP_WFI}, 2);
  b.saturate({.duration_ns = 5 * kMilli}, 2);
  world.start();
  const Verdict verdict = watch(world, 0, 100 * kSecond);
  EXPECT_NEAR(verdict.percent(a.index), 30, 1);
  EXPECT_GE(a.core.hangs, 20u);
}

TEST(HangPromise, WorkThatYieldsOrTroublesNobodyIsNoHang) {
  World world;
  auto &a = world.addTenant({.hang_ns = kHangNs}), &b = world.addTenant({.hang_ns = kHangNs});
  a.saturate({.duration_ns = 5 * kSecond}, 2);  // can be cut
  world.start();
  world.runFor(3 * kSecond);  // alone
  b.saturate({.duration_ns = 50 * kMilli, .preemption = CHIP_WFI}, 2);
  world.runFor(10 * kSecond);
  EXPECT_EQ(a.core.hangs, 0u);
  EXPECT_EQ(b.core.hangs, 0u);
}

}  // namespace promises_hang_test
}  // namespace qgpu::scenario
