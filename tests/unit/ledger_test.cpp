// SPDX-License-Identifier: GPL-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "unit/core_bench.hpp"

namespace qgpu::core_bench {
namespace ledger_test {

core_counters counters(Bench &bench, Tenant &tenant) {
  core_counters out;
  core_tenant_counters(&bench.core, &tenant.core, &out);
  return out;
}

void look(Bench &bench, uint64_t at, Tenant *who, core_seen otherwise = CORE_SEEN_IDLE) {
  bench.now = at;
  core_look(&bench.core, at, who ? CORE_SEEN_TSG : otherwise, who ? who->tsgs[0].get() : nullptr);
}

TEST(Ledger, SplitsTheTimeBetweenTwoLooksInTheMiddle) {
  Bench bench;
  auto &a = bench.add(), &b = bench.add();
  const uint64_t t = bench.now;
  look(bench, t + 1000, &a);
  look(bench, t + 5000, &a);
  look(bench, t + 9000, &b);
  EXPECT_EQ(counters(bench, a).run_ns, 500u + 4000 + 2000);
  EXPECT_EQ(counters(bench, b).run_ns, 2000u);
  EXPECT_EQ(bench.core.totals.idle_ns, 500u);
}

TEST(Ledger, ChargesSwitchingToNobody) {
  Bench bench;
  auto &a = bench.add();
  const uint64_t t = bench.now;
  look(bench, t, &a);
  look(bench, t + 1000, nullptr, CORE_SEEN_SWITCH);
  look(bench, t + 3000, nullptr, CORE_SEEN_NOBODY);
  look(bench, t + 4000, nullptr, CORE_SEEN_IDLE);
  EXPECT_EQ(counters(bench, a).run_ns, 500u);
  EXPECT_EQ(bench.core.totals.switch_ns, 500u + 1000);
  EXPECT_EQ(bench.core.totals.nobody_ns, 1000u + 500);
  EXPECT_EQ(bench.core.totals.idle_ns, 500u);
}

TEST(LedgerProperty, ChargesEverythingOnce) {
  std::mt19937_64 random(seed() + 3);
  for (int round = 0; round < 50; round++) {
    Bench bench;
    for (int i = 0; i < 5; i++) bench.add({.weight = 1 + static_cast<uint32_t>(random() % 9)});
    const uint64_t start = bench.now;
    std::vector<uint64_t> before(5, 0);
    for (int i = 0; i < 2000; i++) {
      const uint64_t who = random() % 8;
      look(bench, bench.now + random() % kMilli, who < 5 ? bench.tenants[who].get() : nullptr,
           static_cast<core_seen>(who % 3));
      if (random() % 10 == 0) bench.work(*bench.tenants[random() % 5], random() % 2);
      if (random() % 100 == 0) bench.plan();
      for (size_t t = 0; t < 5; t++) {
        const core_counters c = counters(bench, *bench.tenants[t]);
        ASSERT_GE(c.run_ns, before[t]);
        before[t] = c.run_ns;
      }
    }
    uint64_t sum =
        bench.core.totals.idle_ns + bench.core.totals.switch_ns + bench.core.totals.nobody_ns;
    for (auto &t : bench.tenants) sum += counters(bench, *t).run_ns;
    ASSERT_EQ(sum, bench.now - start);
  }
}

TEST(LedgerProperty, CountersNeverGoBack) {
  std::mt19937_64 random(seed() + 4);
  Bench bench(CORE_FIXED_SHARE);
  for (int i = 0; i < 3; i++) bench.add({.guarantee_ppm = 200'000});
  bench.plan();
  std::vector<core_counters> last(3);
  for (int i = 0; i < 20'000; i++) {
    const uint64_t who = random() % 5;
    look(bench, bench.now + random() % kMilli, who < 3 ? bench.tenants[who].get() : nullptr);
    if (random() % 4 == 0) bench.work(*bench.tenants[random() % 3], random() % 2);
    core_pick(&bench.core, bench.now);
    for (size_t t = 0; t < 3; t++) {
      const core_counters c = counters(bench, *bench.tenants[t]);
      ASSERT_GE(c.run_ns, last[t].run_ns);
      ASSERT_GE(c.run_err_ns, last[t].run_err_ns);
      ASSERT_GE(c.wait_ns, last[t].wait_ns);
      ASSERT_GE(c.throttled_ns, last[t].throttled_ns);
      ASSERT_GE(c.windows, last[t].windows);
      last[t] = c;
    }
  }
}

// What really runs: a, switch, b, switch, repeated.
struct Truth {
  uint64_t a_ns, b_ns;
  uint64_t cycle() const { return a_ns + b_ns + 2 * kSwitch; }
  uint64_t runOfA(uint64_t t) const { return t / cycle() * a_ns + std::min(t % cycle(), a_ns); }
};

// Slices that are long, near the distance of looks, short, and whole multiples of it: strictly
// periodic looks would alias with the last.
TEST(LedgerProperty, SamplesWithoutBiasWithinThePublishedError) {
  std::mt19937_64 random(seed() + 5);
  for (const Truth truth : {Truth{12 * kMilli, 6 * kMilli}, Truth{700 * kMicro, 300 * kMicro},
                            Truth{150 * kMicro, 50 * kMicro}, Truth{19 * kMilli, 200 * kMicro},
                            Truth{250 * kMicro, 50 * kMicro}, Truth{2800 * kMicro, kMilli}}) {
    double sum = 0, squares = 0, published = 0;
    int outside = 0;
    const int rounds = 60;
    for (int round = 0; round < rounds; round++) {
      Bench bench;
      bench.core.rng = random() | 1;
      auto &a = bench.add(), &b = bench.add();
      bench.saturate();
      const uint64_t start = bench.now, phase = random() % truth.cycle();
      while (bench.now < start + 2 * kSecond) {
        const uint64_t at = core_next_ns(&bench.core, bench.now);
        const uint64_t in = (at - start + phase) % truth.cycle();
        const bool on_a = in < truth.a_ns;
        const bool on_b = in >= truth.a_ns + kSwitch && in < truth.a_ns + kSwitch + truth.b_ns;
        look(bench, at, on_a ? &a : on_b ? &b : nullptr, CORE_SEEN_SWITCH);
      }
      const double ran = static_cast<double>(truth.runOfA(bench.now - start + phase)) -
                         static_cast<double>(truth.runOfA(phase));
      const core_counters c = counters(bench, a);
      const double off = static_cast<double>(c.run_ns) - ran;
      sum += off;
      squares += off * off;
      published += static_cast<double>(c.run_err_ns);
      outside += std::abs(off) > static_cast<double>(c.run_err_ns);
    }
    const double sigma = std::sqrt(squares / rounds);
    // 3 sigma are exceeded once in 370; the published figure must not be a wild guess either.
    EXPECT_LE(outside, 3) << truth.a_ns << ":" << truth.b_ns;
    EXPECT_LE(std::abs(sum / rounds), 6 * sigma / std::sqrt(rounds));
    EXPECT_LE(published / rounds, 12 * sigma) << truth.a_ns << ":" << truth.b_ns;
  }
}

TEST(Activity, TakesAGapThatNoWindowHoldsToBeIdle) {
  Bench bench;
  auto &a = bench.add();
  core_tsg *tsg = a.tsgs[0].get();
  core_work(&bench.core, tsg, bench.now, true);
  EXPECT_TRUE(core_tenant_busy(&a.core));
  const uint64_t quiet = bench.now + 1, hold = 250 * kMicro;
  core_work(&bench.core, tsg, quiet, false);
  core_work(&bench.core, tsg, quiet + hold - 1, false);
  EXPECT_TRUE(core_tenant_busy(&a.core));
  // A kernel between two gaps: the second begins afresh.
  core_work(&bench.core, tsg, quiet + hold - 1, true);
  core_work(&bench.core, tsg, quiet + hold, false);
  core_work(&bench.core, tsg, quiet + 2 * hold - 1, false);
  EXPECT_TRUE(core_tenant_busy(&a.core));
  core_work(&bench.core, tsg, quiet + 2 * hold, false);
  EXPECT_FALSE(core_tenant_busy(&a.core));
  EXPECT_TRUE(core_tenant_awake(&a.core));
}

TEST(Activity, FallsAsleepAfterTheLinger) {
  Bench bench;
  auto &a = bench.add();
  core_tsg *tsg = a.tsgs[0].get();
  core_work(&bench.core, tsg, bench.now, true);
  bench.plan();
  core_work(&bench.core, tsg, bench.now + 15 * kMilli, false);
  core_work(&bench.core, tsg, bench.now + 20 * kMilli, false);
  EXPECT_TRUE(core_tenant_awake(&a.core));
  core_work(&bench.core, tsg, bench.now + 20 * kMilli + 1, false);
  EXPECT_FALSE(core_tenant_awake(&a.core));
  EXPECT_TRUE(bench.core.dirty);
  EXPECT_EQ(bench.core.awake_tsgs, 0u);
}

TEST(Activity, EndsWithTheTsg) {
  Bench bench;
  auto &a = bench.add();
  bench.saturate();
  core_tsg_remove(&bench.core, a.tsgs[0].get());
  EXPECT_EQ(a.core.tsg_count, 0u);
  EXPECT_EQ(bench.core.awake_tsgs, 0u);
  EXPECT_FALSE(core_tenant_busy(&a.core));
  EXPECT_EQ(bench.core.busy_ppm, 0u);
  // What it ran up to the last look is still charged to the tenant.
  look(bench, bench.now + 1000, nullptr);
}

TEST(Lag, IsWhatIsOwedOfDeliveredTime) {
  Bench bench;
  auto &a = bench.add({.weight = 300}), &b = bench.add({.weight = 100});
  bench.saturate();
  const uint64_t t = bench.now;
  look(bench, t, &a);
  look(bench, t + 4 * kMilli, &a);
  // 4 ms delivered, all to a.
  EXPECT_NEAR(static_cast<double>(core_lag_ns(&bench.core, &a.core)), -1e6, 10);
  EXPECT_NEAR(static_cast<double>(core_lag_ns(&bench.core, &b.core)), 1e6, 10);
}

TEST(Lag, AccruesOverTheBusyOnly) {
  Bench bench;
  auto &a = bench.add(), &b = bench.add(), &c = bench.add();
  bench.saturate();
  bench.work(c, false);
  const uint64_t t = bench.now;
  look(bench, t, &a);
  look(bench, t + 4 * kMilli, &a);
  EXPECT_NEAR(static_cast<double>(core_lag_ns(&bench.core, &b.core)), 2e6, 10);
  EXPECT_EQ(core_lag_ns(&bench.core, &c.core), 0);
}

TEST(Lag, OfANewcomerOrWakerStartsAtNothing) {
  Bench bench;
  auto &a = bench.add(), &b = bench.add();
  bench.work(a);
  bench.plan();
  const uint64_t t = bench.now;
  look(bench, t, &a);
  look(bench, t + kSecond, &a);
  bench.work(b);
  bench.plan();
  EXPECT_EQ(core_lag_ns(&bench.core, &b.core), 0);
  auto &c = bench.add();
  bench.work(c);
  bench.plan();
  EXPECT_EQ(core_lag_ns(&bench.core, &c.core), 0);
}

TEST(Lag, IsForgottenBySleepersAndCapped) {
  Bench bench;
  auto &a = bench.add(), &b = bench.add();
  bench.saturate();
  look(bench, bench.now, &a);
  for (int i = 0; i < 100; i++) look(bench, bench.now + 100 * kMilli, &a);
  EXPECT_EQ(core_lag_ns(&bench.core, &b.core), static_cast<s64>(kSecond));
  EXPECT_EQ(core_lag_ns(&bench.core, &a.core), -static_cast<s64>(kSecond));
  bench.work(b, false);
  bench.now += 100 * kMilli;
  bench.work(b, false);
  EXPECT_FALSE(core_tenant_awake(&b.core));
  EXPECT_EQ(core_lag_ns(&bench.core, &b.core), 0);
}

// An engine that rotates by the planned slices but gives a's a factor; looks as the core asks.
class Rotating {
 public:
  Rotating(Bench &bench, Tenant &a, Tenant &b, double factor)
      : bench_(bench), a_(a), b_(b), factor_(factor) {}

  void runFor(uint64_t ns) {
    const uint64_t end = bench_.now + ns;
    while (bench_.now < end) {
      const uint64_t at = core_next_ns(&bench_.core, bench_.now);
      Tenant *on = at_(at);
      look(bench_, at, on, CORE_SEEN_SWITCH);
      core_work(&bench_.core, a_.tsgs[0].get(), at, true);
      core_work(&bench_.core, b_.tsgs[0].get(), at, true);
      if (core_pick(&bench_.core, at)) {
        images_++;
        core_taken(&bench_.core, at, nullptr, 0);
      }
    }
  }
  double share() const { return a_ran_ / (a_ran_ + b_ran_); }
  void forget() { a_ran_ = b_ran_ = 0; }
  int images() const { return images_; }

 private:
  Tenant *at_(uint64_t at) {
    while (true) {
      const double a = static_cast<double>(a_.tsgs[0]->planned_ns) * factor_;
      const double b = static_cast<double>(b_.tsgs[0]->planned_ns);
      const double in = static_cast<double>(at - cycle_from_);
      if (in < a) return &a_;
      if (in < a + 100e3) return nullptr;
      if (in < a + 100e3 + b) return &b_;
      if (in < a + 200e3 + b) return nullptr;
      cycle_from_ += static_cast<uint64_t>(a + b + 200e3);
      a_ran_ += a;
      b_ran_ += b;
    }
  }

  Bench &bench_;
  Tenant &a_, &b_;
  double factor_, a_ran_ = 0, b_ran_ = 0;
  uint64_t cycle_from_ = bench_.now;
  int images_ = 0;
};

TEST(Trim, CorrectsAnEngineThatFavoursSomebody) {
  Bench bench;
  auto &a = bench.add(), &b = bench.add();
  bench.saturate();
  core_taken(&bench.core, bench.now, nullptr, 0);
  Rotating engine(bench, a, b, 1.05);
  engine.runFor(10 * kSecond);
  engine.forget();
  engine.runFor(20 * kSecond);
  EXPECT_NEAR(engine.share(), 0.5, 0.006);
  EXPECT_LT(a.core.trim_ppm, 0);
  EXPECT_GT(b.core.trim_ppm, -20'000);
  EXPECT_LE(engine.images(), 30);
}

TEST(Trim, IsLimited) {
  Bench bench;
  auto &a = bench.add(), &b = bench.add();
  bench.saturate();
  core_taken(&bench.core, bench.now, nullptr, 0);
  Rotating engine(bench, a, b, 2.0);
  engine.runFor(20 * kSecond);
  EXPECT_EQ(a.core.trim_ppm, -CORE_TRIM_MAX_PPM);
  EXPECT_EQ(b.core.trim_ppm, CORE_TRIM_MAX_PPM);
}

// Looks a millisecond apart that find this one.
void lookAt(Bench &bench, Tenant &who, uint64_t ns) {
  for (const uint64_t until = bench.now + ns; bench.now < until;)
    look(bench, bench.now + kMilli, &who);
}

// Between its first work and the plan that gives it a share it is entitled to nothing.
TEST(Trim, WhatANewcomerRanBeforeItHadAShareIsNoDrift) {
  Bench bench;
  auto &a = bench.add(), &b = bench.add();
  bench.work(a);
  bench.plan();
  core_pick(&bench.core, bench.now);
  core_taken(&bench.core, bench.now, nullptr, 0);
  lookAt(bench, a, 2 * kSecond);
  lookAt(bench, b, 50 * kMilli);
  core_pick(&bench.core, bench.now);
  EXPECT_EQ(a.core.share_ppm, CORE_PPM / 2);
  EXPECT_EQ(a.core.trim_ppm, 0);
  EXPECT_EQ(b.core.trim_ppm, 0);
  Rotating engine(bench, a, b, 1.0);
  engine.runFor(20 * kSecond);
  EXPECT_EQ(a.core.trim_ppm, 0);
  EXPECT_EQ(b.core.trim_ppm, 0);
}

TEST(Trim, WhatRanUnderAnotherPolicyIsNoDrift) {
  Bench bench(CORE_BEST_EFFORT);
  auto &a = bench.add({.weight = 200}), &b = bench.add();
  bench.saturate();
  core_taken(&bench.core, bench.now, nullptr, 0);
  for (int i = 0; i < 100; i++) {
    lookAt(bench, a, 10 * kMilli);
    lookAt(bench, b, 10 * kMilli);
  }
  core_policy_set(&bench.core, CORE_BURST_SHARE, 0);
  lookAt(bench, a, 20 * kMilli);
  lookAt(bench, b, 20 * kMilli);
  core_pick(&bench.core, bench.now);
  EXPECT_EQ(a.core.trim_ppm, 0);
  EXPECT_EQ(b.core.trim_ppm, 0);
}

TEST(Trim, LeavesARightEngineAlone) {
  Bench bench;
  auto &a = bench.add({.weight = 200}), &b = bench.add();
  bench.saturate();
  core_taken(&bench.core, bench.now, nullptr, 0);
  Rotating engine(bench, a, b, 1.0);
  engine.runFor(60 * kSecond);
  EXPECT_LE(engine.images(), 2);
  EXPECT_NEAR(engine.share(), 2.0 / 3, 0.002);
}

// Of a time in which nothing could be enforced.
TEST(Forgiveness, NobodyOwesOrIsOwedAndCountersStay) {
  Bench bench;
  auto &a = bench.add(), &b = bench.add();
  bench.saturate();
  look(bench, bench.now + kMilli, &a);
  for (int i = 0; i < 400; i++) look(bench, bench.now + kMilli, &a);
  ASSERT_LT(core_lag_ns(&bench.core, &a.core), -100'000'000);
  ASSERT_GT(core_lag_ns(&bench.core, &b.core), 100'000'000);
  const uint64_t ran = counters(bench, a).run_ns;
  core_forgive(&bench.core, bench.now);
  EXPECT_EQ(core_lag_ns(&bench.core, &a.core), 0);
  EXPECT_EQ(core_lag_ns(&bench.core, &b.core), 0);
  EXPECT_EQ(counters(bench, a).run_ns, ran);
  // It goes on from there.
  look(bench, bench.now + kMilli, &b);
  look(bench, bench.now + 2 * kMilli, &b);
  EXPECT_GT(core_lag_ns(&bench.core, &a.core), 0);
  EXPECT_LT(core_lag_ns(&bench.core, &b.core), 0);
}

TEST(Forgiveness, WhoGotWindowsBecauseOfItIsInTheRotationAgain) {
  Bench bench;
  auto &a = bench.add(), &b = bench.add();
  bench.saturate();
  a.core.misfit = b.core.misfit = true;
  a.core.misfit_from_ns = bench.now - kSecond;
  b.core.misfit_from_ns = bench.now;
  core_forgive(&bench.core, bench.now - kMilli);
  bench.plan();
  EXPECT_TRUE(a.core.misfit);
  EXPECT_EQ(b.core.place, CORE_ROTATES);
}

TEST(Forgiveness, BudgetsAreThoseOfThePeriodThatIsOn) {
  Bench bench(CORE_FIXED_SHARE);
  auto &a = bench.add({.guarantee_ppm = 300'000}), &b = bench.add({.guarantee_ppm = 300'000});
  bench.saturate();
  for (int i = 0; i < 2000; i++) {
    look(bench, bench.now + kMilli, &a);
    bench.work(b);
  }
  core_pick(&bench.core, bench.now);
  ASSERT_LT(a.core.left_ns, -500'000'000);
  core_forgive(&bench.core, bench.now);
  for (const auto *tenant : {&a, &b}) {
    EXPECT_GE(tenant->core.left_ns, 0);
    EXPECT_LE(tenant->core.left_ns, static_cast<s64>(tenant->core.budget_ns));
  }
  // Both have their windows at once.
  uint64_t owned[2] = {};
  for (int i = 0; i < 400; i++) {
    core_pick(&bench.core, bench.now);
    const core_tenant *owner = bench.core.window.owner;
    Tenant *on = owner == &a.core ? &a : owner == &b.core ? &b : nullptr;
    if (on) owned[on == &b]++;
    look(bench, bench.now + kMilli, on);
    bench.work(a);
    bench.work(b);
  }
  EXPECT_NEAR(static_cast<double>(owned[0]), 120, 25);
  EXPECT_NEAR(static_cast<double>(owned[1]), 120, 25);
}

}  // namespace ledger_test
}  // namespace qgpu::core_bench
