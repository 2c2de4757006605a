// SPDX-License-Identifier: GPL-2.0
//
// windows_test.cpp - fixed-share: exclusive windows on the card's clock, judged by the chip's
// record.
#include <gtest/gtest.h>

#include "scenario/world.hpp"

namespace qgpu::scenario {
namespace windows_test {

struct Quotas {
  const char *name;
  std::vector<uint32_t> percent;
  uint64_t kernel_ns;
};

class FixedShare : public ::testing::TestWithParam<Quotas> {};

TEST_P(FixedShare, GivesEachItsQuotaOfWallTimeAndBillsIt) {
  const Quotas &row = GetParam();
  World world({.policy = CORE_FIXED_SHARE});
  for (const uint32_t percent : row.percent)
    world.addTenant({.guarantee_ppm = percent * 10'000}).saturate({.duration_ns = row.kernel_ns});
  world.start();
  world.runFor(kSecond);
  std::vector<uint64_t> ledger, chip;
  for (size_t i = 0; i < row.percent.size(); i++) {
    ledger.push_back(world.counters(world.tenant(i)).run_ns);
    chip.push_back(world.chipRunNs(world.tenant(i)));
  }
  const uint64_t begin = world.nowNs();
  world.runFor(10 * kSecond);
  const double span = static_cast<double>(world.nowNs() - begin);
  for (size_t i = 0; i < row.percent.size(); i++) {
    WorldTenant &tenant = world.tenant(i);
    const core_counters now = world.counters(tenant);
    const double ran = static_cast<double>(world.chipRunNs(tenant) - chip[i]);
    const double billed = static_cast<double>(now.run_ns - ledger[i]);
    std::printf("%s, %u %%: ran %.3f %%, ledger off by %.3f %% of it, published %.3f %%\n",
                row.name, row.percent[i], 100 * ran / span, 100 * (billed / ran - 1),
                100 * static_cast<double>(now.run_err_ns) / billed);
    EXPECT_NEAR(100 * ran / span, row.percent[i], row.percent[i] >= 30 ? 0.3 : 0.1);
    EXPECT_LE(std::abs(billed / ran - 1), 0.002);
    EXPECT_LE(
        std::abs(billed - ran),
        static_cast<double>(now.run_err_ns) * billed / static_cast<double>(now.run_ns) + 20e3);
    // The worst source since the start, when all began to run in one image before they were known.
    if (row.percent.size() == 1) {
      EXPECT_EQ(now.source, CORE_BY_WINDOW);
    }
    EXPECT_EQ(now.overruns, 0u);
  }
  EXPECT_TRUE(world.card().protocolErrors().empty());
}

INSTANTIATE_TEST_SUITE_P(Quotas, FixedShare,
                         ::testing::Values(Quotas{"alone", {30}, 10 * kMicro},
                                           Quotas{"alone", {30}, kMilli},
                                           Quotas{"alone", {30}, 50 * kMilli},
                                           Quotas{"two", {30, 60}, kMilli},
                                           Quotas{"small", {1, 2, 5, 30}, kMilli}),
                         [](const auto &info) { return "Row" + std::to_string(info.index); });

TEST(FixedShareScaling, BudgetsShrinkWhereWindowsAndSwitchingPassTheWhole) {
  World world({.policy = CORE_FIXED_SHARE});
  for (const uint32_t percent : {50u, 30u, 20u})
    world.addTenant({.guarantee_ppm = percent * 10'000}).saturate({.duration_ns = kMilli});
  world.start();
  const uint64_t begin = world.nowNs() + kSecond, end = begin + 5 * kSecond;
  world.runTo(end);
  const Record record = world.record();
  for (size_t i = 0; i < 3; i++) {
    const core_tenant &core = world.tenant(i).core;
    const double asked = core.share_ppm / 1e6;
    const double effective =
        static_cast<double>(core.budget_ns) / static_cast<double>(core.period_ns);
    EXPECT_LT(effective, asked);
    EXPECT_GT(effective, asked * 0.97);
    EXPECT_NEAR(static_cast<double>(record.run(i, begin, end)) / 5e9, effective, 0.003);
  }
}

TEST(FixedShareRest, GoesToThoseWithoutAShare) {
  World world({.policy = CORE_FIXED_SHARE});
  auto &a = world.addTenant({.guarantee_ppm = 300'000});
  auto &rest = world.addTenant();
  a.saturate({.duration_ns = kMilli});
  rest.saturate({.duration_ns = kMilli});
  world.start();
  const uint64_t begin = world.nowNs() + kSecond, end = begin + 5 * kSecond;
  world.runTo(end);
  EXPECT_EQ(rest.core.share_ppm, 700'000u);
  const Record record = world.record();
  EXPECT_NEAR(static_cast<double>(record.run(a.index, begin, end)) / 5e9, 0.3 * 0.985, 0.003);
  EXPECT_NEAR(static_cast<double>(record.run(rest.index, begin, end)) / 5e9, 0.7 * 0.985, 0.004);
}

TEST(FixedShareRest, IsOnePercentAtLeast) {
  World world({.policy = CORE_FIXED_SHARE});
  auto &a = world.addTenant({.guarantee_ppm = 1'000'000});
  auto &rest = world.addTenant();
  a.saturate({.duration_ns = kMilli});
  rest.saturate({.duration_ns = kMilli});
  world.start();
  const uint64_t begin = world.nowNs() + kSecond, end = begin + 5 * kSecond;
  world.runTo(end);
  EXPECT_NEAR(static_cast<double>(world.record().run(rest.index, begin, end)) / 5e9, 0.01, 0.001);
}

TEST(FixedShareIdle, TimeOfASleepingOwnerStaysIdle) {
  World world({.policy = CORE_FIXED_SHARE});
  auto &a = world.addTenant({.guarantee_ppm = 300'000});
  world.addTenant({.guarantee_ppm = 600'000});
  a.saturate({.duration_ns = kMilli});
  world.start();
  const uint64_t begin = world.nowNs() + kSecond, end = begin + 5 * kSecond;
  world.runTo(end);
  EXPECT_NEAR(static_cast<double>(world.record().run(a.index, begin, end)) / 5e9, 0.3, 0.003);
}

TEST(FixedShareSync, AGapOfItsOwnerHoldsTheWindow) {
  World world({.policy = CORE_FIXED_SHARE});
  auto &a = world.addTenant({.guarantee_ppm = 300'000});
  auto &b = world.addTenant({.guarantee_ppm = 600'000});
  a.channel().syncLaunch({.duration_ns = 300 * kMicro}, 50 * kMicro);
  b.saturate({.duration_ns = kMilli});
  world.start();
  const uint64_t begin = world.nowNs() + kSecond, end = begin + 10 * kSecond;
  world.runTo(end);
  const Record record = world.record();
  EXPECT_NEAR(100 * static_cast<double>(record.run(a.index, begin, end)) / 10e9, 30, 1.0);
  EXPECT_NEAR(100 * static_cast<double>(record.run(b.index, begin, end)) / 10e9, 60, 1.0);
}

TEST(FixedShareWaker, RunsWithinAPeriod) {
  World world({.policy = CORE_FIXED_SHARE});
  auto &a = world.addTenant({.guarantee_ppm = 300'000});
  auto &b = world.addTenant({.guarantee_ppm = 600'000});
  b.saturate({.duration_ns = kMilli});
  world.start();
  world.runFor(kSecond + 7 * kMilli);
  a.channel().launch({.duration_ns = kMilli});
  const uint64_t woken = world.nowNs();
  world.runFor(40 * kMilli);
  EXPECT_LE(a.channel().lastCompletionNs() - woken, 20 * kMilli);
  EXPECT_EQ(a.channel().completed(), 1u);
}

TEST(FixedShareTsgs, OfOneTenantShareItsWindows) {
  World world({.policy = CORE_FIXED_SHARE});
  auto &a = world.addTenant({.guarantee_ppm = 300'000, .tsgs = 2});
  auto &b = world.addTenant({.guarantee_ppm = 600'000});
  a.saturate({.duration_ns = kMilli});
  b.saturate({.duration_ns = kMilli});
  world.start();
  const uint64_t begin = world.nowNs() + kSecond, end = begin + 10 * kSecond;
  world.runTo(end);
  EXPECT_NEAR(100 * static_cast<double>(world.record().run(a.index, begin, end)) / 10e9, 30, 0.4);
  const double first = static_cast<double>(world.card().runNs(*a.tsgs[0]->sim));
  const double second = static_cast<double>(world.card().runNs(*a.tsgs[1]->sim));
  EXPECT_NEAR(first / (first + second), 0.5, 0.02);
}

class EqualShare : public ::testing::TestWithParam<unsigned> {};

TEST_P(EqualShare, GivesAllThatAreThereTheSame) {
  World world({.policy = CORE_EQUAL_SHARE});
  const unsigned count = GetParam();
  // What they asked for under other policies does not matter.
  for (unsigned i = 0; i < count; i++)
    world.addTenant({.weight = 10 + 90 * i, .guarantee_ppm = i ? 0u : 300'000u})
        .saturate({.duration_ns = i % 2 ? kMilli : 50 * kMilli});
  world.start();
  const uint64_t begin = world.nowNs() + kSecond, end = begin + 10 * kSecond;
  world.runTo(end);
  const Record record = world.record();
  double least = 1, most = 0;
  uint64_t shares = 0;
  for (unsigned i = 0; i < count; i++) {
    const core_tenant &core = world.tenant(i).core;
    const double part = static_cast<double>(record.run(i, begin, end)) / 10e9;
    const double effective =
        static_cast<double>(core.budget_ns) / static_cast<double>(core.period_ns);
    shares += core.share_ppm;
    least = std::min(least, part);
    most = std::max(most, part);
    EXPECT_NEAR(100 * part, 100 * effective, 0.2) << i;
    EXPECT_NEAR(core.share_ppm, 1e6 / count, 1);
  }
  std::printf("%u: %.3f ... %.3f %%\n", count, 100 * least, 100 * most);
  EXPECT_EQ(shares, CORE_PPM);
  EXPECT_LE(100 * (most - least), 0.1);
}

INSTANTIATE_TEST_SUITE_P(Tenants, EqualShare, ::testing::Values(2u, 4u, 8u, 16u));

TEST(EqualShareIdle, TimeOfASleeperStaysIdleUntilItIsGone) {
  World world({.policy = CORE_EQUAL_SHARE});
  auto &a = world.addTenant(), &b = world.addTenant();
  a.saturate({.duration_ns = kMilli});
  world.start();
  uint64_t begin = world.nowNs() + kSecond, end = begin + 4 * kSecond;
  world.runTo(end);
  EXPECT_NEAR(static_cast<double>(world.record().run(a.index, begin, end)) / 4e9, 0.5, 0.01);
  world.removeTsg(b, 0);
  begin = world.nowNs() + kSecond;
  end = begin + 4 * kSecond;
  world.runTo(end);
  EXPECT_EQ(a.core.share_ppm, CORE_PPM);
  EXPECT_GE(static_cast<double>(world.record().run(a.index, begin, end)) / 4e9, 0.98);
}

}  // namespace windows_test
}  // namespace qgpu::scenario
