// SPDX-License-Identifier: GPL-2.0
// What the scheduler's log is told: each time on the engine once, without gaps, and why it ended.
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <random>

#include "unit/core_bench.hpp"

namespace qgpu {
namespace visit_test {

using namespace core_bench;

struct Listener {
  explicit Listener(Bench &bench) {
    bench.core.on_visit = [](void *self, const core_visit *visit) {
      static_cast<Listener *>(self)->visits.push_back(*visit);
    };
    bench.core.listener = this;
    bench.core.seen_from_ns = bench.now;
  }
  std::vector<core_visit> visits;
};

void look(Bench &bench, uint64_t at, Tenant *tenant, core_seen seen = CORE_SEEN_TSG) {
  bench.now = at;
  core_look(&bench.core, at, seen, tenant ? tenant->tsgs[0].get() : nullptr);
}

TEST(Visit, IsToldWhenItIsOverFromMiddleToMiddle) {
  Bench bench;
  Listener listener(bench);
  auto &a = bench.add(), &b = bench.add();
  const uint64_t t = bench.now;
  look(bench, t + 1000, &a);
  look(bench, t + 5000, &a);
  look(bench, t + 9000, &b);
  ASSERT_EQ(listener.visits.size(), 2u);
  EXPECT_EQ(listener.visits[0].seen, CORE_SEEN_IDLE);
  const core_visit &visit = listener.visits[1];
  EXPECT_EQ(visit.tenant, &a.core);
  EXPECT_EQ(visit.from_ns, t + 500);
  EXPECT_EQ(visit.to_ns, t + 7000);
  EXPECT_EQ(visit.end, CORE_END_SLICE);
}

// Who is alone on the engine is on it, though no look ever ends its visit.
TEST(Visit, TheOneThatIsOnIsKnown) {
  Bench bench;
  Listener listener(bench);
  auto &a = bench.add(), &b = bench.add();
  const uint64_t t = bench.now;
  for (uint64_t at = 1000; at <= 9000; at += 2000) look(bench, t + at, &a);
  EXPECT_EQ(listener.visits.size(), 1u);
  bench.core.window.kind = CORE_WINDOW_EXCLUSIVE;
  bench.core.window.owner = &b.core;
  core_visit visit;
  core_visit_now(&bench.core, &visit);
  EXPECT_EQ(visit.seen, CORE_SEEN_TSG);
  EXPECT_EQ(visit.tenant, &a.core);
  EXPECT_EQ(visit.from_ns, t + 500);
  EXPECT_EQ(visit.to_ns, t + 9000);
  EXPECT_EQ(visit.kind, CORE_WINDOW_EXCLUSIVE);
  EXPECT_EQ(visit.due, &b.core);
  look(bench, t + 11'000, &b);
  EXPECT_EQ(listener.visits.back().from_ns, visit.from_ns);
  EXPECT_GE(listener.visits.back().to_ns, visit.to_ns);
}

TEST(Visit, SaysWhyItEnded) {
  Bench bench;
  Listener listener(bench);
  auto &a = bench.add(), &b = bench.add();
  uint64_t t = bench.now;
  const auto endOf = [&](auto prepare, core_seen next = CORE_SEEN_SWITCH) {
    look(bench, t += 1000, &a);
    prepare();
    look(bench, t += 1000, nullptr, next);
    return listener.visits.back().end;
  };
  EXPECT_EQ(endOf([] {}), CORE_END_SLICE);
  EXPECT_EQ(endOf([] {}, CORE_SEEN_IDLE), CORE_END_NO_WORK);
  EXPECT_EQ(endOf([&] { bench.core.tail = true; }), CORE_END_TAIL);
  bench.core.tail = false;
  EXPECT_EQ(endOf([&] { bench.core.window.owner = &b.core; }), CORE_END_WINDOW);
  EXPECT_EQ(listener.visits.back().due, &b.core);
  EXPECT_EQ(endOf([&] { bench.core.window.owner = &a.core; }), CORE_END_SLICE);
  bench.core.window.owner = nullptr;
  EXPECT_EQ(endOf([&] { a.core.throttled = true; }), CORE_END_BUDGET);
}

TEST(VisitProperty, FollowEachOtherWithoutAGapAndAgreeWithTheLedger) {
  std::mt19937_64 random(seed() + 11);
  Bench bench;
  Listener listener(bench);
  Tenant *tenants[3] = {&bench.add(), &bench.add(), &bench.add()};
  const uint64_t begin = bench.now;
  uint64_t t = begin;
  for (int i = 0; i < 5000; ++i) {
    t += 1 + random() % 900'000;
    const unsigned who = static_cast<unsigned>(random() % 6);
    if (who < 3)
      look(bench, t, tenants[who]);
    else
      look(bench, t, nullptr, static_cast<core_seen>(who - 3));
  }
  look(bench, t + 1, nullptr,
       bench.core.seen == CORE_SEEN_IDLE ? CORE_SEEN_SWITCH : CORE_SEEN_IDLE);
  uint64_t at = begin, idle_ns = 0;
  std::map<const core_tenant *, uint64_t> run_ns;
  for (const core_visit &visit : listener.visits) {
    ASSERT_EQ(visit.from_ns, at);
    ASSERT_GE(visit.to_ns, visit.from_ns);
    at = visit.to_ns;
    if (visit.tenant) run_ns[visit.tenant] += visit.to_ns - visit.from_ns;
    if (visit.seen == CORE_SEEN_IDLE) idle_ns += visit.to_ns - visit.from_ns;
  }
  for (Tenant *tenant : tenants) {
    core_counters counters;
    core_tenant_counters(&bench.core, &tenant->core, &counters);
    // The odd nanosecond of a halved span goes to one side.
    EXPECT_NEAR(static_cast<double>(run_ns[&tenant->core]), static_cast<double>(counters.run_ns),
                10'000);
  }
  EXPECT_NEAR(static_cast<double>(idle_ns), static_cast<double>(bench.core.totals.idle_ns), 10'000);
}

// What listening costs a look, beside what a look costs without: printed, and bounded with room.
TEST(Visit, CostsLittle) {
  const auto lookNs = [](bool listens) {
    Bench bench;
    auto &a = bench.add(), &b = bench.add();
    uint64_t heard = 0;
    if (listens) {
      bench.core.on_visit = [](void *count, const core_visit *) {
        ++*static_cast<uint64_t *>(count);
      };
      bench.core.listener = &heard;
    }
    constexpr int kLooks = 100'000;
    uint64_t t = bench.now;
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kLooks; ++i) look(bench, t += 100'000, i & 1 ? &a : &b);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    return took.count() / kLooks;
  };
  const double off_ns = lookNs(false), on_ns = lookNs(true);
  std::printf("a look that finds another: %.0f ns, with the log %.0f ns\n", off_ns, on_ns);
  EXPECT_LT(on_ns, 3 * off_ns + 1000);
}

}  // namespace visit_test
}  // namespace qgpu
