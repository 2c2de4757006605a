// SPDX-License-Identifier: GPL-2.0
//
// servers_test.cpp - windows by lag: the rotation as one server among those who do not fit it, and
// what is owed between them. And a thousand tenants without an allocation.
#include <gtest/gtest.h>
#include <malloc.h>

#include "unit/core_bench.hpp"

// Of the sanitizers' allocator, where there is one.
extern "C" size_t __sanitizer_get_current_allocated_bytes() __attribute__((weak));

namespace qgpu::core_bench {
namespace servers_test {

// An ideal engine that runs what the window admits, in steps; tails of those that cannot be cut.
TEST(Misfits, ServersGetTheirSharesAndWhoIsAheadWaits) {
  std::mt19937_64 random(seed());
  for (int round = 0; round < 30; round++) {
    SCOPED_TRACE("QGPU_SEED=" + std::to_string(seed()) + " round " + std::to_string(round));
    Bench bench;
    const size_t count = 2 + random() % 6;
    uint64_t weights = 0;
    for (size_t i = 0; i < count; i++) {
      const uint32_t weight = 20 + static_cast<uint32_t>(random() % 200);
      weights += weight;
      bench.add({.weight = weight});
    }
    const size_t misfits = 1 + random() % count;
    const uint64_t tail = random() % 2 ? random() % (60 * kMilli) : 0;
    bench.allWork();
    for (size_t i = 0; i < misfits; i++) {
      bench.tenants[i]->core.misfit = true;
      bench.tenants[i]->core.stay_ns = UINT64_MAX / 2;
    }
    bench.plan();
    core_pick(&bench.core, bench.now);
    std::vector<uint64_t> ran(count, 0);
    std::vector<uint64_t> turns(count, 0);
    auto runs = [&](size_t i, uint64_t ns) {
      core_look(&bench.core, bench.now, CORE_SEEN_TSG, bench.tenants[i]->tsgs[0].get());
      bench.now += ns;
      core_look(&bench.core, bench.now, CORE_SEEN_TSG, bench.tenants[i]->tsgs[0].get());
      ran[i] += ns;
    };
    size_t member = misfits;
    while (bench.now < 1'000'000'000'000 + 20 * kSecond) {
      const core_window &window = bench.core.window;
      if (window.owner == &bench.core.rotation) {
        ASSERT_EQ(window.kind, CORE_WINDOW_ROTATION);
        ASSERT_FALSE(core_admits(&bench.core, bench.tenants[0]->tsgs[0].get()));
        const auto &core = bench.tenants[member]->core;
        const auto left = static_cast<uint64_t>(window.budget_ns - window.spent_ns);
        const uint64_t rest = core.cycle_slice_ns - turns[member];
        const uint64_t ns = std::min(left, rest);
        runs(member, ns);
        turns[member] += ns;
        if (turns[member] >= core.cycle_slice_ns) {
          turns[member] = 0;
          if (++member == count) member = misfits;
        }
      } else {
        ASSERT_EQ(window.kind, CORE_WINDOW_EXCLUSIVE);
        ASSERT_LT(window.owner->index, misfits);
        for (size_t i = 0; i < count; i++)
          ASSERT_EQ(core_admits(&bench.core, bench.tenants[i]->tsgs[0].get()),
                    i == window.owner->index);
        const auto budget = static_cast<uint64_t>(window.budget_ns);
        const size_t owner = window.owner->index;
        runs(owner, budget + (tail && owner == 0 ? random() % tail : 0));
      }
      core_pick(&bench.core, bench.now);
    }
    uint64_t all = 0;
    for (const uint64_t ns : ran) all += ns;
    for (size_t i = 0; i < count; i++) {
      const double share = bench.tenants[i]->core.share_ppm / 1e6;
      EXPECT_NEAR(static_cast<double>(ran[i]) / static_cast<double>(all), share, 0.004) << i;
    }
  }
}

// A window of the rotation that ended within a round would make whoever is last wait for another.
TEST(Misfits, TheRotationsWindowIsAWholeRoundHoweverFarItIsAhead) {
  Bench bench;
  auto &sync = bench.add({.weight = 500});
  bench.add(), bench.add();
  bench.allWork();
  sync.core.misfit = true;
  bench.plan();
  const core_tenant &rotation = bench.core.rotation;
  const auto round_ns = static_cast<s64>(bench.core.cycle_ns * rotation.share_ppm / CORE_PPM);
  int windows = 0;
  for (int i = 0; i < 20; i++) {
    core_pick(&bench.core, bench.now);
    const core_window window = bench.core.window;
    Tenant &on = *bench.tenants[window.owner == &rotation ? 1 + i % 2 : 0];
    core_look(&bench.core, bench.now, CORE_SEEN_TSG, on.tsgs[0].get());
    bench.now += static_cast<uint64_t>(window.budget_ns);
    core_look(&bench.core, bench.now, CORE_SEEN_TSG, on.tsgs[0].get());
    if (window.owner != &rotation) continue;
    EXPECT_GE(window.budget_ns, round_ns);
    windows++;
    // More than was due: what follows is for whoever is behind.
    bench.core.rotation.lag_ns -= 2 * round_ns;
  }
  EXPECT_GE(windows, 2);
}

TEST(Misfits, TheRotationIsOwedNothingWhenItsLastMemberLeaves) {
  Bench bench;
  auto &sync = bench.add(), &member = bench.add();
  bench.allWork();
  sync.core.misfit = true;
  bench.plan();
  core_pick(&bench.core, bench.now);
  bench.core.rotation.lag_ns = 5 * static_cast<s64>(kMilli);
  bench.work(member, false);
  EXPECT_EQ(core_lag_ns(&bench.core, &bench.core.rotation), 0);
}

// It was tried in the rotation and is behind again: that is given back, a slice at most.
TEST(Misfits, WhoWasTriedOnceMoreIsOwedWhatItLost) {
  Bench bench;
  auto &a = bench.add();
  bench.add();
  bench.saturate();
  a.core.fit_lag_ns = static_cast<s64>(kSecond);
  a.core.stay_ns = 2 * kSecond;
  EXPECT_EQ(core_fit_debt_ns(&a.core), 0);
  a.core.stay_ns = 4 * kSecond;
  EXPECT_EQ(core_fit_debt_ns(&a.core), static_cast<s64>(a.core.cycle_slice_ns));
}

// Looked at in time.
void runsFor(Bench &bench, Tenant &tenant, uint64_t ns) {
  for (uint64_t end = bench.now + ns; bench.now < end; bench.now += kMilli)
    core_look(&bench.core, bench.now, CORE_SEEN_TSG, tenant.tsgs[0].get());
  core_look(&bench.core, bench.now, CORE_SEEN_TSG, tenant.tsgs[0].get());
}

// What a member loses before it gets windows is what those gained who were there; who came later
// did not, and is behind by nothing.
TEST(Misfits, WhatOneLostIsNoEvidenceAgainstWhoCameLater) {
  Bench bench;
  auto &sync = bench.add(), &old = bench.add(), &fresh = bench.add();
  bench.saturate();
  bench.work(fresh, false);
  runsFor(bench, old, 100 * kMilli);
  bench.work(fresh);
  core_fit_restart(&bench.core, &fresh.core);
  for (auto *t : {&sync, &old, &fresh}) core_lag_settle(&bench.core, &t->core);
  EXPECT_GT(sync.core.fit_lag_ns, static_cast<s64>(40 * kMilli));

  sync.core.misfit = true;
  core_place_all(&bench.core, bench.now);
  EXPECT_EQ(sync.core.place, CORE_RANKED);
  EXPECT_NEAR(static_cast<double>(fresh.core.fit_lag_ns), 0, kMicro);
  // Half of it by its share: the rest would have been the other's.
  EXPECT_LT(old.core.fit_lag_ns, 0);
  EXPECT_GT(old.core.fit_lag_ns, -static_cast<s64>(30 * kMilli));
}

// Looks that met two of its gaps did not see it leave: nobody's evidence is lost by that.
TEST(Misfits, WhoIsBackAtTheNextLookDidNotLeave) {
  Bench bench;
  auto &a = bench.add(), &b = bench.add(), &c = bench.add();
  bench.saturate();
  runsFor(bench, a, 30 * kMilli);
  std::vector<s64> before, after;
  for (auto *t : {&a, &b, &c}) core_lag_settle(&bench.core, &t->core);
  for (auto *t : {&a, &b, &c}) before.push_back(t->core.fit_lag_ns);
  EXPECT_GT(before[1], static_cast<s64>(9 * kMilli));
  bench.work(b, false);
  EXPECT_FALSE(core_tenant_busy(&b.core));
  bench.now += kMilli;
  bench.work(b);
  for (auto *t : {&a, &b, &c}) core_lag_settle(&bench.core, &t->core);
  for (auto *t : {&a, &b, &c}) after.push_back(t->core.fit_lag_ns);
  for (size_t i = 0; i < 3; i++) EXPECT_NEAR(before[i], after[i], 10) << i;
}

// Rounds in which gaps are held last longer than what is run in them: they are shorter then, and
// its windows are looked at more closely.
TEST(Misfits, WhoseGapsAreManyHaveShorterRounds) {
  Bench bench;
  auto &sync = bench.add();
  bench.add();
  bench.allWork();
  sync.core.misfit = true;
  sync.core.stay_ns = UINT64_MAX / 2;
  bench.plan();
  const uint64_t cycle_ns = bench.core.cycle_ns;
  for (const int64_t idle_ns : {2 * kMilli, kMilli / 4}) {
    for (int i = 0; i < 40; i++) {
      bench.core.window.owner = &sync.core;
      bench.core.window.spent_ns = 4 * kMilli;
      bench.core.window.idle_ns = idle_ns;
      core_fit_window(&bench.core, bench.now);
    }
    bench.core.window.owner = nullptr;
    EXPECT_TRUE(bench.core.dirty);
    bench.plan();
    const uint64_t expected_ns = idle_ns == 2 * kMilli ? cycle_ns - cycle_ns / 4 : cycle_ns;
    EXPECT_NEAR(static_cast<double>(bench.core.cycle_ns), static_cast<double>(expected_ns),
                static_cast<double>(kMilli));
  }
}

TEST(Misfits, AloneOrAsleepHaveNoWindows) {
  Bench bench;
  auto &a = bench.add(), &b = bench.add();
  a.core.misfit = true;
  bench.work(a);
  bench.plan();
  core_pick(&bench.core, bench.now);
  EXPECT_FALSE(a.core.place == CORE_RANKED);
  EXPECT_EQ(bench.core.window.owner, nullptr);
  bench.work(b);
  bench.plan();
  core_pick(&bench.core, bench.now);
  EXPECT_TRUE(a.core.place == CORE_RANKED);
  EXPECT_NE(bench.core.window.owner, nullptr);
  // Its gap: the rotation is alone again, and admits it in case it wakes.
  bench.work(a, false);
  core_pick(&bench.core, bench.now);
  EXPECT_EQ(bench.core.window.kind, CORE_WINDOW_ROTATION);
  EXPECT_EQ(bench.core.window.owner, nullptr);
  EXPECT_TRUE(core_admits(&bench.core, a.tsgs[0].get()));
}

size_t allocatedBytes() {
  return __sanitizer_get_current_allocated_bytes ? __sanitizer_get_current_allocated_bytes()
                                                 : mallinfo2().uordblks;
}

// What bench/run decision measures, for what it allocates: nothing.
TEST(ManyTenants, DecideWithoutAllocating) {
  for (const core_policy policy : {CORE_BURST_SHARE, CORE_EQUAL_SHARE}) {
    Bench bench(policy, 1000);
    for (int i = 0; i < 1000; i++) bench.add({.weight = 1 + static_cast<uint32_t>(i % 50)});
    bench.saturate();
    std::mt19937_64 random(1);
    const size_t before = allocatedBytes();
    for (int i = 0; i < 20'000; i++) {
      core_tsg *on = bench.tenants[random() % 1000]->tsgs[0].get();
      core_look(&bench.core, bench.now,
                core_admits(&bench.core, on) ? CORE_SEEN_TSG : CORE_SEEN_IDLE,
                core_admits(&bench.core, on) ? on : nullptr);
      const size_t other = random() % 1000;
      core_work(&bench.core, bench.tenants[other]->tsgs[0].get(), bench.now,
                other >= 300 || random() % 2);
      if (core_pick(&bench.core, bench.now)) core_taken(&bench.core, bench.now, nullptr, 0);
      bench.now = core_next_ns(&bench.core, bench.now);
    }
    ASSERT_EQ(allocatedBytes(), before);
  }
}

}  // namespace servers_test
}  // namespace qgpu::core_bench
