// SPDX-License-Identifier: GPL-2.0
//
// promises_changes_test.cpp - what is changed while tenants run: settings, policies, several
// tenants at once; what tenants and errors cannot change; and counters, which never go back.
#include "scenario/promise.hpp"

namespace qgpu::scenario {
namespace promises_changes_test {

void set(World &world, WorldTenant &tenant, const std::function<void(core_settings &)> &change) {
  core_settings settings = tenant.core.asked;
  change(settings);
  turn_tenant_set(world.scheduler(), &tenant.core, &settings);
}

// Row 54: a change is in force within one cycle, and nobody waits for it.
struct Change {
  const char *name;
  std::function<void(core_settings &)> change;
  double share;  // of the first of three with equal weights, afterwards
};
class LiveChange : public ::testing::TestWithParam<Change> {};

TEST_P(LiveChange, Row54_IsInForceWithinACycleWithoutAGap) {
  const Change &row = GetParam();
  World world;
  for (int i = 0; i < 3; i++) world.addTenant().saturate({.duration_ns = kMilli}, 2);
  world.start();
  world.runFor(3 * kSecond);
  const uint64_t cycle = turn_cycle_ns(world.scheduler()) + 3 * kSwitchNs;
  const uint64_t changed = world.nowNs();
  set(world, world.tenant(0), row.change);
  world.apply();
  world.runFor(cycle);
  const Verdict verdict = watch(world, 0, 4 * kSecond);
  EXPECT_LE(verdict.worstPp(0, row.share, about(kSecond)), 0.6);
  const uint64_t later = turn_cycle_ns(world.scheduler()) + 3 * kSwitchNs;
  for (size_t i = 0; i < 3; i++)
    EXPECT_LE(verdict.record().longestGap(i, changed, changed + 4 * cycle),
              std::max(cycle, later) + kMilli);
  EXPECT_GE(verdict.record().delivered(changed, changed + cycle),
            cycle - 5 * kSwitchNs - 100 * kMicro);
}

INSTANTIATE_TEST_SUITE_P(
    Promises, LiveChange,
    ::testing::Values(Change{"Weight", [](core_settings &s) { s.weight = 200; }, 0.5},
                      Change{"Guarantee", [](core_settings &s) { s.guarantee_ppm = 400'000; }, 0.6},
                      Change{"Ceiling", [](core_settings &s) { s.ceiling_ppm = 100'000; }, 0.1},
                      Change{"Nothing", [](core_settings &) {}, 1 / 3.0}),
    [](const auto &info) { return std::string(info.param.name); });

// The TU104 layer with a look at what is written into images.
struct Images {
  static inline std::vector<std::vector<u64>> slices;  // of each image, by TSG id

  static int write(const hw_mem *mem, const hw_image_tsg *tsgs, u32 count, u32 *entries) {
    std::vector<u64> &image = slices.emplace_back(64);
    for (u32 i = 0; i < count; i++) image.at(tsgs[i].tsg_id) += tsgs[i].slice_ns;
    return tu104_ops.image_write(mem, tsgs, count, entries);
  }
  static void install(World &world) {
    static hw_ops ops;
    ops = tu104_ops;
    ops.image_write = write;
    slices.clear();
    world.hardware().ops = &ops;
  }
};

// Row 55: sixteen tenants change at once, at random instants; no image has half of it.
TEST(ChangePromise, Row55_OfSixteenTenantsIsNeverHalfVisible) {
  QGPU_TRACE_SEED();
  std::mt19937_64 random(fakes::seed());
  World world({.seed = random()});
  for (int i = 0; i < 16; i++) world.addTenant().saturate({.duration_ns = kMilli}, 2);
  world.start();
  world.runFor(kSecond);
  Images::install(world);
  for (int round = 0; round < 60; round++) {
    for (size_t i = 0; i < 16; i++)
      set(world, world.tenant(i),
          [&](core_settings &s) { s.weight = round % 2 == 0 && i % 2 ? 300 : 100; });
    if (round % 3) world.apply();
    world.runFor(random() % (60 * kMilli));
    if (round % 5 == 0) world.changeList();
  }
  EXPECT_GT(Images::slices.size(), 60u);
  for (const auto &image : Images::slices) {
    double least = 1e18, most = 0;
    for (size_t i = 1; i < 16; i += 2) {
      const double even = static_cast<double>(image.at(world.tenant(i - 1).tsgs[0]->turn.tsg_id));
      const double odd = static_cast<double>(image.at(world.tenant(i).tsgs[0]->turn.tsg_id));
      least = std::min(least, odd / even);
      most = std::max(most, odd / even);
    }
    // Slices have eight bits, trims are at most a tenth.
    EXPECT_LT(most / least, 1.3) << "half of a change was visible";
    EXPECT_TRUE(most < 1.3 || least > 2.3) << least << " ... " << most;
  }
}

// Rows 56 and 57: a policy is switched by one call under load, and its promise holds from then on.
TEST(ChangePromise, Row56_Row57_PoliciesAreSwitchedLive) {
  QGPU_TRACE_SEED();
  std::mt19937_64 random(fakes::seed());
  World world({.policy = CORE_BEST_EFFORT, .seed = random()});
  auto &a = world.addTenant({.weight = 300, .guarantee_ppm = 400'000});
  auto &b = world.addTenant({.weight = 100, .guarantee_ppm = 200'000});
  a.saturate({.duration_ns = 5 * kMilli}, 2);
  b.saturate({.duration_ns = kMilli}, 2);
  world.start();
  for (int round = 0; round < 8; round++) {
    world.runFor(random() % (40 * kMilli));
    const core_policy policy = std::array{CORE_BURST_SHARE, CORE_FIXED_SHARE, CORE_BEST_EFFORT,
                                          CORE_EQUAL_SHARE}[random() % 4];
    turn_policy_set(world.scheduler(), policy, 0);
    world.apply();
    const Verdict verdict = watch(world, 100 * kMilli, 2 * kSecond);
    switch (policy) {
      case CORE_BURST_SHARE:
        EXPECT_NEAR(verdict.percent(0), 70, 0.6);
        break;
      case CORE_FIXED_SHARE:
        EXPECT_NEAR(verdict.wallPercent(0), 40, 0.5);
        EXPECT_NEAR(verdict.wallPercent(1), 20, 0.5);
        break;
      case CORE_EQUAL_SHARE:
        EXPECT_NEAR(verdict.wallPercent(0), verdict.wallPercent(1), 0.6);
        break;
      case CORE_BEST_EFFORT:
        EXPECT_NEAR(verdict.percent(0), 50, 0.6);
        break;
    }
  }
}

// Row 16: the length of the cycle, and so of slices, is a setting; weights still count.
class CycleSetting : public ::testing::TestWithParam<uint64_t> {};

TEST_P(CycleSetting, Row16_SetsTheSlices) {
  World world({.cycle_ns = GetParam()});
  auto &a = world.addTenant({.weight = 300}), &b = world.addTenant({.weight = 100});
  a.saturate({.duration_ns = kMilli});
  b.saturate({.duration_ns = kMilli});
  world.start();
  const Verdict verdict = watch(world, kSecond, 5 * kSecond);
  EXPECT_NEAR(static_cast<double>(turn_cycle_ns(world.scheduler())),
              static_cast<double>(GetParam()), 0.1 * static_cast<double>(GetParam()));
  EXPECT_NEAR(static_cast<double>(a.tsgs[0]->turn.core.slice_ns),
              0.75 * static_cast<double>(GetParam()), 0.09 * static_cast<double>(GetParam()));
  EXPECT_NEAR(verdict.percent(a.index), 75, 0.6);
}

INSTANTIATE_TEST_SUITE_P(Promises, CycleSetting,
                         ::testing::Values(4 * kMilli, 12 * kMilli, 40 * kMilli, 200 * kMilli),
                         [](const auto &info) {
                           return std::to_string(info.param / kMilli) + "ms";
                         });

// Row 7: shares are kept per tenant and card: the same tenant with other quotas on 1, 2, 8 cards.
TEST(ChangePromise, Row7_EachCardHasItsOwnShares) {
  for (const unsigned cards : {1u, 2u, 8u}) {
    std::vector<std::unique_ptr<World>> worlds;
    for (unsigned i = 0; i < cards; i++) {
      World &world = *worlds.emplace_back(
          std::make_unique<World>(WorldOptions{.policy = CORE_FIXED_SHARE, .seed = i + 1}));
      world.addTenant({.guarantee_ppm = 100'000 * (i + 1)}).saturate({.duration_ns = kMilli}, 2);
      world.start();
    }
    for (int step = 0; step < 60; step++)
      for (auto &world : worlds) world->runFor(100 * kMilli);
    for (unsigned i = 0; i < cards; i++) {
      const Verdict verdict(*worlds[i], kSecond + kMilli, worlds[i]->nowNs());
      EXPECT_NEAR(verdict.wallPercent(0), 10.0 * (i + 1), 0.3) << "card " << i << " of " << cards;
    }
  }
}

// Row 3: nothing that a tenant does on its side of the card makes its share larger.
TEST(ChangePromise, Row3_ATenantCannotEnlargeItsShare) {
  World world;
  auto &greedy = world.addTenant(), &modest = world.addTenant();
  greedy.saturate({.duration_ns = kMilli}, 2);
  modest.saturate({.duration_ns = kMilli}, 2);
  world.start();
  world.runFor(kSecond);
  for (int tsgs = 2; tsgs <= 6; tsgs++) {  // more contexts, deeper queues, longer kernels
    world.addTsg(greedy).sim->channel().saturate(
        {.duration_ns = static_cast<uint64_t>(tsgs) * 10 * kMilli}, 100);
    world.apply();
    const Verdict verdict = watch(world, 300 * kMilli, 3 * kSecond);
    EXPECT_LE(verdict.worstPp(greedy.index, 0.5, about(kSecond)), 0.6) << tsgs << " TSGs";
  }
}

// Row 15: a TSG without a tenant is in every image, never held back, and what it runs is counted.
TEST(ChangePromise, Row15_WhatBelongsToNobodyRunsAndIsCounted) {
  World world({.policy = CORE_FIXED_SHARE});
  auto &a = world.addTenant({.guarantee_ppm = 500'000});
  a.saturate({.duration_ns = kMilli}, 2);
  auto &keeper = world.addTenant();  // only to hold the TSG's objects
  WorldTsg &nobodys = world.addTsg(keeper);
  nobodys.turn.nobody = true;
  turn_tsg_move(world.scheduler(), &nobodys.turn, nullptr);
  world.start();
  world.runFor(kSecond);
  nobodys.sim->channel().syncLaunch({.duration_ns = 100 * kMicro}, 2 * kMilli);
  world.apply();
  const uint64_t before = world.card().runNs(*nobodys.sim);
  world.runFor(4 * kSecond);
  const uint64_t ran = world.card().runNs(*nobodys.sim) - before;
  EXPECT_GE(ran, 80 * kMilli);
  world.counters(a);
  struct turn_counters totals;
  turn_counters(world.scheduler(), &totals);
  EXPECT_NEAR(static_cast<double>(totals.nobody_ns), static_cast<double>(ran),
              0.3 * static_cast<double>(ran));
  EXPECT_EQ(keeper.core.run_ns, 0u);
}

// Row 41: an error leaves the last good limits in force. The TU104 layer with submits that are
// refused for a while.
struct Refusing {
  static inline bool on = false;
  static int submit(hw *hw, u32 runlist, const hw_mem *mem, u32 entries) {
    return on ? -EBUSY : tu104_ops.submit(hw, runlist, mem, entries);
  }
};

TEST(ChangePromise, Row41_ErrorsNeverTurnTheLimitOff) {
  World world;
  auto &a = world.addTenant({.weight = 100}), &b = world.addTenant({.weight = 400});
  a.saturate({.duration_ns = kMilli}, 2);
  b.saturate({.duration_ns = kMilli}, 2);
  world.start();
  world.runFor(kSecond);
  static hw_ops ops;
  ops = tu104_ops;
  ops.submit = Refusing::submit;
  world.hardware().ops = &ops;
  Refusing::on = true;
  world.changeList();
  EXPECT_EQ(world.lastError(), -EBUSY);
  const uint64_t from = world.nowNs();
  world.runFor(5 * kSecond);
  const Verdict verdict(world, from, world.nowNs());
  EXPECT_LE(verdict.worstPp(a.index, 0.2, about(kSecond)), 1);
  Refusing::on = false;
  world.changeList();
  EXPECT_EQ(world.lastError(), 0);
}

// Counters never go back and add up, whatever happens; the storm is that of random_test.cpp, seen
// from outside at random instants.
TEST(ChangePromise, CountersNeverGoBack) {
  QGPU_TRACE_SEED();
  std::mt19937_64 random(fakes::seed());
  World world({.seed = random()});
  std::vector<core_counters> last(6);
  for (size_t i = 0; i < last.size(); i++) {
    auto &tenant = world.addTenant({.weight = 1 + static_cast<uint32_t>(random() % 900)});
    if (i % 3 == 0)
      tenant.channel().syncLaunch({.duration_ns = 300 * kMicro}, 30 * kMicro);
    else
      tenant.saturate({.duration_ns = 2 * kMilli,
                       .preemption = i % 3 == 1 ? uint32_t{CHIP_WFI} : uint32_t{CHIP_CILP}},
                      2);
  }
  world.start();
  for (int step = 0; step < 600; step++) {
    world.runFor(1 + random() % (8 * kMilli));
    if (random() % 10 == 0)
      turn_policy_set(world.scheduler(),
                      std::array{CORE_BURST_SHARE, CORE_FIXED_SHARE, CORE_BEST_EFFORT,
                                 CORE_EQUAL_SHARE}[random() % 4],
                      0);
    if (random() % 8 == 0) world.changeList();
    if (random() % 8 == 0) {
      auto &channel = world.tenant(random() % last.size()).channel();
      channel.stop();
    }
    if (random() % 8 == 0)
      world.tenant(random() % last.size()).saturate({.duration_ns = kMilli}, 2);
    for (size_t i = 0; i < last.size(); i++) {
      const core_counters now = world.counters(world.tenant(i));
      EXPECT_GE(now.run_ns, last[i].run_ns);
      EXPECT_GE(now.run_err_ns, last[i].run_err_ns);
      EXPECT_GE(now.wait_ns, last[i].wait_ns);
      EXPECT_GE(now.throttled_ns, last[i].throttled_ns);
      EXPECT_GE(now.windows, last[i].windows);
      EXPECT_GE(now.preempts, last[i].preempts);
      EXPECT_GE(now.overruns, last[i].overruns);
      last[i] = now;
    }
  }
}

// Rows 20 and 23: what cannot be is refused with its name.
TEST(ChangePromise, Row20_Row23_RefusalsNameTheSettingAndTheTenant) {
  const core_params params = World::params();
  std::vector<core_settings> settings(3);
  for (auto &s : settings) core_settings_default(&s);
  core_refusal refusal;
  settings[1].guarantee_ppm = 500'000;
  settings[1].ceiling_ppm = 400'000;
  EXPECT_EQ(core_check(&params, CORE_BURST_SHARE, 0, settings.data(), 3, &refusal), -ERANGE);
  EXPECT_EQ(refusal.tenant, 1u);
  EXPECT_EQ(refusal.field, CORE_FIELD_CEILING);
  settings[1].ceiling_ppm = CORE_PPM;
  settings[2].guarantee_ppm = 600'000;
  EXPECT_EQ(core_check(&params, CORE_BURST_SHARE, 0, settings.data(), 3, &refusal), -ENOSPC);
  EXPECT_EQ(refusal.tenant, 2u);
  EXPECT_EQ(refusal.sum_ppm, 1'100'000u);
}

}  // namespace promises_changes_test
}  // namespace qgpu::scenario
