// SPDX-License-Identifier: GPL-2.0
// What the executor remembers of who ran, and how long they waited: against what the fake card did.
#include <algorithm>
#include <cerrno>
#include <numeric>

#include "daemon/exec/visit_log.hpp"
#include "unit/exec_bed.hpp"

namespace qgpu::exec {
namespace exec_log_test {

std::vector<LogEntry> wholeLog(const Executor &executor, uint64_t from = 0) {
  std::vector<LogEntry> out;
  for (Log part = executor.log(from); part.head.status.error == 0;
       part = executor.log(part.head.first_serial + part.entries.size())) {
    const bool is_last = part.entries.back().ongoing;
    out.insert(out.end(), part.entries.begin(), part.entries.end() - is_last);
    if (is_last) break;
  }
  return out;
}

TEST(VisitLog, KeepsTheLastAndSaysWhereItIs) {
  VisitLog log(5);
  LogEntry on{};
  on.ongoing = 1;
  ASSERT_EQ(log.read(0, on).entries.size(), 1u);
  EXPECT_TRUE(log.read(0, on).entries[0].ongoing);
  EXPECT_EQ(log.read(7, on).head.next_serial, 0u);
  EXPECT_EQ(log.read(7, on).head.since_ns, 5u);
  for (uint64_t i = 0; i < VisitLog::kSize + 10; i++) {
    LogEntry entry{};
    entry.from_ns = i;
    log.add(entry);
  }
  const Log oldest = log.read(0, on);
  EXPECT_EQ(oldest.head.first_serial, 10u);
  EXPECT_EQ(oldest.entries.size(), kMaxLogEntries - 1);
  EXPECT_FALSE(oldest.entries.back().ongoing);
  EXPECT_EQ(oldest.entries[0].from_ns, 10u);
  EXPECT_EQ(oldest.head.next_serial, VisitLog::kSize + 10);
  const Log last = log.read(VisitLog::kSize + 9, on);
  ASSERT_EQ(last.entries.size(), 2u);
  EXPECT_EQ(last.entries[0].from_ns, VisitLog::kSize + 9);
  EXPECT_TRUE(last.entries[1].ongoing);
  const Log full = log.read(VisitLog::kSize + 10 - (kMaxLogEntries - 1), on);
  EXPECT_EQ(full.entries.size(), kMaxLogEntries);
  EXPECT_TRUE(full.entries.back().ongoing);
  const Log beyond = log.read(UINT64_MAX, on);
  EXPECT_EQ(beyond.head.first_serial, beyond.head.next_serial);
  EXPECT_EQ(beyond.entries.size(), 1u);
}

// Without gaps from the first time on, and each tenant's times add up to what it was charged.
TEST(ExecutorLog, HasAllThatWasCharged) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 200), tenantOf(2, 100)}));
  bed.add(1, queued());
  bed.add(2, queued());
  bed.run(3 * kSecond);
  const auto entries = wholeLog(*bed.executor);
  const Stats stats = bed.executor->stats();
  ASSERT_GT(entries.size(), 100u);
  std::map<uint32_t, uint64_t> ran_ns, visits;
  for (size_t i = 0; i < entries.size(); i++) {
    const LogEntry &entry = entries[i];
    EXPECT_LE(entry.from_ns, entry.to_ns);
    EXPECT_EQ(entry.from_ns, i ? entries[i - 1].to_ns : entry.from_ns) << i;
    if (entry.seen != QGPU_SEEN_TENANT) continue;
    EXPECT_EQ(entry.window, QGPU_WINDOW_ROTATION);
    EXPECT_EQ(entry.end, QGPU_END_SLICE);
    ran_ns[entry.tenant_id] += entry.to_ns - entry.from_ns;
    visits[entry.tenant_id]++;
  }
  for (const TenantStats &tenant : stats.tenants) {
    // The visit that is on is not in the log.
    EXPECT_NEAR(static_cast<double>(ran_ns[tenant.id]), static_cast<double>(tenant.run_ns), 40e6);
    EXPECT_NEAR(static_cast<double>(visits[tenant.id]), static_cast<double>(tenant.visits), 3);
  }
  EXPECT_LE(entries.back().to_ns, bed.io.nowNs());
  EXPECT_GE(entries.back().to_ns + 100 * kMilli, bed.io.nowNs());
}

// Who is alone on the card is in the log, up to now, though its visit never ends.
TEST(ExecutorLog, HasWhoIsOnTheEngineNow) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 200), tenantOf(2, 100)}));
  bed.add(1, queued());
  bed.run(3 * kSecond);
  Log log = bed.executor->log(bed.executor->log(0).head.next_serial);
  // It may just have been taken off, to see whether it has work.
  if (log.entries.at(0).seen == QGPU_SEEN_SWITCH) {
    bed.run(20 * kMilli);
    log = bed.executor->log(bed.executor->log(0).head.next_serial);
  }
  ASSERT_EQ(log.entries.size(), 1u);
  const LogEntry &on = log.entries[0];
  EXPECT_TRUE(on.ongoing);
  EXPECT_EQ(log.head.first_serial, log.head.next_serial);
  EXPECT_EQ(on.seen, QGPU_SEEN_TENANT);
  EXPECT_EQ(on.tenant_id, 1u);
  EXPECT_LE(on.to_ns, bed.io.nowNs());
  EXPECT_GE(on.to_ns + 100 * kMilli, bed.io.nowNs());
  // With those that are over it is all that it ran, and it begins where they end.
  uint64_t logged_ns = on.to_ns - on.from_ns;
  const auto over = wholeLog(*bed.executor);
  if (!over.empty()) {
    EXPECT_EQ(over.back().to_ns, on.from_ns);
  }
  for (const LogEntry &entry : over)
    if (entry.tenant_id == 1) logged_ns += entry.to_ns - entry.from_ns;
  EXPECT_NEAR(static_cast<double>(logged_ns),
              static_cast<double>(bed.executor->stats().tenants.at(0).run_ns), 20e6);
}

TEST(ExecutorLog, SaysWhoseWindowItWasAndWhatEndedIt) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(
      bed.plan(QGPU_POLICY_FIXED_SHARE, {tenantOf(1, 100, 300'000), tenantOf(2, 100, 600'000)}));
  bed.add(1, queued());
  bed.add(2, queued());
  bed.run(3 * kSecond);
  std::map<uint32_t, size_t> windows;
  size_t ended = 0;
  for (const LogEntry &entry : wholeLog(*bed.executor)) {
    if (entry.window == QGPU_WINDOW_EXCLUSIVE) windows[entry.due_id]++;
    if (entry.seen != QGPU_SEEN_TENANT) continue;
    ended += entry.end == QGPU_END_WINDOW || entry.end == QGPU_END_BUDGET;
  }
  EXPECT_GT(windows[1], 10u);
  EXPECT_GT(windows[2], 10u);
  EXPECT_EQ(windows.count(kNoTenant), 0u);
  EXPECT_GT(ended, 20u);
}

// The longest is in the last bin that has any, and who has a third of a card waits.
TEST(ExecutorLog, WaitsAreCountedByHowLongTheyWere) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 200), tenantOf(2, 100)}));
  bed.add(1, queued());
  bed.add(2, queued());
  bed.run(3 * kSecond);
  for (const TenantStats &tenant : bed.executor->stats().tenants) {
    const auto count =
        std::accumulate(std::begin(tenant.wait_bins), std::end(tenant.wait_bins), uint64_t{0});
    EXPECT_GT(count, 50u);
    EXPECT_NEAR(static_cast<double>(count), static_cast<double>(tenant.visits), 5);
    EXPECT_NEAR(static_cast<double>(tenant.wait_sum_ns), static_cast<double>(tenant.wait_ns),
                0.1e9);
    size_t last = 0;
    for (size_t k = 0; k < QGPU_HIST_BINS; k++)
      if (tenant.wait_bins[k]) last = k;
    EXPECT_LT(tenant.wait_max_ns, uint64_t{1} << (QGPU_HIST_SHIFT + last));
    EXPECT_GE(2 * tenant.wait_max_ns, uint64_t{1} << (QGPU_HIST_SHIFT + last));
  }
}

TEST(ExecutorLog, WithoutTheTraceNothingIsMadeUp) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 200), tenantOf(2, 100)}));
  bed.add(1, queued());
  bed.add(2, queued());
  bed.run(1 * kSecond);
  EXPECT_FALSE(wholeLog(*bed.executor).empty());
  bed.io.record_type = 3;  // a layout that nobody knows
  bed.run(2 * kSecond);
  const Log log = bed.executor->log(0);
  EXPECT_EQ(log.head.status.error, EOPNOTSUPP);
  EXPECT_NE(std::string(log.head.status.sentence).find("trace"), std::string::npos);
  EXPECT_TRUE(log.entries.empty());
  for (const TenantStats &tenant : bed.executor->stats().tenants) {
    EXPECT_EQ(tenant.wait_max_ns, 0u);
    EXPECT_EQ(tenant.wait_sum_ns, 0u);
  }
}

// What a tenant ran that the plan no longer has is not lost from the sum.
TEST(ExecutorLog, WhatRemovedTenantsRanIsKept) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 200), tenantOf(2, 100)}));
  bed.add(1, queued());
  bed.add(2, queued());
  bed.run(2 * kSecond);
  const uint64_t ran_ns = bed.executor->stats().tenants.at(0).run_ns;
  EXPECT_EQ(bed.executor->stats().head.removed_ns, 0u);
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(2, 100)}));
  EXPECT_EQ(bed.executor->stats().head.removed_ns, ran_ns);
  bed.run(2 * kSecond);
  const Stats stats = bed.executor->stats();
  EXPECT_EQ(stats.head.removed_ns, ran_ns);
  EXPECT_GT(stats.head.nobody_ns, 100 * kMilli);  // it goes on, as nobody's
  const uint64_t elapsed_ns = stats.head.time_ns - stats.head.since_ns;
  const uint64_t counted_ns = stats.tenants.at(0).run_ns + stats.head.nobody_ns + ran_ns +
                              stats.head.switch_ns + stats.head.idle_ns;
  EXPECT_LE(counted_ns, elapsed_ns);
  EXPECT_GE(counted_ns + 100 * kMilli, elapsed_ns);
}

// A counter: what a process did stays its tenant's when it moves to another, ends, or the trace is
// lost.
TEST(ExecutorLog, VisitsNeverFall) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 100), tenantOf(2, 100)}));
  const size_t moved = bed.add(1, queued()), ended = bed.add(1, queued());
  bed.add(2, queued());
  std::map<uint32_t, uint64_t> last;
  const auto look = [&](const char *after) {
    for (const TenantStats &tenant : bed.executor->stats().tenants) {
      EXPECT_GE(tenant.visits, last[tenant.id]) << "tenant " << tenant.id << " after " << after;
      last[tenant.id] = tenant.visits;
    }
  };
  bed.run(2 * kSecond);
  look("two seconds");
  EXPECT_GT(last[1], 50u);
  bed.moveTo(moved, 2);
  look("a move");
  bed.run(1 * kSecond);
  look("a second more");
  bed.end(ended);
  bed.run(1 * kSecond);
  look("the end of a process");
  EXPECT_GT(last[1], 50u);
  bed.io.record_type = 3;
  bed.run(1 * kSecond);
  bed.end(moved);
  bed.run(1 * kSecond);
  for (const TenantStats &tenant : bed.executor->stats().tenants) EXPECT_EQ(tenant.visits, 0u);
}

}  // namespace exec_log_test
}  // namespace qgpu::exec
