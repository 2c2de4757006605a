// SPDX-License-Identifier: GPL-2.0
//
// place_test.cpp - tenants that change how they are scheduled: by the plan, by their budget, by who
// else is there. Whoever has work and a share is in the slot or waits where it will be found.
#include <gtest/gtest.h>

#include "unit/core_bench.hpp"

namespace qgpu::core_bench {
namespace place_test {

constexpr uint64_t kHold = 250 * kMicro;

void setCeiling(Bench &bench, Tenant &tenant, uint32_t ceiling_ppm) {
  core_settings settings = tenant.core.asked;
  settings.ceiling_ppm = ceiling_ppm;
  core_tenant_set(&bench.core, &tenant.core, &settings);
}

// It runs alone until its ceiling stops it.
void useUp(Bench &bench, Tenant &tenant) {
  for (int i = 0; i < 2000 && tenant.core.heap != CORE_HEAP_WAITING; i++) {
    core_look(&bench.core, bench.now, CORE_SEEN_TSG, tenant.tsgs[0].get());
    core_pick(&bench.core, bench.now);
    core_taken(&bench.core, bench.now, nullptr, 0);
    bench.now += 500 * kMicro;
  }
  ASSERT_EQ(tenant.core.heap, CORE_HEAP_WAITING);
  ASSERT_FALSE(core_admits(&bench.core, tenant.tsgs[0].get()));
}

TEST(Ceiling, ThatIsRaisedLetsItsTenantGoAtOnce) {
  for (const bool online : {false, true}) {
    Bench bench;
    if (online) bench.add({.class_ = CORE_ONLINE});
    auto &a = bench.add({.ceiling_ppm = 200'000});
    bench.work(a);
    bench.plan();
    useUp(bench, a);
    setCeiling(bench, a, 900'000);
    core_plan_make(&bench.core, bench.now);
    EXPECT_TRUE(core_pick(&bench.core, bench.now)) << "the slot is without it";
    EXPECT_TRUE(core_admits(&bench.core, a.tsgs[0].get()));
    EXPECT_TRUE(a.core.sharing);
    EXPECT_FALSE(a.core.throttled);
  }
}

TEST(Ceiling, ThatIsUsedUpStaysSoWhenThePeriodChanges) {
  Bench bench;
  auto &a = bench.add({.ceiling_ppm = 100'000}), &b = bench.add();
  bench.work(a);
  bench.plan();
  useUp(bench, a);
  bench.work(b);  // another cycle, another period
  core_plan_make(&bench.core, bench.now);
  core_pick(&bench.core, bench.now);
  EXPECT_FALSE(core_admits(&bench.core, a.tsgs[0].get()));
  EXPECT_EQ(a.core.heap, CORE_HEAP_WAITING);
  EXPECT_FALSE(a.core.sharing);
  EXPECT_TRUE(a.core.throttled);
}

TEST(Held, TenantsAreNobodyWhoWaits) {
  Bench bench;
  auto &a = bench.add(), &b = bench.add({.class_ = CORE_OFFLINE});
  b.core.misfit = true;
  bench.saturate();
  EXPECT_TRUE(b.core.held);
  EXPECT_FALSE(b.core.sharing);
  // a pauses, awake: nothing calls for another window until a plan may be made.
  bench.work(a, false);
  bench.now += kHold;
  core_pick(&bench.core, bench.now);
  core_taken(&bench.core, bench.now, nullptr, 0);
  EXPECT_GT(core_next_ns(&bench.core, bench.now), bench.now + 10 * kMicro);
}

TEST(Place, ThatChangesBeginsEvidenceAfresh) {
  Bench bench;
  auto &online = bench.add({.class_ = CORE_ONLINE});
  auto &a = bench.add(), &b = bench.add();
  bench.work(a);
  bench.work(b);
  bench.plan();
  ASSERT_EQ(a.core.place, CORE_RANKED);
  for (int i = 0; i < 100; i++) {
    core_look(&bench.core, bench.now, CORE_SEEN_TSG, a.tsgs[0].get());
    bench.now += kMilli;
  }
  core_tsg_remove(&bench.core, online.tsgs[0].get());
  bench.plan();
  ASSERT_EQ(a.core.place, CORE_ROTATES);
  EXPECT_EQ(a.core.fit_lag_ns, 0);
  EXPECT_EQ(a.core.fit_run_ns, a.core.run_ns);
}

TEST(Floors, OwedToNobodyAreForgotten) {
  Bench bench;
  bench.add({.class_ = CORE_ONLINE});
  auto &a = bench.add();
  bench.saturate();
  bench.core.floor_lag_ns = 100 * kMilli;
  bench.work(a, false);
  bench.now += kHold;
  core_pick(&bench.core, bench.now);
  EXPECT_LE(bench.core.floor_lag_ns, 0);
  EXPECT_FALSE(bench.core.protecting);
}

TEST(Counters, ReadBeforeTheLookAfterAWakeAreNotHuge) {
  Bench bench;
  auto &a = bench.add();
  core_look(&bench.core, bench.now, CORE_SEEN_IDLE, nullptr);
  core_work(&bench.core, a.tsgs[0].get(), bench.now + 1000, true);
  core_counters counters;
  core_tenant_counters(&bench.core, &a.core, &counters);
  EXPECT_EQ(counters.wait_ns, 0u);
  core_tsg_remove(&bench.core, a.tsgs[0].get());  // before that look, too
  core_tenant_counters(&bench.core, &a.core, &counters);
  EXPECT_EQ(counters.wait_ns, 0u);
}

TEST(Gaps, OfAServerAreAtMostAsLongAsItsRun) {
  Bench bench;
  auto &a = bench.add(), &b = bench.add();
  a.core.misfit = true;
  bench.saturate();
  while (bench.core.window.owner != &a.core) {  // its turn
    core_look(&bench.core, bench.now, CORE_SEEN_TSG, b.tsgs[0].get());
    core_pick(&bench.core, bench.now);
    bench.now += 100 * kMicro;
  }
  const uint64_t from = bench.now;
  const auto budget = static_cast<uint64_t>(bench.core.window.budget_ns);
  // 20 us of work, 240 us of gap, for ever.
  while (bench.core.window.owner == &a.core && bench.now < from + kSecond) {
    core_look(&bench.core, bench.now, CORE_SEEN_TSG, a.tsgs[0].get());
    bench.now += 20 * kMicro;
    core_look(&bench.core, bench.now, CORE_SEEN_IDLE, nullptr);
    core_work(&bench.core, a.tsgs[0].get(), bench.now, false);
    bench.now += 240 * kMicro;
    core_pick(&bench.core, bench.now);
  }
  EXPECT_LE(bench.now - from, 2 * budget + kMilli);
}

}  // namespace place_test
}  // namespace qgpu::core_bench
