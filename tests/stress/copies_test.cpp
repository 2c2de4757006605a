// SPDX-License-Identifier: GPL-2.0
//
// copies_test.cpp - tenants that copy on the graphics copy engines, within the slices of their TSG
// on the graphics runlist: graphics itself is idle meanwhile, and all the same that is their time.
#include <gtest/gtest.h>

#include "scenario/verdict.hpp"

namespace qgpu::stress {
namespace copies_test {

using namespace scenario;

// Of all time of the runlist, whichever engine it was on.
double partOf(World &world, const WorldTenant &tenant, uint64_t before_ns, uint64_t from_ns) {
  return static_cast<double>(world.chipRunNs(tenant) - before_ns) /
         static_cast<double>(world.nowNs() - from_ns);
}

TEST(GraphicsCopies, DoNotTakeFromWhoComputes) {
  World world;
  auto &a = world.addTenant(), &b = world.addTenant();
  a.saturate({.duration_ns = kMilli}, 2);
  b.saturate({.duration_ns = kMilli, .preemption = CHIP_COPY}, 2);
  world.start();
  world.runFor(2 * kSecond);
  const uint64_t from = world.nowNs(), a_ns = world.chipRunNs(a), b_ns = world.chipRunNs(b);
  world.runFor(4 * kSecond);
  EXPECT_NEAR(partOf(world, a, a_ns, from), partOf(world, b, b_ns, from), 0.01);
  EXPECT_GT(partOf(world, a, a_ns, from), 0.48);
}

TEST(GraphicsCopies, AreWithinALimit) {
  World world;
  auto &a = world.addTenant(fixedAt(200'000)), &b = world.addTenant();
  a.saturate({.duration_ns = kMilli, .preemption = CHIP_COPY}, 2);
  b.saturate({.duration_ns = kMilli}, 2);
  world.start();
  world.runFor(2 * kSecond);
  const uint64_t from = world.nowNs(), a_ns = world.chipRunNs(a), b_ns = world.chipRunNs(b);
  world.runFor(4 * kSecond);
  EXPECT_NEAR(partOf(world, a, a_ns, from), 0.2, 0.003);
  EXPECT_GT(partOf(world, b, b_ns, from), 0.75);
}

}  // namespace copies_test
}  // namespace qgpu::stress
