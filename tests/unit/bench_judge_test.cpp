// SPDX-License-Identifier: GPL-2.0
#include <gtest/gtest.h>

#include <random>

#include "fakes/seed.hpp"
#include "judge.hpp"
#include "quantile.hpp"

namespace qgpu::bench {
namespace bench_judge_test {

using scenario::Record;

struct Ran {
  Record record{2};
  std::vector<Spans> ran{2};
  void add(size_t party, uint64_t from, uint64_t to) {
    record.add(party, from, to);
    ran[party].push_back({from, to});
  }
};

// A runs @a of every @a + @b, B the rest, from 0 to @end.
Ran alternate(uint64_t a, uint64_t b, uint64_t end) {
  Ran run;
  for (uint64_t t = 0; t + a + b <= end; t += a + b) {
    run.add(0, t, t + a);
    run.add(1, t + a, t + a + b);
  }
  return run;
}

TEST(BenchJudge, ClosesGapsUpToTheLengthAndNoLonger) {
  EXPECT_EQ(closeGaps({{0, 10}, {15, 20}, {26, 30}}, 5), (Spans{{0, 20}, {26, 30}}));
  EXPECT_EQ(closeGaps({}, 5), Spans{});
}

TEST(BenchJudge, LengthIsWhatLiesWithin) {
  EXPECT_EQ(lengthWithin({{0, 10}, {20, 30}, {40, 50}}, 5, 45), 5u + 10 + 5);
  EXPECT_EQ(lengthWithin({{0, 10}}, 20, 30), 0u);
}

TEST(BenchJudge, SharesAreThoseOfTheAwake) {
  const auto steps = entitlements(
      {{0.5, false, {{0, 100}}}, {0.3, false, {{0, 50}, {80, 100}}}, {0.2, false, {{20, 100}}}},
      Entitled::kByWeight);
  ASSERT_EQ(steps[0].size(), 5u);
  EXPECT_EQ(steps[0][0].at_ns, 0u);
  EXPECT_DOUBLE_EQ(steps[0][0].share, 0.5 / 0.8);
  EXPECT_DOUBLE_EQ(steps[0][1].share, 0.5);
  EXPECT_DOUBLE_EQ(steps[0][2].share, 0.5 / 0.7);
  EXPECT_DOUBLE_EQ(steps[0][3].share, 0.5);
  EXPECT_EQ(steps[0][4], (Step{100, 0}));
  EXPECT_EQ(steps[2][0].at_ns, 20u);
}

TEST(BenchJudge, OnlineTakesAllWhileAwakeAndFixedIsFixed) {
  const std::vector<Claimant> claimants = {{0.9, true, {{10, 20}}}, {0.1, false, {{0, 30}}}};
  EXPECT_EQ(entitlements(claimants, Entitled::kOnline)[0], (Steps{{10, 1}, {20, 0}}));
  EXPECT_EQ(entitlements(claimants, Entitled::kOnline)[1],
            (Steps{{0, 1}, {10, 0}, {20, 1}, {30, 0}}));
  EXPECT_EQ(entitlements(claimants, Entitled::kFixed)[0], (Steps{{10, 0.9}, {20, 0}}));
  EXPECT_EQ(entitlements(claimants, Entitled::kFixed)[1], (Steps{{0, 0.1}, {30, 0}}));
}

TEST(BenchJudge, ErrorOfAnAlternationIsItsBrokenRound) {
  const Ran run = alternate(30, 70, 1000);
  const Steps steps = {{0, 0.3}};
  const Case c(run.record, 0, edgesOf(run.ran), steps, Entitled::kByWeight, 0, 1000);
  // A window of one round is exact wherever it starts.
  EXPECT_NEAR(c.worstErrorPp(100), 0, 1e-9);
  // Windows of 150: at worst 60 of its own (30 entitled to 45) or 30 (window begins behind it).
  EXPECT_NEAR(c.worstErrorPp(150), (60 - 45) / 150.0 * 100, 1e-9);
  // Inside one visit it has everything.
  EXPECT_NEAR(c.worstErrorPp(30), 70, 1e-9);
  EXPECT_EQ(c.worstErrorPp(2000), 0);
  EXPECT_NEAR(c.worstErrorPp(1000), 0, 1e-9);
}

TEST(BenchJudge, ShareIsOfDeliveredTimeSoIdleTimeIsNobodys) {
  Ran run;
  for (uint64_t t = 0; t < 1000; t += 100) {
    run.add(0, t, t + 20);
    run.add(1, t + 50, t + 70);
  }
  const Steps half = {{0, 0.5}};
  EXPECT_NEAR(
      Case(run.record, 0, edgesOf(run.ran), half, Entitled::kByWeight, 0, 1000).worstErrorPp(100),
      0, 1e-9);
  EXPECT_NEAR(
      Case(run.record, 0, edgesOf(run.ran), half, Entitled::kFixed, 0, 1000).worstErrorPp(100), 30,
      1e-9);
}

TEST(BenchJudge, EntitlementOfASleeperIsNothing) {
  Ran run;
  run.add(1, 0, 400);
  run.add(0, 400, 450);
  run.add(1, 450, 500);
  run.add(1, 500, 1000);
  const auto steps =
      entitlements({{0.5, false, {{400, 500}}}, {0.5, false, {{0, 1000}}}}, Entitled::kByWeight);
  for (const size_t i : {0, 1}) {
    const Case c(run.record, i, edgesOf(run.ran), steps[i], Entitled::kByWeight, 0, 1000);
    EXPECT_NEAR(c.worstErrorPp(1000), 0, 1e-9) << i;
    // 50 ahead in the first half of the time both want it, 25 of these are its own.
    EXPECT_NEAR(c.worstErrorPp(50), 50, 1e-9) << i;
  }
  const Case c(run.record, 0, edgesOf(run.ran), steps[0], Entitled::kByWeight, 0, 1000);
  EXPECT_DOUBLE_EQ(c.entitledNs(0, 1000), 50);
  EXPECT_DOUBLE_EQ(c.entitledNs(350, 450), 25);
}

TEST(BenchJudge, LooksOnlyWithinItsTime) {
  Ran run;
  run.add(0, 0, 500);
  for (uint64_t t = 500; t < 1000; t += 20) {
    run.add(0, t, t + 10);
    run.add(1, t + 10, t + 20);
  }
  const Steps steps = {{0, 0.5}};
  const Case late(run.record, 0, edgesOf(run.ran), steps, Entitled::kByWeight, 500, 1000);
  EXPECT_NEAR(late.worstErrorPp(100), 0, 1e-9);
  const Case all(run.record, 0, edgesOf(run.ran), steps, Entitled::kByWeight, 0, 1000);
  EXPECT_NEAR(all.worstErrorPp(100), 50, 1e-9);
}

// With shares that never change it must agree with the judge of the scenario tests, and no
// window at any start may be worse than what it found.
TEST(BenchJudge, AgreesWithTheScenarioJudgeAndWithBruteForce) {
  std::mt19937_64 random(fakes::seed());
  QGPU_TRACE_SEED();
  for (int round = 0; round < 50; round++) {
    Ran run;
    uint64_t t = 0;
    while (t < 2000) {
      const uint64_t length = 1 + random() % 60;
      run.add(random() % 2, t, t + length);
      t += length + (random() % 3 ? 0 : random() % 20);
    }
    const double share = static_cast<double>(1 + random() % 99) / 100;
    const Steps steps = {{0, share}};
    const uint64_t length = 50 + random() % 400;
    const Case c(run.record, 0, edgesOf(run.ran), steps, Entitled::kByWeight, 0, 2000);
    const double worst = c.worstErrorPp(length);
    EXPECT_LE(run.record.worstShareError(0, share, 0, 2000, {length}), worst + 1e-9);
    for (uint64_t start = 0; start + length <= 2000; start++) {
      const double all = static_cast<double>(run.record.delivered(start, start + length));
      const double own = static_cast<double>(run.record.run(0, start, start + length));
      if (all > 0) {
        ASSERT_LE(std::abs(own / all - share) * 100, worst + 1e-9) << "start " << start;
      }
    }
  }
}

// A runs 30 of every 100, in one piece: a window of 50 has at most 30 and at least none.
TEST(BenchJudge, TooMuchAndTooLittleAreToldApart) {
  const Ran run = alternate(30, 70, 1000);
  const Case c(run.record, 0, edgesOf(run.ran), {{0, 0.4}}, Entitled::kByWeight, 0, 1000);
  EXPECT_NEAR(c.mostExcessPp(50), 20, 1e-9);
  EXPECT_NEAR(c.mostShortPp(50), 40, 1e-9);
  EXPECT_NEAR(c.worstErrorPp(50), 40, 1e-9);
  EXPECT_NEAR(c.mostExcessPp(100), -10, 1e-9);
}

TEST(BenchJudge, WaitIsFromWakeToFirstRun) {
  const Spans ran = {{10, 20}, {50, 60}};
  EXPECT_EQ(waits(ran, {5, 12, 20, 30, 70}, 0, 100), (std::vector<double>{5, 0, 30, 20, 30}));
  EXPECT_EQ(waits(ran, {5, 12, 30}, 10, 30), (std::vector<double>{0}));
}

TEST(BenchJudge, StarvationIsOnlyWithWork) {
  Record record(1);
  record.add(0, 10, 20);
  record.add(0, 80, 90);
  EXPECT_EQ(starvationNs(record, 0, {{0, 100}}, 0, 100), 60u);
  EXPECT_EQ(starvationNs(record, 0, {{0, 40}, {75, 90}}, 0, 100), 20u);
  EXPECT_EQ(starvationNs(record, 0, {{0, 40}}, 0, 30), 10u);
  EXPECT_EQ(starvationNs(record, 0, {}, 0, 100), 0u);
}

TEST(BenchJudge, QuantileOfFewAndNone) {
  std::vector<double> none, some = {5, 1, 4, 2, 3};
  EXPECT_EQ(quantile(none, 0.5), 0);
  EXPECT_EQ(quantile(some, 0.5), 3);
  EXPECT_EQ(quantile(some, 0.99), 5);
  EXPECT_EQ(quantile(some, 1), 5);
}

}  // namespace bench_judge_test
}  // namespace qgpu::bench
