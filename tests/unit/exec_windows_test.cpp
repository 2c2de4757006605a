// SPDX-License-Identifier: GPL-2.0
// Windows by gating: what is fixed stays fixed, what online waits for, what a crowd costs.
#include <algorithm>
#include <random>

#include "unit/exec_bed.hpp"

namespace qgpu::exec {
namespace exec_windows_test {

// A network at batch 1: its processor launches a kernel of 7 us every 25, three batches ahead.
// Whether it has work at an instant is chance: its window must not end for that.
TEST(ExecutorWindows, FixedOnesAreNotCutShortByGaps) {
  Bed bed;
  bed.open();
  ASSERT_TRUE(
      bed.plan(QGPU_POLICY_FIXED_SHARE, {tenantOf(1, 100, 600'000), tenantOf(2, 100, 300'000)}));
  const size_t a = bed.add(1, paced(7, 25, 480)), b = bed.add(2, paced(7, 25, 480));
  bed.run(kSecond);
  const Stats before = bed.executor->stats();
  const auto got = bed.shares({a, b}, 5 * kSecond);
  const Stats after = bed.executor->stats();
  EXPECT_NEAR(static_cast<double>(after.tenants[0].run_ns - before.tenants[0].run_ns) / 5e9, 0.6,
              0.02);
  EXPECT_NEAR(static_cast<double>(after.tenants[1].run_ns - before.tenants[1].run_ns) / 5e9, 0.3,
              0.02);
  // What had piled up runs at the beginning of each window, so it is not 2.
  EXPECT_GE(got[0] / got[1], 1.7);
  EXPECT_LE(got[0] / got[1], 2.1);
}

// Two others at once would make it wait for both: 1.1 ms were its P99, of a kernel that takes 0.3
// by itself.
TEST(ExecutorWindows, OnlineNeverWaitsForTwoOthers) {
  Bed bed;
  bed.open();
  std::minstd_rand random(static_cast<std::minstd_rand::result_type>(fakes::seed()));
  std::vector<PlanTenant> tenants;
  for (uint32_t id = 1; id <= 9; id++) {
    tenants.push_back(tenantOf(id, 100));
    tenants.back().work_class = id == 1 ? QGPU_CLASS_ONLINE : QGPU_CLASS_OFFLINE;
  }
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, tenants));
  for (uint32_t id = 2; id <= 9; id++) bed.add(id, queued());
  const size_t online = bed.add(1, synced(300, 4700));
  bed.run(2 * kSecond);
  bed.tsg(online).latencies_ns.clear();
  for (int ms = 0; ms < 5000; ms++) {
    bed.tsg(online).work.gap_ns = 2'200'000 + random() % 5'000'000;
    bed.run(kMilli);
  }
  auto &latencies = bed.tsg(online).latencies_ns;
  ASSERT_GT(latencies.size(), 800u);
  std::sort(latencies.begin(), latencies.end());
  // Its kernel, a slice of the other, a switch to and from it, and once more a switch if it was
  // taken off.
  EXPECT_LE(latencies[latencies.size() * 99 / 100], 800'000u);
}

// Sixteen whose processors are late now and then: no reason to ask each of them how it gaps.
TEST(ExecutorWindows, ACrowdCostsFewControls) {
  for (const auto &[work, most] : {std::pair{queued(), 40.0}, std::pair{synced(50'000), 40.0},
                                   std::pair{synced(1000), 60.0}}) {
    Bed bed;
    bed.open();
    ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, equalTenants(16)));
    for (uint32_t id = 1; id <= 16; id++) bed.add(id, work);
    bed.run(12 * kSecond);
    const uint64_t before = bed.executor->stats().head.controls;
    bed.run(5 * kSecond);
    EXPECT_LE(static_cast<double>(bed.executor->stats().head.controls - before) / 5, most)
        << work.kernel_ns;
  }
}

// A tenant that has just come sleeps for long: what it is believed to want stops nobody meanwhile.
TEST(ExecutorWindows, AnOnlineTenantThatSleepsStopsNobody) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  std::vector<PlanTenant> tenants = {tenantOf(1, 100), tenantOf(2, 100)};
  tenants[0].work_class = QGPU_CLASS_ONLINE;
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, tenants));
  bed.add(1, synced(200, 5'000'000));
  const size_t b = bed.add(2, queued());
  EXPECT_GE(bed.shares({b}, 4 * kSecond)[0], 0.99);
  EXPECT_LE(bed.tsg(b).gap_longest_ns, 20 * kMilli);
  EXPECT_LE(bed.executor->stats().tenants.at(0).wait_max_ns, 20 * kMilli);
}

struct Promised {
  const char *beside;
  std::vector<fakes::FakeWork> others;
  uint64_t wake_ms;
  bool online;
  uint32_t ceiling_ppm;  // of the first of the others
};

// By the card's own record, whatever the others do and however long it slept.
TEST(ExecutorWindows, WaitsThatWerePromisedAreKept) {
  QGPU_TRACE_SEED();
  const Promised all[] = {
      {"one queued", {queued()}, 10, false, QGPU_PPM},
      {"three queued", {queued(), queued(), queued()}, 10, false, QGPU_PPM},
      {"launch-and-sync ones", {synced(1000), synced(1000)}, 30, false, QGPU_PPM},
      {"one of each", {synced(300), queued()}, 30, false, QGPU_PPM},
      {"one of each and one more", {synced(300), queued(), queued()}, 50, false, QGPU_PPM},
      {"one with a ceiling", {queued(), queued()}, 30, false, 300'000},
      {"online beside three", {queued(), queued(), queued()}, 1, true, QGPU_PPM},
      {"online beside each", {synced(300), queued()}, 1, true, QGPU_PPM},
      {"online beside a ceiling", {queued(), queued()}, 2, true, 300'000},
  };
  constexpr uint64_t kKernelUs = 200;
  // A control that stops somebody takes off whoever is on.
  constexpr uint64_t kControlNs = 300'000;
  for (const Promised &of : all)
    for (const uint64_t gap_ms : {7, 133}) {
      SCOPED_TRACE(std::string(of.beside) + ", sleeps " + std::to_string(gap_ms) + " ms");
      Bed bed;
      bed.open();
      std::vector<PlanTenant> tenants = {tenantOf(1, 100)};
      tenants[0].wake_ns = of.wake_ms * kMilli;
      if (of.online) tenants[0].work_class = QGPU_CLASS_ONLINE;
      for (uint32_t i = 0; i < of.others.size(); i++)
        tenants.push_back(tenantOf(2 + i, 100, 0, i ? QGPU_PPM : of.ceiling_ppm));
      const auto done = bed.plan(QGPU_POLICY_BURST_SHARE, tenants);
      ASSERT_TRUE(done) << done.error().text();
      const size_t a = bed.add(1, synced(kKernelUs, gap_ms * 1000));
      for (uint32_t i = 0; i < of.others.size(); i++) bed.add(2 + i, of.others[i]);
      bed.run(3 * kSecond);
      bed.tsg(a).latencies_ns.clear();
      bed.run(20 * kSecond);
      const auto &latencies_ns = bed.tsg(a).latencies_ns;
      ASSERT_GT(latencies_ns.size(), 50u);
      EXPECT_LE(*std::max_element(latencies_ns.begin(), latencies_ns.end()),
                of.wake_ms * kMilli + kKernelUs * 1000 + kControlNs);
    }
}

// In a window shorter than a round only some of the rotation are let run. When those have no work
// any more, the others are.
TEST(ExecutorWindows, OfTheRotationDoNotWaitForAMemberWithoutWork) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  // Who has worked for long is asked again after 64 ms.
  constexpr uint64_t kStepNs = 50'000, kIdleNs = 66 * kMilli;
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE,
                       {tenantOf(1, 60), tenantOf(2, 16), tenantOf(3, 2), tenantOf(4, 3)}));
  const std::vector<size_t> all = {bed.add(1, synced(300)), bed.add(2, synced(300)),
                                   bed.add(3, queued()), bed.add(4, queued())};
  const auto ran = [&] {
    uint64_t ns = 0;
    for (const size_t i : all) ns += bed.tsg(i).run_ns;
    return ns;
  };
  const auto is_open = [&](size_t i) { return bed.tsg(all[i]).enabled; };
  bed.run(3 * kSecond);
  unsigned tried = 0;
  for (uint64_t end = bed.io.nowNs() + 60 * kSecond; tried < 10 && bed.io.nowNs() < end;) {
    bed.run(kStepNs);
    if (is_open(0) || is_open(1) || is_open(2) == is_open(3)) continue;
    fakes::FakeTsg &due = bed.tsg(all[is_open(2) ? 2 : 3]);
    due.work = {};
    tried++;
    const uint64_t before = ran(), from_ns = bed.io.nowNs();
    while (ran() == before && bed.io.nowNs() < from_ns + kSecond) bed.run(kStepNs);
    EXPECT_LT(bed.io.nowNs() - from_ns, kIdleNs);
    due.work = queued();
    bed.run(200 * kMilli);
  }
  EXPECT_EQ(tried, 10u);
}

// Each of the others had the engine beside one alone, so its slice was long when it fell asleep.
TEST(ExecutorWindows, APromisedWaitIsKeptWhenAllWakeAtOnce) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  constexpr uint64_t kWakeNs = 25 * kMilli, kStepNs = 100'000;
  std::vector<PlanTenant> tenants = equalTenants(8);
  tenants[0].wake_ns = kWakeNs;
  const auto done = bed.plan(QGPU_POLICY_BURST_SHARE, tenants);
  ASSERT_TRUE(done) << done.error().text();
  std::vector<size_t> all;
  for (const PlanTenant &tenant : tenants) all.push_back(bed.add(tenant.id, {}));
  const size_t neighbour = all[1];
  bed.tsg(neighbour).work = queued();
  for (size_t i = 2; i < all.size(); i++) {
    bed.tsg(all[i]).work = queued();
    bed.run(1 * kSecond);
    bed.tsg(all[i]).work = {};
    bed.run(100 * kMilli);
  }
  for (const size_t i : all) bed.tsg(i).work = queued();
  const uint64_t from_ns = bed.io.nowNs(), run_ns = bed.tsg(all[0]).run_ns;
  while (bed.tsg(all[0]).run_ns == run_ns && bed.io.nowNs() < from_ns + kSecond) bed.run(kStepNs);
  EXPECT_LE(bed.io.nowNs() - from_ns, kWakeNs + kStepNs);
}

}  // namespace exec_windows_test
}  // namespace qgpu::exec
