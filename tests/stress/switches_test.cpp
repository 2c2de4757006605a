// SPDX-License-Identifier: GPL-2.0
//
// switches_test.cpp - the scheduler on every reading of the chip that the sources leave open:
// shares, limits, exclusive windows and a driver that changes its list hold on each.
#include <gtest/gtest.h>

#include "scenario/verdict.hpp"
#include "unit/chip_switches.hpp"

namespace qgpu::stress {
namespace switches_test {

using namespace scenario;

class EachReading : public ::testing::TestWithParam<std::tuple<fakes::ChipSwitch, bool>> {
 protected:
  WorldOptions options() const {
    WorldOptions options;
    options.sim.config.sw.*std::get<0>(GetParam()).member = std::get<1>(GetParam());
    return options;
  }
};

TEST_P(EachReading, SharesHold) {
  World world(options());
  auto &a = world.addTenant({.weight = 300}), &b = world.addTenant({.weight = 100});
  a.saturate({.duration_ns = 2 * kMilli}, 2);
  b.channel().syncLaunch({.duration_ns = 300 * kMicro}, 10 * kMicro);
  auto &c = world.addTenant({.weight = 100});
  c.saturate({.duration_ns = 3 * kMilli, .preemption = CHIP_WFI}, 2);
  world.start();
  world.runFor(kSecond);
  const uint64_t from = world.nowNs();
  std::mt19937_64 random(7);
  world.runToWithListChanges(from + 2 * kSecond, 50 * kMilli, random);
  EXPECT_EQ(world.lastError(), 0);
  const Verdict verdict(world, from, world.nowNs());
  EXPECT_LE(verdict.worstPp(a.index, 0.6, about(kSecond)), 1);
  EXPECT_LE(verdict.worstPp(b.index, 0.2, about(kSecond)), 1);
  EXPECT_LE(verdict.worstPp(c.index, 0.2, about(kSecond)), 1);
  EXPECT_TRUE(world.card().protocolErrors().empty()) << world.card().protocolErrors().front();
}

TEST_P(EachReading, ALimitHolds) {
  World world(options());
  auto &a = world.addTenant(fixedAt(200'000)), &b = world.addTenant();
  a.saturate({.duration_ns = kMilli}, 2);
  b.saturate({.duration_ns = 5 * kMilli}, 2);
  world.start();
  world.runFor(kSecond);
  const uint64_t from = world.nowNs();
  world.runFor(2 * kSecond);
  EXPECT_EQ(world.lastError(), 0);
  const Verdict verdict(world, from, world.nowNs());
  EXPECT_NEAR(verdict.wallPercent(a.index), 20, 0.3);
  EXPECT_LE(verdict.mostWallExcessPp(a.index, 0.2, {kSecond}), 0.5);
  // Alone it is held all the same.
  b.channel().stop();
  world.runFor(kSecond);
  const uint64_t alone = world.nowNs();
  world.runFor(kSecond);
  EXPECT_NEAR(Verdict(world, alone, world.nowNs()).wallPercent(a.index), 20, 0.3);
}

INSTANTIATE_TEST_SUITE_P(On, EachReading,
                         ::testing::Combine(::testing::ValuesIn(fakes::kChipSwitches),
                                            ::testing::Values(true)),
                         fakes::nameOfSwitch);
// All off is the default, whichever is named.
INSTANTIATE_TEST_SUITE_P(Default, EachReading,
                         ::testing::Combine(::testing::Values(fakes::kChipSwitches[0]),
                                            ::testing::Values(false)),
                         fakes::nameOfSwitch);

}  // namespace switches_test
}  // namespace qgpu::stress
