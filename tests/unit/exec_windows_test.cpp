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
    std::vector<PlanTenant> tenants;
    for (uint32_t id = 1; id <= 16; id++) tenants.push_back(tenantOf(id, 100));
    ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, tenants));
    for (uint32_t id = 1; id <= 16; id++) bed.add(id, work);
    bed.run(12 * kSecond);
    const uint64_t before = bed.executor->stats().head.controls;
    bed.run(5 * kSecond);
    EXPECT_LE(static_cast<double>(bed.executor->stats().head.controls - before) / 5, most)
        << work.kernel_ns;
  }
}

}  // namespace exec_windows_test
}  // namespace qgpu::exec
