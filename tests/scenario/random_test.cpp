// SPDX-License-Identifier: GPL-2.0
//
// random_test.cpp - everything that may happen to a scheduler, in random order: tenants, TSGs,
// list changes, settings, policies, work that starts, stops, synchronises and cannot be cut. What
// must hold whatever happens: the chip is driven by its rules, the ledger is within its published
// error, and when the storm is over everybody gets what was promised.
#include <gtest/gtest.h>

#include "fakes/seed.hpp"
#include "scenario/world.hpp"

namespace qgpu::scenario {
namespace random_test {

class Storm {
 public:
  Storm(World &world, uint64_t seed) : world_(world), random_(seed) {}

  void addTenant() {
    const uint32_t guarantee = pick(3) ? 0 : std::min<uint32_t>(left_ppm_, 10'000 * pick(25));
    left_ppm_ -= guarantee;
    auto &tenant = world_.addTenant({.weight = 1 + static_cast<uint32_t>(pick(1000)),
                                     .guarantee_ppm = guarantee,
                                     .tsgs = 1 + static_cast<unsigned>(pick(2))});
    for (size_t i = 0; i < tenant.tsgs.size(); i++) giveWork(tenant, i);
  }
  void step() {
    switch (pick(12)) {
      case 0:
        if (world_.tenantCount() < 10) addTenant();
        break;
      case 1: {
        WorldTenant &t = anyTenant();
        if (t.tsgs.size() > 1) {
          t.tsgs.back()->sim->channel().stop();
          world_.removeTsg(t, t.tsgs.size() - 1);
        }
        break;
      }
      case 2: {
        WorldTenant &t = anyTenant();
        if (t.tsgs.size() < 3) {
          world_.addTsg(t);
          giveWork(t, t.tsgs.size() - 1);
        }
        break;
      }
      case 3: {
        WorldTenant &t = anyTenant();
        core_settings s = t.core.asked;
        s.weight = 1 + static_cast<u32>(pick(1000));
        turn_tenant_set(world_.scheduler(), &t.core, &s);
        break;
      }
      case 4:
        turn_policy_set(world_.scheduler(),
                        std::array{CORE_BEST_EFFORT, CORE_EQUAL_SHARE, CORE_FIXED_SHARE,
                                   CORE_BURST_SHARE}[pick(4)],
                        0);
        break;
      case 5:
      case 6: {
        WorldTenant &t = anyTenant();
        if (!t.tsgs.empty()) giveWork(t, pick(t.tsgs.size()));
        break;
      }
      case 7: {
        WorldTenant &t = anyTenant();
        if (!t.tsgs.empty()) t.tsgs[pick(t.tsgs.size())]->sim->channel().stop();
        break;
      }
      default:
        world_.changeList();
    }
    if (pick(2)) world_.apply();
    world_.runFor(1 + pick(30 * kMilli));
  }

 private:
  uint64_t pick(uint64_t n) { return random_() % n; }
  WorldTenant &anyTenant() { return world_.tenant(pick(world_.tenantCount())); }
  void giveWork(WorldTenant &tenant, size_t tsg) {
    auto &channel = tenant.tsgs[tsg]->sim->channel();
    fakes::Kernel kernel{.duration_ns = 20 * kMicro + pick(4 * kMilli)};
    if (pick(5) == 0) kernel.preemption = CHIP_WFI;
    if (pick(3) == 0)
      channel.syncLaunch(kernel, 20 * kMicro + pick(2 * kMilli));
    else
      channel.saturate(kernel, 2);
  }

  World &world_;
  std::mt19937_64 random_;
  uint32_t left_ppm_ = 900'000;
};

class RandomStorm : public ::testing::TestWithParam<int> {};

TEST_P(RandomStorm, LeavesEverythingInOrder) {
  const uint64_t seed = fakes::seed() + static_cast<uint64_t>(GetParam());
  QGPU_TRACE_SEED();
  World world({.seed = seed});
  Storm storm(world, seed);
  for (int i = 0; i < 3; i++) storm.addTenant();
  world.start();
  for (int i = 0; i < 400; i++) {
    storm.step();
    ASSERT_EQ(world.lastError(), 0) << "step " << i;
  }
  uint64_t charged = 0;
  for (size_t i = 0; i < world.tenantCount(); i++) {
    const core_counters c = world.counters(world.tenant(i));
    charged += c.run_ns;
    const Record record = world.record();
    const double chip = static_cast<double>(record.runUpTo(i, world.nowNs()));
    // 3 sigma, and as much again for the many that are looked at here.
    EXPECT_LE(std::abs(static_cast<double>(c.run_ns) - chip),
              2 * static_cast<double>(c.run_err_ns) + 1e6)
        << "tenant " << i;
  }
  struct turn_counters totals;
  turn_counters(world.scheduler(), &totals);
  charged += totals.switch_ns + totals.idle_ns + totals.nobody_ns;
  EXPECT_LE(charged, world.nowNs() - world.startNs());
  EXPECT_GE(charged + kMilli, world.nowNs() - world.startNs());
  EXPECT_TRUE(world.card().protocolErrors().empty()) << world.card().protocolErrors().front();

  // The storm is over: all saturate with work that can be cut.
  turn_policy_set(world.scheduler(), CORE_BURST_SHARE, 0);
  for (size_t i = 0; i < world.tenantCount(); i++)
    for (auto &tsg : world.tenant(i).tsgs) tsg->sim->channel().saturate({.duration_ns = kMilli});
  world.apply();
  // What the ledger corrected in the storm has to be unlearned: that takes seconds, since it
  // believes only what cannot be chance.
  world.runFor(15 * kSecond);
  const uint64_t begin = world.nowNs(), end = begin + 4 * kSecond;
  world.runTo(end);
  const Record record = world.record();
  uint64_t shares = 0;
  for (size_t i = 0; i < world.tenantCount(); i++) {
    const double share = world.tenant(i).core.share_ppm / 1e6;
    shares += world.tenant(i).core.share_ppm;
    if (world.tenant(i).tsgs.empty()) continue;
    EXPECT_NEAR(static_cast<double>(record.run(i, begin, end)) /
                    static_cast<double>(record.delivered(begin, end)),
                share, 0.01)
        << "tenant " << i;
  }
  EXPECT_EQ(shares, CORE_PPM);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomStorm, ::testing::Range(0, 8));

}  // namespace random_test
}  // namespace qgpu::scenario
