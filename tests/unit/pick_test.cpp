// SPDX-License-Identifier: GPL-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "unit/core_bench.hpp"

namespace qgpu::core_bench {
namespace pick_test {

// An engine that obeys at once but for the time of a switch, and runs whatever is admitted first.
class Engine {
 public:
  explicit Engine(Bench &bench) : bench_(bench), ran_(bench.tenants.size(), 0) {
    for (auto &t : bench.tenants) busy_.push_back(t.get());
  }

  // Who has work, kept up at each look.
  void setBusy(size_t i, bool busy) { busy_[i] = busy ? bench_.tenants[i].get() : nullptr; }

  void runTo(uint64_t end) {
    while (bench_.now < end) {
      const uint64_t at = std::min<uint64_t>(end, core_next_ns(&bench_.core, bench_.now));
      advance(at);
      look();
      for (size_t i = 0; i < busy_.size(); i++)
        for (auto &tsg : bench_.tenants[i]->tsgs)
          core_work(&bench_.core, tsg.get(), bench_.now, busy_[i] != nullptr);
      if (core_pick(&bench_.core, bench_.now)) carryOut();
    }
  }
  uint64_t ran(size_t i) const { return ran_[i]; }

 private:
  void advance(uint64_t at) {
    if (on_) {
      const size_t i = on_->core.index;
      const uint64_t from = std::max(bench_.now, on_from_);
      if (at > from && busy_[i]) ran_[i] += at - from;
    }
    bench_.now = at;
  }
  void look() {
    const bool runs = on_ && bench_.now >= on_from_ && busy_[on_->core.index];
    core_look(&bench_.core, bench_.now,
              runs                           ? CORE_SEEN_TSG
              : on_ && bench_.now < on_from_ ? CORE_SEEN_SWITCH
                                             : CORE_SEEN_IDLE,
              runs ? on_->tsgs[0].get() : nullptr);
  }
  void carryOut() {
    Tenant *next = nullptr;
    for (auto &t : bench_.tenants)
      if (core_admits(&bench_.core, t->tsgs[0].get()) && busy_[t->core.index]) next = t.get();
    core_taken(&bench_.core, bench_.now, next ? next->tsgs[0].get() : nullptr, 0);
    if (next != on_) {
      on_ = next;
      on_from_ = bench_.now + kSwitch;
      look();
    }
    // The edge: looked at until it is on.
    if (on_ && bench_.now < on_from_) {
      for (const uint64_t at : {on_from_ - 1, on_from_}) {
        advance(at);
        look();
      }
    }
  }

  Bench &bench_;
  std::vector<uint64_t> ran_;
  std::vector<Tenant *> busy_;
  Tenant *on_ = nullptr;
  uint64_t on_from_ = 0;
};

TEST(Windows, GoByEarliestPeriodEndThenIndex) {
  Bench bench(CORE_FIXED_SHARE);
  auto &slow = bench.add({.guarantee_ppm = 50'000});  // F = 40 ms
  auto &a = bench.add({.guarantee_ppm = 300'000});
  auto &b = bench.add({.guarantee_ppm = 300'000});
  bench.now = bench.now / (200 * kMilli) * 200 * kMilli;
  bench.saturate();
  EXPECT_EQ(bench.core.window.kind, CORE_WINDOW_EXCLUSIVE);
  EXPECT_EQ(bench.core.window.owner, &a.core);
  EXPECT_TRUE(core_admits(&bench.core, a.tsgs[0].get()));
  EXPECT_FALSE(core_admits(&bench.core, b.tsgs[0].get()));
  EXPECT_FALSE(core_admits(&bench.core, slow.tsgs[0].get()));

  Engine engine(bench);
  engine.runTo(bench.now + 8 * kMilli);
  EXPECT_EQ(bench.core.window.owner, &b.core);
  engine.runTo(bench.now + 6 * kMilli);
  EXPECT_EQ(bench.core.window.owner, &slow.core);
}

TEST(Windows, LeaveTheEngineEmptyWhileNobodyMayRun) {
  Bench bench(CORE_FIXED_SHARE);
  auto &a = bench.add({.guarantee_ppm = 300'000});
  auto &sleeper = bench.add({.guarantee_ppm = 300'000});
  bench.now = bench.now / (20 * kMilli) * 20 * kMilli;
  bench.plan();
  bench.work(a);
  core_pick(&bench.core, bench.now);
  Engine engine(bench);
  engine.setBusy(1, false);
  engine.runTo(bench.now + 10 * kMilli);
  EXPECT_EQ(bench.core.window.kind, CORE_WINDOW_QUIET);
  EXPECT_FALSE(core_admits(&bench.core, a.tsgs[0].get()));
  // Who has budget and no work may as well be in the image: it runs at once when it wakes.
  EXPECT_TRUE(core_admits(&bench.core, sleeper.tsgs[0].get()));
  // The refill is at the period's end on the card's clock.
  EXPECT_EQ(bench.core.waiting.at[0], &a.core);
  EXPECT_EQ(a.core.period_end_ns % (20 * kMilli), 0u);
  EXPECT_LE(core_next_ns(&bench.core, bench.now), a.core.period_end_ns);
}

TEST(Windows, EndWhenTheirOwnerHasNoWork) {
  Bench bench(CORE_FIXED_SHARE);
  auto &a = bench.add({.guarantee_ppm = 300'000}), &b = bench.add({.guarantee_ppm = 300'000});
  bench.now = bench.now / (20 * kMilli) * 20 * kMilli;
  bench.saturate();
  ASSERT_EQ(bench.core.window.owner, &a.core);
  Engine engine(bench);
  engine.runTo(bench.now + 2 * kMilli);
  engine.setBusy(0, false);
  engine.runTo(bench.now + 2 * kMilli);
  EXPECT_EQ(bench.core.window.owner, &b.core);
}

TEST(Windows, DeductOverrunsFromTheNextBudget) {
  Bench bench(CORE_FIXED_SHARE);
  auto &a = bench.add({.guarantee_ppm = 300'000});
  bench.now = bench.now / (20 * kMilli) * 20 * kMilli;
  bench.saturate();
  core_look(&bench.core, bench.now, CORE_SEEN_TSG, a.tsgs[0].get());
  bench.now += 10 * kMilli;  // a turn that came 4 ms late
  core_look(&bench.core, bench.now, CORE_SEEN_TSG, a.tsgs[0].get());
  core_pick(&bench.core, bench.now);
  EXPECT_EQ(bench.core.window.kind, CORE_WINDOW_QUIET);
  EXPECT_EQ(a.core.overruns, 1u);
  EXPECT_EQ(a.core.left_ns, -4 * static_cast<s64>(kMilli));
  core_look(&bench.core, bench.now, CORE_SEEN_IDLE, nullptr);
  bench.now += 10 * kMilli;
  core_look(&bench.core, bench.now, CORE_SEEN_IDLE, nullptr);
  core_pick(&bench.core, bench.now);
  EXPECT_EQ(bench.core.window.owner, &a.core);
  EXPECT_EQ(bench.core.window.budget_ns, 2 * static_cast<s64>(kMilli));
}

TEST(Windows, CarryWhatABusyOwnerMissedAndSpendAtMostTwoBudgets) {
  Bench bench(CORE_FIXED_SHARE);
  auto &a = bench.add({.guarantee_ppm = 200'000}), &b = bench.add({.guarantee_ppm = 200'000});
  bench.now = bench.now / (20 * kMilli) * 20 * kMilli;
  bench.saturate();
  ASSERT_EQ(bench.core.window.owner, &a.core);
  // a cannot be cut for three periods; b waits.
  core_look(&bench.core, bench.now, CORE_SEEN_TSG, a.tsgs[0].get());
  bench.now += 65 * kMilli;
  core_look(&bench.core, bench.now, CORE_SEEN_TSG, a.tsgs[0].get());
  core_pick(&bench.core, bench.now);
  ASSERT_EQ(bench.core.window.owner, &b.core);
  EXPECT_EQ(bench.core.window.budget_ns, 8 * static_cast<s64>(kMilli));
  EXPECT_EQ(b.core.left_ns, 16 * static_cast<s64>(kMilli));
}

TEST(Windows, GiveANewcomerItsPartOfThePeriod) {
  Bench bench(CORE_FIXED_SHARE);
  auto &a = bench.add({.guarantee_ppm = 300'000});
  bench.now = bench.now / (20 * kMilli) * 20 * kMilli + 15 * kMilli;
  bench.saturate();
  ASSERT_EQ(bench.core.window.owner, &a.core);
  EXPECT_EQ(bench.core.window.budget_ns, 1'500'000);
}

// Busy owners get budget after budget: at every instant what each ran since a period began is
// within the bound (W) of theory.rst, without tails.
TEST(WindowsProperty, KeepTheBoundForRandomMixes) {
  std::mt19937_64 random(seed() + 6);
  for (int round = 0; round < 60; round++) {
    Bench bench(CORE_FIXED_SHARE);
    const size_t n = 1 + random() % 6;
    u32 left = CORE_PPM;
    for (size_t i = 0; i < n; i++) {
      const u32 share = std::max<u32>(10'000, static_cast<u32>(random() % (left / 2 + 1)));
      if (share > left) break;
      left -= share;
      bench.add({.guarantee_ppm = share});
    }
    bench.saturate();
    Engine engine(bench);
    const uint64_t start = bench.now;
    engine.runTo(start + 400 * kMilli);
    std::vector<uint64_t> before;
    for (size_t i = 0; i < bench.tenants.size(); i++) before.push_back(engine.ran(i));
    const uint64_t from = bench.now;
    while (bench.now < from + 3 * kSecond) {
      engine.runTo(bench.now + 1 + random() % (7 * kMilli));
      for (size_t i = 0; i < bench.tenants.size(); i++) {
        const core_tenant &t = bench.tenants[i]->core;
        const double rate = static_cast<double>(t.budget_ns) / static_cast<double>(t.period_ns);
        const double owed = rate * static_cast<double>(bench.now - from) -
                            static_cast<double>(engine.ran(i) - before[i]);
        // Counted from an arbitrary instant it may be off on either side once.
        const double bound = 2 * rate * static_cast<double>(t.period_ns - t.budget_ns) + 0.3e6;
        ASSERT_LE(std::abs(owed), bound) << "tenant " << i << " of " << bench.tenants.size();
      }
    }
  }
}

// Against a list searched from end to end.
TEST(WindowsProperty, PickTheSameAsALinearSearch) {
  std::mt19937_64 random(seed() + 7);
  for (int round = 0; round < 20; round++) {
    Bench bench(CORE_FIXED_SHARE, 256);
    for (int i = 0; i < 60; i++)
      bench.add({.guarantee_ppm = 2'000 + static_cast<u32>(random() % 13'000)});
    bench.plan();
    for (int step = 0; step < 3000; step++) {
      bench.now += random() % kMilli;
      Tenant &t = *bench.tenants[random() % bench.tenants.size()];
      bench.work(t, random() % 4 != 0);
      core_tenant *owner = bench.core.window.owner;
      core_look(&bench.core, bench.now, owner ? CORE_SEEN_TSG : CORE_SEEN_IDLE,
                owner ? owner->tsgs : nullptr);
      core_pick(&bench.core, bench.now);

      // Every busy tenant with windows is the owner or in exactly the heap its budget says.
      std::set<const core_tenant *> seen;
      for (const core_heap *heap : {&bench.core.ready, &bench.core.waiting})
        for (u32 i = 0; i < heap->count; i++) {
          const core_tenant *at = heap->at[i];
          ASSERT_EQ(at->heap_at, i);
          ASSERT_EQ(at->heap, heap->id);
          ASSERT_TRUE(core_tenant_busy(at));
          ASSERT_TRUE(seen.insert(at).second);
          if (i) {
            ASSERT_LE(heap->at[(i - 1) / 2]->deadline_ns, at->deadline_ns);
          }
        }
      for (auto &tenant : bench.tenants)
        if (core_tenant_busy(&tenant->core) && bench.core.window.owner != &tenant->core) {
          ASSERT_TRUE(seen.count(&tenant->core));
        }
      ASSERT_GT(core_next_ns(&bench.core, bench.now), bench.now);
    }
  }
}

TEST(Rotation, GoesOnWhereItWasCut) {
  Bench bench;
  auto &a = bench.add(), &b = bench.add();
  bench.saturate();
  core_taken(&bench.core, bench.now, nullptr, 0);
  for (auto *t : {&a, &b}) t->tsgs[0]->slice_ns = t->tsgs[0]->planned_ns;
  core_look(&bench.core, bench.now, CORE_SEEN_TSG, a.tsgs[0].get());
  core_look(&bench.core, bench.now + kMilli, CORE_SEEN_TSG, a.tsgs[0].get());
  core_phase cut;
  core_cut(&bench.core, bench.now + kMilli, &cut);
  EXPECT_EQ(cut.tsg, a.tsgs[0].get());
  EXPECT_EQ(cut.used_ns, kMilli);
  // The cut does not depend on how often it is made.
  core_taken(&bench.core, bench.now + kMilli, a.tsgs[0].get(), cut.used_ns);
  core_cut(&bench.core, bench.now + 3 * kMilli, &cut);
  EXPECT_EQ(cut.used_ns, 3 * kMilli);
  // Its slice is used up: at most that.
  core_cut(&bench.core, bench.now + kSecond, &cut);
  EXPECT_EQ(cut.used_ns, cut.slice_ns);
}

TEST(Rotation, ForgetsTheRestOfASliceGivenBack) {
  Bench bench;
  auto &a = bench.add();
  bench.add();
  bench.saturate();
  a.tsgs[0]->slice_ns = a.tsgs[0]->planned_ns;
  core_look(&bench.core, bench.now, CORE_SEEN_TSG, a.tsgs[0].get());
  core_look(&bench.core, bench.now + kMilli, CORE_SEEN_IDLE, nullptr);
  core_phase cut;
  core_cut(&bench.core, bench.now + kMilli, &cut);
  EXPECT_EQ(cut.used_ns, cut.slice_ns);
}

// Between the load and its first kernel the engine is idle: that is not who begins there giving its
// slice back.
TEST(Rotation, KeepsTheSliceOfWhoHasOnlyBeenLoaded) {
  Bench bench;
  auto &a = bench.add(), &b = bench.add();
  bench.saturate();
  for (auto *t : {&a, &b}) t->tsgs[0]->slice_ns = t->tsgs[0]->planned_ns;
  core_look(&bench.core, bench.now, CORE_SEEN_TSG, a.tsgs[0].get());
  core_taken(&bench.core, bench.now + kMilli, b.tsgs[0].get(), 0);
  core_look(&bench.core, bench.now + kMilli + kSwitch, CORE_SEEN_IDLE, nullptr);
  core_phase cut;
  core_cut(&bench.core, bench.now + kMilli + kSwitch, &cut);
  EXPECT_EQ(cut.tsg, b.tsgs[0].get());
  EXPECT_LE(cut.used_ns, kSwitch);
  // It is idle for longer: it has no work.
  core_cut(&bench.core, bench.now + kMilli + 3 * kSwitch, &cut);
  EXPECT_EQ(cut.used_ns, cut.slice_ns);
}

// Nobody waits for the rotation after somebody's window, so looks follow until it goes on.
TEST(Rotation, IsLookedForAfterAWindow) {
  Bench bench;
  auto &a = bench.add(), &fixed = bench.add({.guarantee_ppm = 200'000, .ceiling_ppm = 200'000});
  bench.saturate();
  const auto looks = [&](core_seen seen, core_tsg *tsg) {
    core_look(&bench.core, bench.now, seen, tsg);
    if (core_pick(&bench.core, bench.now)) core_taken(&bench.core, bench.now, nullptr, 0);
  };
  while (bench.core.window.owner == &fixed.core) {
    looks(CORE_SEEN_TSG, fixed.tsgs[0].get());
    bench.now += 100 * kMicro;
  }
  ASSERT_EQ(bench.core.window.kind, CORE_WINDOW_ROTATION);
  looks(CORE_SEEN_SWITCH, nullptr);
  EXPECT_LE(core_next_ns(&bench.core, bench.now), bench.now + bench.core.params.takeoff_ns / 2);
  looks(CORE_SEEN_TSG, a.tsgs[0].get());
  EXPECT_FALSE(bench.core.followed);
}

TEST(Looks, AreJitteredWithinTheirCells) {
  Bench bench;
  bench.add();
  bench.add();
  bench.saturate();
  uint64_t last = bench.now, cells = 0;
  double sum = 0, squares = 0;
  for (; cells < 5000; cells++) {
    const uint64_t at = core_next_ns(&bench.core, last);
    ASSERT_GT(at, last);
    ASSERT_LE(at - last, 2 * 500 * kMicro);
    const double gap = static_cast<double>(at - last);
    sum += gap;
    squares += gap * gap;
    bench.now = last = at;
    core_look(&bench.core, at, CORE_SEEN_SWITCH, nullptr);
  }
  EXPECT_NEAR(sum / 5000, 500e3, 3e3);
  // The difference of two uniform numbers: variance P^2 / 6.
  EXPECT_NEAR(squares / 5000 - std::pow(sum / 5000, 2), 500e3 * 500e3 / 6, 5e9);
}

TEST(Looks, AreRareWhileAtMostOneIsAwake) {
  Bench bench;
  auto &a = bench.add();
  bench.add();
  bench.work(a);
  bench.plan();
  core_pick(&bench.core, bench.now);
  uint64_t last = bench.now;
  int looks = 0;
  while (last < bench.now + kSecond) {
    last = core_next_ns(&bench.core, last);
    looks++;
  }
  EXPECT_NEAR(looks, 200, 3);
}

TEST(Objects, CanGoAtAnyTime) {
  std::mt19937_64 random(seed() + 8);
  for (const core_policy policy : {CORE_BURST_SHARE, CORE_FIXED_SHARE}) {
    Bench bench(policy);
    for (int step = 0; step < 20'000; step++) {
      bench.now += random() % kMilli;
      const uint64_t what = random() % 10;
      if (what == 0 && bench.tenants.size() < 20) {
        bench.add({.weight = 1 + static_cast<u32>(random() % 100),
                   .guarantee_ppm = static_cast<u32>(random() % 40'000)},
                  static_cast<unsigned>(random() % 3));
      } else if (what == 1 && !bench.tenants.empty()) {
        const size_t i = random() % bench.tenants.size();
        for (auto &tsg : bench.tenants[i]->tsgs) core_tsg_remove(&bench.core, tsg.get());
        core_tenant_remove(&bench.core, &bench.tenants[i]->core);
        bench.tenants.erase(bench.tenants.begin() + static_cast<long>(i));
      } else if (!bench.tenants.empty()) {
        Tenant &t = *bench.tenants[random() % bench.tenants.size()];
        if (t.tsgs.empty()) continue;
        core_tsg *tsg = t.tsgs[random() % t.tsgs.size()].get();
        if (what == 2)
          core_tsg_list(&bench.core, tsg, random() % 2);
        else if (what < 6)
          core_work(&bench.core, tsg, bench.now, random() % 3 != 0);
        else if (tsg->listed)
          core_look(&bench.core, bench.now, CORE_SEEN_TSG, tsg);
      }
      core_pick(&bench.core, bench.now);
      u32 awake = 0, busy_ppm = 0;
      for (auto &t : bench.tenants) {
        awake += t->core.awake_count;
        if (core_tenant_busy(&t->core) && core_in_group(&t->core)) busy_ppm += t->core.share_ppm;
      }
      ASSERT_EQ(bench.core.awake_tsgs, awake);
      ASSERT_EQ(bench.core.busy_ppm, busy_ppm);
      ASSERT_EQ(bench.core.tenant_count, bench.tenants.size());
    }
  }
}

}  // namespace pick_test
}  // namespace qgpu::core_bench
