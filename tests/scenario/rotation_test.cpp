// SPDX-License-Identifier: GPL-2.0
//
// rotation_test.cpp - burst-share: shares by weight and guarantee in the hardware's own rotation,
// judged by the chip's record.
#include <functional>
#include <gtest/gtest.h>

#include "scenario/world.hpp"

namespace qgpu::scenario {
namespace rotation_test {

constexpr uint64_t kSettle = kSecond;

struct Pair {
  uint32_t ratio;
  uint64_t kernel_ns;
};

class SaturatingPair : public ::testing::TestWithParam<Pair> {};

TEST_P(SaturatingPair, KeepsItsShareInEverySecond) {
  const Pair &row = GetParam();
  World world;
  auto &a = world.addTenant({.weight = 100 * row.ratio});
  auto &b = world.addTenant();
  a.saturate({.duration_ns = row.kernel_ns});
  b.saturate({.duration_ns = row.kernel_ns});
  world.start();
  const uint64_t begin = world.nowNs() + kSettle, end = begin + 9 * kSecond;
  world.runTo(end);

  const Record record = world.record();
  const double share = row.ratio / (row.ratio + 1.0);
  EXPECT_LE(record.worstShareError(a.index, share, begin, end, Record::aboutOneSecond()), 0.6);
  EXPECT_TRUE(world.card().protocolErrors().empty());
}

INSTANTIATE_TEST_SUITE_P(Grid, SaturatingPair,
                         ::testing::Values(Pair{1, 10 * kMicro}, Pair{1, kMilli},
                                           Pair{1, 50 * kMilli}, Pair{2, 10 * kMicro},
                                           Pair{2, kMilli}, Pair{2, 50 * kMilli},
                                           Pair{3, 10 * kMicro}, Pair{3, kMilli},
                                           Pair{3, 50 * kMilli}, Pair{9, 10 * kMicro},
                                           Pair{9, kMilli}, Pair{9, 50 * kMilli}),
                         [](const auto &info) {
                           return "R" + std::to_string(info.param.ratio) + "_Kernel" +
                                  std::to_string(info.param.kernel_ns / kMicro) + "us";
                         });

double deliveredBy(size_t tenants, uint64_t *switch_ns) {
  World world;
  for (size_t i = 0; i < tenants; i++) world.addTenant().saturate({.duration_ns = kMilli});
  world.start();
  world.runFor(kSettle);
  const chip_totals before = world.card().totals();
  world.runFor(5 * kSecond);
  const chip_totals after = world.card().totals();
  if (switch_ns && after.switches > before.switches)
    *switch_ns = (after.switch_ns - before.switch_ns) / (after.switches - before.switches);
  return static_cast<double>(after.run_ns - before.run_ns);
}

TEST(Rotation, TwoTogetherDeliverNearlyAsMuchAsOneAlone) {
  uint64_t switch_ns = 0;
  const double alone = deliveredBy(1, nullptr), two = deliveredBy(2, &switch_ns);
  std::printf("two deliver %.2f %% of one alone; measured s = %llu ns\n", 100 * two / alone,
              static_cast<unsigned long long>(switch_ns));
  EXPECT_GE(two / alone, 0.988);
  EXPECT_NEAR(static_cast<double>(switch_ns), 100e3, 5e3);
  EXPECT_GE(deliveredBy(4, nullptr) / alone, 0.98);
  EXPECT_GE(deliveredBy(8, nullptr) / alone, 0.98);
  EXPECT_GE(deliveredBy(16, nullptr) / alone, 0.965);
}

struct Many {
  const char *name;
  std::vector<uint32_t> weights;
  std::vector<uint32_t> guarantees_ppm;
  std::vector<double> shares;
};

class ManySaturating : public ::testing::TestWithParam<Many> {};

TEST_P(ManySaturating, KeepTheirSharesInEverySecond) {
  const Many &row = GetParam();
  World world;
  for (size_t i = 0; i < row.weights.size(); i++)
    world
        .addTenant({.weight = row.weights[i],
                    .guarantee_ppm = row.guarantees_ppm.empty() ? 0 : row.guarantees_ppm[i]})
        .saturate({.duration_ns = kMilli});
  world.start();
  const uint64_t begin = world.nowNs() + kSettle, end = begin + 6 * kSecond;
  world.runTo(end);
  const Record record = world.record();
  for (size_t i = 0; i < row.weights.size(); i++)
    EXPECT_LE(record.worstShareError(i, row.shares[i], begin, end, Record::aboutOneSecond()), 0.6)
        << row.name << ", tenant " << i;
}

INSTANTIATE_TEST_SUITE_P(
    Mixes, ManySaturating,
    ::testing::Values(
        Many{"4:3:2:1", {400, 300, 200, 100}, {}, {0.4, 0.3, 0.2, 0.1}},
        Many{"8 equal", std::vector<uint32_t>(8, 100), {}, std::vector<double>(8, 1 / 8.0)},
        Many{"16 equal", std::vector<uint32_t>(16, 100), {}, std::vector<double>(16, 1 / 16.0)},
        Many{"guarantee 50 % and weights", {100, 100, 300}, {500'000, 0, 0}, {0.6, 0.1, 0.3}}),
    [](const auto &info) { return "Row" + std::to_string(info.index); });

TEST(Rotation, SeveralTsgsOfATenantShareItsPart) {
  World world;
  auto &a = world.addTenant({.tsgs = 3});
  auto &b = world.addTenant();
  a.saturate({.duration_ns = kMilli});
  b.saturate({.duration_ns = kMilli});
  world.start();
  const uint64_t begin = world.nowNs() + kSettle, end = begin + 5 * kSecond;
  world.runTo(end);
  EXPECT_LE(world.record().worstShareError(a.index, 0.5, begin, end, Record::aboutOneSecond()),
            0.6);
}

TEST(Rotation, PacedTenantsGetAllTheyAskWhereThereIsRoom) {
  // Each launches 330 us of work every ms, whether the last is done or not: with the switches 86 %
  // of the card. Windows that hold gaps would cost the second 13 % of what it asks.
  World world;
  auto &a = world.addTenant({.weight = 200}), &b = world.addTenant({.weight = 100});
  std::function<void()> pace = [&] {
    a.channel().launch({.duration_ns = 330 * kMicro});
    b.channel().launch({.duration_ns = 330 * kMicro});
    world.card().at(world.nowNs() + kMilli, pace);
  };
  world.start();
  world.card().at(world.nowNs() + kMilli, pace);
  world.runFor(kSettle);
  const uint64_t a0 = a.channel().completed(), b0 = b.channel().completed();
  world.runFor(5 * kSecond);
  EXPECT_NEAR(static_cast<double>(a.channel().completed() - a0), 5000, 50);
  EXPECT_NEAR(static_cast<double>(b.channel().completed() - b0), 5000, 125);
}

TEST(Rotation, SmallBatchesGetAllTheyAsk) {
  // Each asks 20 %: 200 us of work, then 800 us of thought.
  World world;
  auto &a = world.addTenant({.weight = 200}), &b = world.addTenant({.weight = 100});
  a.channel().syncLaunch({.duration_ns = 200 * kMicro}, 800 * kMicro);
  b.channel().syncLaunch({.duration_ns = 200 * kMicro}, 800 * kMicro);
  world.start();
  world.runFor(kSettle);
  const uint64_t a0 = a.channel().completed(), b0 = b.channel().completed();
  world.runFor(5 * kSecond);

  World alone;
  auto &c = alone.addTenant();
  c.channel().syncLaunch({.duration_ns = 200 * kMicro}, 800 * kMicro);
  alone.start();
  alone.runFor(kSettle);
  const uint64_t c0 = c.channel().completed();
  alone.runFor(5 * kSecond);

  const double most = static_cast<double>(c.channel().completed() - c0);
  // What is asked is the same for both; a switch of 100 us each time is all they may lose.
  EXPECT_GE(static_cast<double>(a.channel().completed() - a0), most * 0.85);
  EXPECT_GE(static_cast<double>(b.channel().completed() - b0), most * 0.85);
  EXPECT_NEAR(static_cast<double>(a.channel().completed() - a0) /
                  static_cast<double>(b.channel().completed() - b0),
              1.0, 0.05);
}

TEST(Rotation, TheLedgerAgreesWithTheChip) {
  for (const uint32_t ratio : {1u, 2u, 9u}) {
    World world({.seed = 5 + ratio});
    auto &a = world.addTenant({.weight = 100 * ratio});
    auto &b = world.addTenant();
    a.saturate({.duration_ns = kMilli});
    b.saturate({.duration_ns = 10 * kMicro});
    world.start();
    world.runFor(kSettle);
    const core_counters a0 = world.counters(a), b0 = world.counters(b);
    const uint64_t a_chip = world.chipRunNs(a), b_chip = world.chipRunNs(b);
    const uint64_t begin = world.nowNs();
    world.runFor(10 * kSecond);
    const core_counters a1 = world.counters(a), b1 = world.counters(b);
    const double span = static_cast<double>(world.nowNs() - begin);
    const auto off = [&](const core_counters &from, const core_counters &to, uint64_t chip0,
                         WorldTenant &t) {
      return static_cast<double>(to.run_ns - from.run_ns) -
             static_cast<double>(world.chipRunNs(t) - chip0);
    };
    for (const auto &[name, error, bound] :
         {std::tuple{"a", off(a0, a1, a_chip, a), a1.run_err_ns},
          std::tuple{"b", off(b0, b1, b_chip, b), b1.run_err_ns}}) {
      std::printf("%u:1 %s: ledger off by %.3f pp, published %.3f pp\n", ratio, name,
                  100 * error / span, 100 * static_cast<double>(bound) / span);
      EXPECT_LE(std::abs(error) / span, 0.003);
      EXPECT_LE(std::abs(error), static_cast<double>(bound));
    }
    EXPECT_EQ(a1.source, CORE_BY_SAMPLES);
    // Everything since the start is charged to somebody, once; the last look may have been in a
    // switch that is not charged before it is over.
    struct turn_counters totals;
    turn_counters(world.scheduler(), &totals);
    const uint64_t charged =
        totals.switch_ns + totals.idle_ns + totals.nobody_ns + a1.run_ns + b1.run_ns;
    EXPECT_LE(charged, world.nowNs() - world.startNs());
    EXPECT_GE(charged + 100 * kMicro, world.nowNs() - world.startNs());
  }
}

TEST(Rotation, OthersTakeOverWhenATenantFallsIdle) {
  World world;
  auto &a = world.addTenant(), &b = world.addTenant(), &c = world.addTenant();
  for (auto *t : {&a, &b, &c}) t->saturate({.duration_ns = kMilli});
  world.start();
  world.runFor(kSettle);
  ASSERT_NEAR(b.core.share_ppm, 333'333, 1);
  const uint64_t cycle = turn_cycle_ns(world.scheduler());
  a.channel().stop();
  const uint64_t idle_from = world.nowNs();
  const uint64_t limit = idle_from + std::max(2 * cycle, 20 * kMilli + cycle);
  // It has a few kernels in flight that it still runs.
  while (world.nowNs() < limit + 4 * kMilli && b.core.share_ppm != 500'000) world.runFor(kMilli);
  std::printf("replanned %.1f ms after the last kernel (limit %.1f)\n",
              static_cast<double>(world.nowNs() - a.channel().lastCompletionNs()) / 1e6,
              static_cast<double>(limit - idle_from) / 1e6);
  EXPECT_LE(world.nowNs() - a.channel().lastCompletionNs(), limit - idle_from);
  EXPECT_EQ(b.core.share_ppm, 500'000u);
  EXPECT_FALSE(core_tenant_awake(&a.core));
}

TEST(Rotation, AWakerIsPlannedForSoon) {
  World world;
  auto &a = world.addTenant(), &b = world.addTenant();
  a.saturate({.duration_ns = kMilli});
  world.start();
  world.runFor(kSettle);
  EXPECT_EQ(a.core.share_ppm, CORE_PPM);
  b.saturate({.duration_ns = kMilli});
  const uint64_t woken = world.nowNs();
  world.runFor(20 * kMilli + CORE_CYCLE_LONE_NS);
  EXPECT_EQ(a.core.share_ppm, 500'000u);
  const uint64_t end = woken + kSecond;
  world.runTo(end);
  const Record record = world.record();
  // Never more than its share plus one slice in its first second.
  const double got = static_cast<double>(record.run(b.index, woken, end));
  EXPECT_LE(got, 0.5 * static_cast<double>(record.delivered(woken, end)) + 10e6);
  EXPECT_GE(got, 0.45 * static_cast<double>(record.delivered(woken, end)));
}

TEST(Rotation, ChangedWeightsAreInForceAtOnce) {
  World world;
  auto &a = world.addTenant(), &b = world.addTenant();
  a.saturate({.duration_ns = kMilli});
  b.saturate({.duration_ns = kMilli});
  world.start();
  world.runFor(kSettle);
  core_settings settings = a.core.asked;
  settings.weight = 300;
  turn_tenant_set(world.scheduler(), &a.core, &settings);
  world.apply();
  ASSERT_EQ(world.lastError(), 0);
  const uint64_t begin = world.nowNs() + 40 * kMilli, end = begin + 3 * kSecond;
  world.runTo(end);
  EXPECT_LE(world.record().worstShareError(a.index, 0.75, begin, end, Record::aboutOneSecond()),
            0.6);
}

TEST(Rotation, BestEffortLeavesTheDriversSlicesAndOrder) {
  World world({.policy = CORE_BEST_EFFORT});
  auto &a = world.addTenant({.weight = 900}), &b = world.addTenant({.weight = 100});
  a.saturate({.duration_ns = kMilli});
  b.saturate({.duration_ns = kMilli});
  world.start();
  const uint64_t begin = world.nowNs() + kSettle, end = begin + 3 * kSecond;
  world.runTo(end);
  const Record record = world.record();
  EXPECT_NEAR(static_cast<double>(record.run(a.index, begin, end)) /
                  static_cast<double>(record.delivered(begin, end)),
              0.5, 0.002);
  EXPECT_EQ(a.tsgs[0]->turn.core.slice_ns, 1'048'576u);
  EXPECT_EQ(turn_cycle_ns(world.scheduler()), 0u);
  EXPECT_EQ(world.card().totals().submits, 1u);
}

TEST(Rotation, PolicyChangesBackAndForthUnderLoad) {
  World world({.policy = CORE_BEST_EFFORT});
  auto &a = world.addTenant({.weight = 200, .guarantee_ppm = 400'000});
  auto &b = world.addTenant({.weight = 100, .guarantee_ppm = 200'000});
  a.saturate({.duration_ns = kMilli});
  b.saturate({.duration_ns = kMilli});
  world.start();
  struct Step {
    core_policy policy;
    double a, b;  // of wall time
  };
  for (const Step &step : {Step{CORE_BURST_SHARE, 0.66, 0.33}, Step{CORE_FIXED_SHARE, 0.4, 0.2},
                           Step{CORE_BEST_EFFORT, 0.455, 0.455}, Step{CORE_FIXED_SHARE, 0.4, 0.2},
                           Step{CORE_BURST_SHARE, 0.66, 0.33}}) {
    turn_policy_set(world.scheduler(), step.policy, 0);
    world.apply();
    ASSERT_EQ(world.lastError(), 0);
    const uint64_t begin = world.nowNs() + 100 * kMilli, end = begin + 2 * kSecond;
    world.runTo(end + kMilli);
    const Record record = world.record();
    EXPECT_NEAR(static_cast<double>(record.run(a.index, begin, end)) / 2e9, step.a, 0.01);
    EXPECT_NEAR(static_cast<double>(record.run(b.index, begin, end)) / 2e9, step.b, 0.01);
  }
}

}  // namespace rotation_test
}  // namespace qgpu::scenario
