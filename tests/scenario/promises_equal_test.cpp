// SPDX-License-Identifier: GPL-2.0
//
// promises_equal_test.cpp - equal-share: all that are there have the same, whatever they run.
#include "scenario/promise.hpp"

namespace qgpu::scenario {
namespace promises_equal_test {

class AllEqual : public ::testing::TestWithParam<unsigned> {};

TEST_P(AllEqual, WithinATenthOfAPointOverTenSeconds) {
  World world({.policy = CORE_EQUAL_SHARE});
  for (unsigned i = 0; i < GetParam(); i++)
    world.addTenant({.weight = 1 + 50 * i})
        .saturate({.duration_ns = i % 3 ? kMilli : 40 * kMilli}, 2);
  world.start();
  const Verdict verdict = watch(world, kSecond, 10 * kSecond);
  double least = 100, most = 0, effective = 0;
  for (unsigned i = 0; i < GetParam(); i++) {
    core_view view;
    core_tenant_view(&world.tenant(i).core, &view);
    EXPECT_NEAR(view.share_ppm, 1e6 / GetParam(), 1);
    // What is shown is what it gets.
    effective = 100.0 * static_cast<double>(view.window_ns) /
                static_cast<double>(world.tenant(i).core.period_ns);
    EXPECT_NEAR(verdict.wallPercent(i), effective, 0.1);
    least = std::min(least, verdict.wallPercent(i));
    most = std::max(most, verdict.wallPercent(i));
  }
  std::printf("%u: %.3f ... %.3f %% of %.3f\n", GetParam(), least, most, effective);
  EXPECT_LE(most - least, 0.1);
}

INSTANTIATE_TEST_SUITE_P(Promises, AllEqual, ::testing::Values(2u, 4u, 8u, 16u));

}  // namespace promises_equal_test
}  // namespace qgpu::scenario
