// SPDX-License-Identifier: GPL-2.0
//
// wait_test.cpp - the longest single wait of a tenant as the ledger's looks see it.
#include <gtest/gtest.h>

#include "unit/core_bench.hpp"

namespace qgpu::core_bench {
namespace wait_test {

uint64_t longestWait(Bench &bench, Tenant &tenant) {
  core_counters out;
  core_tenant_counters(&bench.core, &tenant.core, &out);
  return out.wait_max_ns;
}

void look(Bench &bench, uint64_t at, Tenant *who) {
  bench.now = at;
  core_look(&bench.core, at, who ? CORE_SEEN_TSG : CORE_SEEN_IDLE,
            who ? who->tsgs[0].get() : nullptr);
}

// What turn.c does after a look: is there work of it?
void probe(Bench &bench, Tenant &tenant, bool has) {
  core_work(&bench.core, tenant.tsgs[0].get(), bench.now, has);
}

TEST(LongestWait, IsFromTheMiddleBetweenTwoLooksToTheMiddleBetweenTwoLooks) {
  Bench bench;
  auto &a = bench.add(), &b = bench.add();
  bench.allWork();
  const uint64_t t = bench.now;
  look(bench, t + 1000, &a);
  look(bench, t + 2000, &b);
  look(bench, t + 9000, &b);
  look(bench, t + 10'000, &a);
  EXPECT_EQ(longestWait(bench, a), 8000u);
}

TEST(Waits, AreCountedByHowLongTheyLastedOnceEach) {
  Bench bench;
  auto &a = bench.add(), &b = bench.add();
  bench.allWork();
  uint64_t t = bench.now;
  look(bench, t += 1000, &a);
  // Waits of b: 10 us, then 100 us and 2 s, looked at often enough.
  for (uint64_t wait_ns : {uint64_t{10'000}, uint64_t{100'000}, 2 * kSecond}) {
    const uint64_t step_ns = wait_ns > kSecond ? 100'000 : 1000;
    for (uint64_t end_ns = t + wait_ns; t < end_ns;) look(bench, t += step_ns, &a);
    look(bench, t += step_ns, &b);
    look(bench, t += 1000, &a);
  }
  core_counters out;
  core_tenant_counters(&bench.core, &b.core, &out);
  EXPECT_EQ(out.waits.bins[0], 1u);
  EXPECT_EQ(out.waits.bins[1], 1u);
  EXPECT_EQ(out.waits.bins[CORE_HIST_BINS - 1], 1u);
  EXPECT_NEAR(static_cast<double>(out.waits.sum_ns), 2.000'11e9, 1e6);
  core_tenant_counters(&bench.core, &a.core, &out);
  EXPECT_EQ(out.waits.bins[0], 4u);  // and before its first look
}

TEST(Tails, AreCountedWhenTheyEnd) {
  Bench bench;
  auto &a = bench.add(), &b = bench.add();
  bench.allWork();
  uint64_t t = bench.now;
  look(bench, t += 1000, &a);
  bench.core.draining = true;
  for (int i = 0; i < 10; ++i) look(bench, t += 100'000, &a);
  bench.core.draining = false;
  look(bench, t += 1000, &b);
  core_counters out;
  core_tenant_counters(&bench.core, &a.core, &out);
  EXPECT_EQ(out.tails.sum_ns, 950'000u);
  EXPECT_EQ(out.tails.bins[4], 1u);  // 0.52 to 1.05 ms
  core_tenant_counters(&bench.core, &b.core, &out);
  EXPECT_EQ(out.tails.sum_ns, 0u);
}

TEST(LongestWait, BeginsWhenWorkIsFound) {
  Bench bench;
  auto &a = bench.add(), &b = bench.add();
  const uint64_t t = bench.now;
  look(bench, t + 1000, &a);
  probe(bench, b, false);
  look(bench, t + 5000, &a);
  probe(bench, b, true);
  look(bench, t + 8000, &a);
  look(bench, t + 10'000, &b);
  EXPECT_EQ(longestWait(bench, b), 4000u);
}

TEST(LongestWait, IsNoTimeWithoutWork) {
  Bench bench;
  auto &a = bench.add(), &b = bench.add();
  const uint64_t t = bench.now;
  look(bench, t + 1000, &a);
  look(bench, t + 2000, &b);
  probe(bench, a, false);
  look(bench, t + 900'000, &b);
  probe(bench, a, true);
  look(bench, t + 901'000, &a);
  EXPECT_LE(longestWait(bench, a), 1000u);
}

TEST(LongestWait, OfOneThatNeverRunsGrows) {
  Bench bench;
  auto &a = bench.add(), &b = bench.add();
  const uint64_t t = bench.now;
  look(bench, t, &a);
  probe(bench, b, true);
  for (int i = 1; i <= 10; i++) {
    look(bench, t + i * kMilli, &a);
    probe(bench, b, true);
    EXPECT_EQ(longestWait(bench, b), i * kMilli);
  }
  EXPECT_EQ(longestWait(bench, a), 0u);
}

TEST(LongestWait, OfTwoTsgsEndsWithEither) {
  Bench bench;
  auto &a = bench.add({}, 2), &b = bench.add();
  bench.allWork();
  const uint64_t t = bench.now;
  look(bench, t + 1000, &a);
  look(bench, t + 2000, &b);
  look(bench, t + 3000, &b);
  core_look(&bench.core, t + 4000, CORE_SEEN_TSG, a.tsgs[1].get());
  EXPECT_EQ(longestWait(bench, a), 2000u);
}

TEST(LongestWait, EndsWithItsLastTsg) {
  Bench bench;
  auto &a = bench.add(), &b = bench.add();
  bench.allWork();
  const uint64_t t = bench.now;
  look(bench, t + 1000, &b);
  probe(bench, a, true);
  core_tsg_remove(&bench.core, a.tsgs[0].get());
  core_tsg_add(&bench.core, a.tsgs[0].get(), &a.core);
  core_tsg_list(&bench.core, a.tsgs[0].get(), true);
  bench.now = t + 5 * kMilli;
  probe(bench, a, true);
  EXPECT_LE(longestWait(bench, a), 1000u);
}

TEST(LongestWait, KnowsNothingOfATimeWithoutLooks) {
  Bench bench;
  auto &a = bench.add(), &b = bench.add();
  bench.allWork();
  const uint64_t t = bench.now;
  look(bench, t + 1000, &a);
  look(bench, t + 2000, &b);
  look(bench, t + kSecond, &b);
  look(bench, t + kSecond + 1000, &a);
  EXPECT_LE(longestWait(bench, a), 2000u);
}

// What a ceiling keeps from its tenant is its own wish.
TEST(LongestWait, IsNoTimeWithoutBudgetUnderACeiling) {
  Bench bench;
  auto &a = bench.add({.ceiling_ppm = 100'000}), &b = bench.add();
  bench.saturate();
  const uint64_t t = bench.now;
  uint64_t ran = 0;
  // Runs until it is out of budget, and is looked at closely.
  while (!a.core.throttled && ran < kSecond) look(bench, t + (ran += 100 * kMicro), &a);
  ASSERT_TRUE(a.core.throttled);
  const uint64_t end = a.core.period_end_ns;
  while (bench.now < end) {
    look(bench, std::min(bench.now + 400 * kMicro, end), &b);
    probe(bench, a, true);
    core_pick(&bench.core, bench.now);
  }
  look(bench, bench.now + 100 * kMicro, &b);
  core_pick(&bench.core, bench.now);
  ASSERT_FALSE(a.core.throttled);
  look(bench, bench.now + kMilli, &a);
  EXPECT_GE(end - t, 5 * kMilli);
  EXPECT_LE(longestWait(bench, a), 1200 * kMicro);
}

TEST(LongestWaitProperty, NeverGoesBackAndIsNoLongerThanTheTime) {
  std::mt19937_64 random(seed() + 6);
  Bench bench;
  for (int i = 0; i < 4; i++) bench.add();
  std::vector<uint64_t> last(4);
  for (int i = 0; i < 20'000; i++) {
    const uint64_t who = random() % 6;
    look(bench, bench.now + random() % kMilli, who < 4 ? bench.tenants[who].get() : nullptr);
    if (random() % 4 == 0) probe(bench, *bench.tenants[random() % 4], random() % 2);
    core_pick(&bench.core, bench.now);
    for (size_t t = 0; t < 4; t++) {
      const uint64_t wait = longestWait(bench, *bench.tenants[t]);
      ASSERT_GE(wait, last[t]);
      ASSERT_LE(wait, bench.core.looked_ns - 1'000'000'000'000);
      last[t] = wait;
    }
  }
}

}  // namespace wait_test
}  // namespace qgpu::core_bench
