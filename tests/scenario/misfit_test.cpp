// SPDX-License-Identifier: GPL-2.0
//
// misfit_test.cpp - burst-share with tenants that do not fit the rotation: launch-and-sync, work
// that cannot be cut. They get windows of their own and go back; judged by the chip's record.
#include <gtest/gtest.h>

#include "fakes/seed.hpp"
#include "scenario/world.hpp"

namespace qgpu::scenario {
namespace misfit_test {

double partOf(const Record &record, const WorldTenant &tenant, uint64_t begin, uint64_t end) {
  return static_cast<double>(record.run(tenant.index, begin, end)) /
         static_cast<double>(record.delivered(begin, end));
}

double worstPart(const Record &record, const WorldTenant &tenant, double share, uint64_t begin,
                 uint64_t end, uint64_t length) {
  double worst = 0;
  for (uint64_t at = begin; at + length <= end; at += length)
    worst = std::max(worst, std::abs(partOf(record, tenant, at, at + length) - share));
  return 100 * worst;
}

struct Sync {
  uint64_t kernel_ns, gap_ns;
  double delivered;
};

class LaunchAndSync : public ::testing::TestWithParam<Sync> {};

TEST_P(LaunchAndSync, KeepsItsShareBesideAQueuedTenant) {
  const Sync &row = GetParam();
  QGPU_TRACE_SEED();
  World world({.seed = fakes::seed()});
  auto &sync = world.addTenant({.weight = 30}), &queued = world.addTenant({.weight = 70});
  sync.channel().syncLaunch({.duration_ns = row.kernel_ns}, row.gap_ns);
  queued.saturate({.duration_ns = kMilli});
  world.start();
  const uint64_t begin = world.nowNs() + kSecond, end = begin + 10 * kSecond;
  world.runTo(end);

  const Record record = world.record();
  const double part = partOf(record, sync, begin, end);
  const double delivered = static_cast<double>(record.delivered(begin, end)) / 10e9;
  std::printf(
      "%llu us kernels, %llu us gaps: %.2f %%, delivered %.1f %%, worst of 100 ms off by %.1f pp\n",
      static_cast<unsigned long long>(row.kernel_ns / kMicro),
      static_cast<unsigned long long>(row.gap_ns / kMicro), 100 * part, 100 * delivered,
      worstPart(record, sync, 0.3, begin, end, 100 * kMilli));
  EXPECT_NEAR(100 * part, 30, 1);
  EXPECT_GE(100 * delivered, row.delivered);
  EXPECT_TRUE(world.card().protocolErrors().empty());
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, LaunchAndSync,
    ::testing::Values(Sync{100 * kMicro, 8 * kMicro, 93}, Sync{300 * kMicro, 8 * kMicro, 94},
                      Sync{kMilli, 8 * kMicro, 95}, Sync{100 * kMicro, 50 * kMicro, 84},
                      Sync{300 * kMicro, 50 * kMicro, 92}, Sync{kMilli, 50 * kMicro, 95},
                      Sync{5 * kMilli, 50 * kMicro, 96}, Sync{20 * kMilli, 50 * kMicro, 96}),
    [](const auto &info) {
      return std::to_string(info.param.kernel_ns / kMicro) + "us_" +
             std::to_string(info.param.gap_ns / kMicro) + "us";
    });

// Weights 4:3:2:1; sync = bit i: tenant i launches and synchronises, else it is queued.
class WeightsWithSync : public ::testing::TestWithParam<unsigned> {};

TEST_P(WeightsWithSync, AreKeptInOrder) {
  QGPU_TRACE_SEED();
  World world({.seed = fakes::seed()});
  for (unsigned i = 0; i < 4; i++) {
    auto &tenant = world.addTenant({.weight = 100 * (4 - i)});
    if (GetParam() >> i & 1)
      tenant.channel().syncLaunch({.duration_ns = 300 * kMicro}, 50 * kMicro);
    else
      tenant.saturate({.duration_ns = kMilli});
  }
  world.start();
  const uint64_t begin = world.nowNs() + 3 * kSecond, end = begin + 10 * kSecond;
  world.runTo(end);
  const Record record = world.record();
  double former = 1;
  for (unsigned i = 0; i < 4; i++) {
    const double part = partOf(record, world.tenant(i), begin, end);
    std::printf("%s%.2f %%%s", i ? ", " : "", 100 * part, i == 3 ? "\n" : "");
    EXPECT_NEAR(100 * part, 10.0 * (4 - i), 1.5) << "tenant " << i;
    EXPECT_LT(part, former);
    former = part;
  }
}

INSTANTIATE_TEST_SUITE_P(Sync, WeightsWithSync,
                         ::testing::Values(0b0001u, 0b1000u, 0b0101u, 0b1111u));

struct Uncuttable {
  uint32_t weight;  // of 100; the other's work can be cut unless both
  uint64_t kernel_ns;
  bool both;
  double limit_pp;
};

class Tails : public ::testing::TestWithParam<Uncuttable> {};

TEST_P(Tails, AreMadeUpFor) {
  const Uncuttable &row = GetParam();
  QGPU_TRACE_SEED();
  World world({.seed = fakes::seed()});
  auto &a = world.addTenant({.weight = row.weight});
  auto &b = world.addTenant({.weight = 100 - row.weight});
  a.saturate({.duration_ns = row.kernel_ns, .preemption = CHIP_WFI});
  b.saturate({.duration_ns = row.both ? row.kernel_ns : kMilli,
              .preemption = row.both ? CHIP_WFI : CHIP_CILP});
  world.start();
  const uint64_t begin = world.nowNs(), end = begin + 20 * kSecond;
  world.runTo(end);
  const double part = partOf(world.record(), a, begin, end);
  const core_counters counters = world.counters(a);
  std::printf("%u %% of %llu us: %.2f %%\n", row.weight,
              static_cast<unsigned long long>(row.kernel_ns / kMicro), 100 * part);
  EXPECT_NEAR(100 * part, row.weight, row.limit_pp);
  EXPECT_NEAR(static_cast<double>(counters.run_ns), static_cast<double>(world.chipRunNs(a)),
              static_cast<double>(counters.run_err_ns) + 1e6);
}

INSTANTIATE_TEST_SUITE_P(Kernels, Tails,
                         ::testing::Values(Uncuttable{50, 500 * kMilli, false, 1.5},
                                           Uncuttable{50, 500 * kMilli, true, 1.5},
                                           Uncuttable{80, 500 * kMilli, false, 1.5},
                                           Uncuttable{20, 500 * kMilli, false, 1.5},
                                           Uncuttable{1, 500 * kMilli, false, 1.51},
                                           Uncuttable{30, 25 * kMilli, false, 0.5},
                                           Uncuttable{30, 7 * kMilli, false, 0.5}));

TEST(Misfit, OthersKeepTheirRotation) {
  QGPU_TRACE_SEED();
  World world({.seed = fakes::seed()});
  auto &sync = world.addTenant({.weight = 200}), &stubborn = world.addTenant({.weight = 100});
  sync.channel().syncLaunch({.duration_ns = 200 * kMicro}, 20 * kMicro);
  stubborn.saturate({.duration_ns = 100 * kMilli, .preemption = CHIP_WFI});
  for (int i = 0; i < 4; i++) world.addTenant({.weight = 100}).saturate({.duration_ns = kMilli});
  world.start();
  const uint64_t begin = world.nowNs() + 3 * kSecond, end = begin + 20 * kSecond;
  world.runTo(end);
  const Record record = world.record();
  EXPECT_NEAR(partOf(record, sync, begin, end), 2 / 7.0, 0.01);
  EXPECT_NEAR(partOf(record, stubborn, begin, end), 1 / 7.0, 0.01);
  for (size_t i = 2; i < 6; i++) {
    EXPECT_FALSE(world.tenant(i).core.misfit);
    EXPECT_NEAR(partOf(record, world.tenant(i), begin, end), 1 / 7.0, 0.005) << i;
  }
  EXPECT_TRUE(sync.core.place == CORE_RANKED);
  EXPECT_TRUE(stubborn.core.place == CORE_RANKED);
}

TEST(Misfit, GoesBackWhenItsWorkFits) {
  World world;
  auto &a = world.addTenant({.weight = 30}), &b = world.addTenant({.weight = 70});
  a.channel().syncLaunch({.duration_ns = 100 * kMicro}, 20 * kMicro);
  b.saturate({.duration_ns = kMilli});
  world.start();
  world.runFor(kSecond);
  EXPECT_TRUE(a.core.place == CORE_RANKED);
  a.channel().stop();
  a.channel().saturate({.duration_ns = kMilli}, 4);
  // It has to be seen 4,000 times without a gap: 30 % of 2,000 looks a second.
  world.runFor(8 * kSecond);
  EXPECT_FALSE(a.core.misfit);
  const uint64_t submits = world.card().totals().submits;
  const uint64_t begin = world.nowNs() + kSecond, end = begin + 4 * kSecond;
  world.runTo(end);
  EXPECT_LE(world.card().totals().submits, submits + 4);
  EXPECT_LE(world.record().worstShareError(a.index, 0.3, begin, end, Record::aboutOneSecond()),
            0.6);
}

// A twentieth of the card in two TSGs: slices shorter than the distance of looks, and while one of
// them has a gap the other has work, so no look finds the tenant without.
TEST(Misfit, HasItsShareInSlicesThatLooksMiss) {
  QGPU_TRACE_SEED();
  World world({.seed = fakes::seed()});
  auto &sync = world.addTenant({.weight = 200, .tsgs = 2});
  for (size_t i = 0; i < 2; i++)
    sync.channel(i).syncLaunch({.duration_ns = 2 * kMilli}, 40 * kMicro);
  for (const uint32_t weight : {1300u, 200u, 1900u, 1600u})
    world.addTenant({.weight = weight}).saturate({.duration_ns = 2 * kMilli}, 2);
  world.start();
  const uint64_t begin = world.nowNs() + 5 * kSecond, end = begin + 15 * kSecond;
  world.runTo(end);
  EXPECT_NEAR(100 * partOf(world.record(), sync, begin, end), 200.0 / 52, 0.2);
}

TEST(Misfit, NobodyIsWhoFits) {
  QGPU_TRACE_SEED();
  World world({.seed = fakes::seed()});
  for (const uint32_t weight : {10u, 100u, 300u, 1000u})
    world.addTenant({.weight = weight, .tsgs = weight == 300 ? 2u : 1u})
        .saturate({.duration_ns = 3 * kMilli});
  // Bursts with pauses are no launch-and-sync.
  auto &bursts = world.addTenant({.weight = 300});
  bursts.channel().syncLaunch({.duration_ns = 30 * kMilli}, 7 * kMilli);
  world.start();
  world.runFor(20 * kSecond);
  for (size_t i = 0; i < world.tenantCount(); i++) EXPECT_FALSE(world.tenant(i).core.misfit) << i;
}

}  // namespace misfit_test
}  // namespace qgpu::scenario
