// SPDX-License-Identifier: GPL-2.0
//
// promises_mixed_card_test.cpp - row 58: fixed, guaranteed, online and offline tenants on one card,
// each of whose promises holds at once.
#include "scenario/promise.hpp"

namespace qgpu::scenario {
namespace promises_mixed_card_test {

enum OnlineWork { kAsksSixPercent, kSyncs, kSaturates, kSleeps };

struct Row {
  const char *name;
  OnlineWork online;
  bool guaranteed_asleep;
  // Percent of wall time that the guaranteed tenant, and both offline ones together, have at least.
  double guaranteed, offline;
  // What the fixed tenant may be off by over 10 s, and have too much in one: theory.rst, WHAT
  // LOOKS COST.
  double ten_pp = 0.1, one_pp = 0.5;
};

// Fixed 20 % of wall time; 30 % and weight 100, normal; weight 100, online; two offline.
class MixedCard : public ::testing::TestWithParam<Row> {};

TEST_P(MixedCard, Row58_KeepsEachPromiseAtOnce) {
  QGPU_TRACE_SEED();
  const Row &row = GetParam();
  World world({.seed = fakes::seed()});
  auto &fixed = world.addTenant(fixedAt(200'000));
  auto &guaranteed = world.addTenant({.guarantee_ppm = 300'000});
  auto &online = world.addTenant({.class_ = CORE_ONLINE});
  auto &first = world.addTenant({.class_ = CORE_OFFLINE});
  auto &second = world.addTenant({.class_ = CORE_OFFLINE});
  for (auto *tenant : {&fixed, &first, &second}) tenant->saturate({.duration_ns = kMilli}, 2);
  if (!row.guaranteed_asleep) guaranteed.saturate({.duration_ns = kMilli}, 2);
  Work work(world, online);
  const fakes::Kernel request = {.duration_ns = 300 * kMicro};
  if (row.online == kAsksSixPercent) work.poisson(request, 200, fakes::seed());
  if (row.online == kSyncs) work.sync(request, 50 * kMicro);
  if (row.online == kSaturates) work.queued(request);
  world.start();
  const uint64_t from = world.nowNs() + 2 * kSecond;
  const Verdict verdict = watch(world, 2 * kSecond, 20 * kSecond);
  std::printf("%s: fixed %.3f guaranteed %.2f online %.2f offline %.2f + %.2f, delivered %.2f %%\n",
              row.name, verdict.wallPercent(0), verdict.wallPercent(1), verdict.wallPercent(2),
              verdict.wallPercent(3), verdict.wallPercent(4), verdict.delivered());
  const double ten = verdict.worstWallPp(fixed.index, 0.2, {10 * kSecond});
  const double one = verdict.mostWallExcessPp(fixed.index, 0.2, about(kSecond));
  std::printf("fixed: worst 10 s off by %.3f pp, most in 1 s %+.3f pp\n", ten, one);
  EXPECT_LE(ten, row.ten_pp);
  EXPECT_LE(one, row.one_pp);
  EXPECT_GE(verdict.wallPercent(guaranteed.index), row.guaranteed);
  if (!row.guaranteed_asleep) {
    EXPECT_LE(verdict.mostShortPp(guaranteed.index, 0.3, about(kSecond)), 0.5);
  }
  EXPECT_GE(verdict.wallPercent(3) + verdict.wallPercent(4), row.offline);
  EXPECT_NEAR(verdict.wallPercent(3), verdict.wallPercent(4), 0.5);
  if (row.online != kAsksSixPercent) return;
  std::vector<double> waits =
      bench::waits(verdict.ran(online.index), work.wakes(), from, world.nowNs());
  // Windows of the fixed tenant that would miss its period go without it, a tenth of the time.
  std::printf("online waits P50 %.0f P90 %.0f P99 %.0f us\n", bench::quantile(waits, 0.5) / 1e3,
              bench::quantile(waits, 0.9) / 1e3, bench::quantile(waits, 0.99) / 1e3);
  EXPECT_LE(bench::quantile(waits, 0.5), 510e3);
}

const auto byName = [](const auto &info) { return std::string(info.param.name); };
INSTANTIATE_TEST_SUITE_P(Promises, MixedCard,
                         ::testing::Values(Row{"Saturates", kSaturates, false, 45, 0},
                                           Row{"Sleeps", kSleeps, false, 70, 0},
                                           Row{"SaturatesAlone", kSaturates, true, 0, 0},
                                           Row{"SleepsAlone", kSleeps, true, 0, 74}),
                         byName);
INSTANTIATE_TEST_SUITE_P(
    BrokenWindows, MixedCard,
    ::testing::Values(Row{"AsksSixPercent", kAsksSixPercent, false, 60, 0, 0.3, 1.2},
                      Row{"Syncs", kSyncs, false, 45, 0, 0.3, 1.2},
                      Row{"AsksSixPercentAlone", kAsksSixPercent, true, 0, 60, 0.3, 1.2},
                      Row{"SyncsAlone", kSyncs, true, 0, 0, 0.3, 1.2}),
    byName);

// Fixed 20 % and seven by weight.
class FixedAmongSeven : public ::testing::TestWithParam<bool> {};

TEST_P(FixedAmongSeven, HasTwentyAndTheOthersElevenEach) {
  QGPU_TRACE_SEED();
  World world({.seed = fakes::seed()});
  auto &fixed = world.addTenant(fixedAt(200'000));
  if (GetParam())
    fixed.channel().syncLaunch({.duration_ns = 300 * kMicro}, 50 * kMicro);
  else
    fixed.saturate({.duration_ns = kMilli}, 2);
  for (int i = 0; i < 7; i++) world.addTenant().saturate({.duration_ns = kMilli}, 2);
  world.start();
  const Verdict verdict = watch(world, kSecond, 20 * kSecond);
  std::printf("fixed %.3f, others %.2f %.2f %.2f ... %%\n", verdict.wallPercent(0),
              verdict.wallPercent(1), verdict.wallPercent(2), verdict.wallPercent(3));
  // A window of one with gaps is as long as looks say: theory.rst, WHAT LOOKS COST.
  EXPECT_LE(verdict.worstWallPp(0, 0.2, {10 * kSecond}), GetParam() ? 0.35 : 0.1);
  for (size_t i = 1; i < 8; i++) {
    EXPECT_NEAR(verdict.wallPercent(i), 11, 0.5) << i;
    EXPECT_LE(verdict.longestGapNs(i), 100 * kMilli) << i;
    // Who goes on after each of those windows is billed from then on.
    const core_counters counters = world.counters(world.tenant(i));
    EXPECT_NEAR(static_cast<double>(counters.run_ns),
                static_cast<double>(world.chipRunNs(world.tenant(i))),
                static_cast<double>(counters.run_err_ns))
        << i;
  }
}

const auto workName = [](const auto &info) { return info.param ? "Sync" : "Queued"; };
INSTANTIATE_TEST_SUITE_P(Promises, FixedAmongSeven, ::testing::Bool(), workName);

// 98:1:1 with the big one asleep: nobody pays for slices of one that is not there.
TEST(MixedCardPromise, TwoSmallOnesLoseLittleWhileTheBigOneSleeps) {
  World world;
  world.addTenant({.weight = 9800});
  world.addTenant({.weight = 100}).saturate({.duration_ns = kMilli});
  world.addTenant({.weight = 100}).saturate({.duration_ns = kMilli});
  world.start();
  const Verdict verdict = watch(world, kSecond, 10 * kSecond);
  EXPECT_GE(verdict.delivered(), 98);
  EXPECT_NEAR(verdict.percent(1), 50, 0.2);
}

}  // namespace promises_mixed_card_test
}  // namespace qgpu::scenario
