// SPDX-License-Identifier: GPL-2.0
//
// promises_tails_test.cpp - kernels of half a second that cannot be cut beside work that can: what
// they take beyond their share is made up for. One kernel alone is 2.5 % of 20 s, so a tenant at 1
// % is off by 1.5 pp of them in wall time, a hair more of delivered time.
#include "scenario/promise.hpp"

namespace qgpu::scenario {
namespace promises_tails_test {

struct Tail {
  uint32_t weight;  // of 100, of the tenant whose work cannot be cut
  double first_pp, later_pp;
};

class TailsBesideCuttable : public ::testing::TestWithParam<Tail> {};

TEST_P(TailsBesideCuttable, AreMadeUpFor) {
  QGPU_TRACE_SEED();
  const Tail &row = GetParam();
  World world({.seed = fakes::seed()});
  auto &a = world.addTenant({.weight = row.weight});
  auto &b = world.addTenant({.weight = 100 - row.weight});
  a.saturate({.duration_ns = 500 * kMilli, .preemption = CHIP_WFI});
  b.saturate({.duration_ns = 5 * kMilli});
  world.start();
  const Verdict first = watch(world, 0, 20 * kSecond);
  // What is owed at either end is at most half a kernel: 0.2 pp of this long.
  const Verdict later = watch(world, 0, 120 * kSecond);
  std::printf("%u %%: %.2f over the first 20 s, %.3f later\n", row.weight, first.percent(a.index),
              later.percent(a.index));
  EXPECT_NEAR(first.percent(a.index), row.weight, row.first_pp);
  EXPECT_NEAR(later.percent(a.index), row.weight, row.later_pp);
  const core_counters counters = world.counters(a);
  EXPECT_NEAR(static_cast<double>(counters.run_ns), static_cast<double>(world.chipRunNs(a)),
              static_cast<double>(counters.run_err_ns));
}

INSTANTIATE_TEST_SUITE_P(Promises, TailsBesideCuttable,
                         ::testing::Values(Tail{50, 1, 0.2}, Tail{80, 1, 0.2}, Tail{20, 1, 0.2},
                                           Tail{1, 1.5005, 0.2}),
                         [](const auto &info) {
                           return std::to_string(info.param.weight) + "Percent";
                         });

}  // namespace promises_tails_test
}  // namespace qgpu::scenario
