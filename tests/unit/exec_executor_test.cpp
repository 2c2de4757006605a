// SPDX-License-Identifier: GPL-2.0
// The executor as a whole against a fake driver: what tenants get, and what is left behind.
#include <unistd.h>

#include <cerrno>

#include "daemon/exec/gates.hpp"
#include "daemon/exec/rm_abi.hpp"
#include "unit/exec_bed.hpp"

namespace qgpu::exec {
namespace exec_executor_test {

TEST(Executor, QueuedTenantsGetTheirWeights) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 200), tenantOf(2, 100)}));
  const size_t a = bed.add(1, queued()), b = bed.add(2, queued());
  bed.run(500 * kMilli);
  const auto got = bed.shares({a, b}, 2 * kSecond);
  EXPECT_NEAR(got[0] / (got[0] + got[1]), 2.0 / 3, 0.01);
  EXPECT_GE(got[0] + got[1], 0.975);
  // Slices hold them: nobody is ever stopped. Each is let run once, when it is found.
  EXPECT_EQ(bed.io.calls[rm::kCtrlFifoDisableChannels], 2u);
  EXPECT_EQ(bed.count(EventKind::kProcessControlled), 2u);
}

TEST(Executor, LedgerAgreesWithWhatRan) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 300), tenantOf(2, 100)}));
  const size_t a = bed.add(1, queued()), b = bed.add(2, queued());
  bed.run(500 * kMilli);
  bed.executor->turn();
  const Stats before = bed.executor->stats();
  const uint64_t from = bed.io.nowNs();
  const auto got = bed.shares({a, b}, 2 * kSecond);
  bed.executor->turn();
  const Stats after = bed.executor->stats();
  const double wall = static_cast<double>(bed.io.nowNs() - from);
  for (size_t i = 0; i < 2; i++)
    EXPECT_NEAR(static_cast<double>(after.tenants[i].run_ns - before.tenants[i].run_ns) / wall,
                got[i], 0.005);
  EXPECT_EQ(after.head.source, static_cast<uint32_t>(QGPU_SOURCE_TRACE));
}

// What they do is in no trace: they are counted, and neither charged nor touched.
TEST(Executor, CopyEnginesAreCountedApart) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 200), tenantOf(2, 100)}));
  bed.add(1, queued());
  bed.add(1, queued());
  bed.run(1 * kSecond);
  const Stats stats = bed.executor->stats();
  EXPECT_EQ(stats.tenants[0].copy_tsgs, 2u);
  EXPECT_EQ(stats.tenants[0].tsgs, 2u);
  EXPECT_EQ(stats.tenants[1].copy_tsgs, 0u);
  for (const ObjectStats &object : stats.objects) EXPECT_EQ(object.runlist, 0u);
}

TEST(Executor, LaunchAndSyncTenantGetsItsShareByWindows) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 30), tenantOf(2, 70)}));
  const size_t a = bed.add(1, synced(300)), b = bed.add(2, queued());
  bed.run(3 * kSecond);
  const auto got = bed.shares({a, b}, 5 * kSecond);
  EXPECT_GE(got[0], 0.27);
  EXPECT_LE(got[0], 0.31);
  EXPECT_GE(got[0] + got[1], 0.95);
}

// A reading may be over long before who was taken off for it is back: 10 us on an H200's machine.
TEST(Executor, WindowsDoNotDependOnHowFastTheTraceIsRead) {
  QGPU_TRACE_SEED();
  for (const uint64_t flush_us : {2, 10, 50, 120}) {
    Bed bed;
    bed.io.flush_ns = flush_us * 1000;
    bed.open();
    ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 30), tenantOf(2, 70)}));
    const size_t a = bed.add(1, synced(1000)), b = bed.add(2, queued());
    bed.run(3 * kSecond);
    double sum = 0;
    for (int second = 0; second < 20; second++) {
      const double share = bed.shares({a, b}, kSecond)[0];
      sum += share;
      // It may be tried in the rotation once more.
      EXPECT_GE(share, 0.17) << flush_us << " us, second " << second;
    }
    EXPECT_GE(sum / 20, 0.28) << flush_us << " us";
  }
}

TEST(Executor, LaunchAndSyncTenantAmongManyGetsItsShare) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, equalTenants(4)));
  std::vector<size_t> all = {bed.add(1, synced(300))};
  for (uint32_t i = 2; i <= 4; i++) all.push_back(bed.add(i, queued()));
  bed.run(5 * kSecond);
  const auto got = bed.shares(all, 10 * kSecond);
  EXPECT_GE(got[0], 0.22);  // its own gaps are 3 % of its time
  for (size_t i = 1; i < 4; i++) EXPECT_NEAR(got[i], 0.243, 0.01);
}

TEST(Executor, WhoPacesItselfGetsNoWindows) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 100), tenantOf(2, 100)}));
  const size_t a = bed.add(1, synced(300, 4700)), b = bed.add(2, queued());
  bed.run(2 * kSecond);
  const auto got = bed.shares({a, b}, 4 * kSecond);
  EXPECT_GE(got[1], 0.94);
  EXPECT_GT(got[0], 0.005);
  EXPECT_EQ(bed.executor->stats().tenants[0].windows, 0u);
}

// Its share soon, whatever its kernels' length: before it has it, it has a twentieth.
TEST(Executor, LaunchAndSyncTenantHasItsShareWithinASecond) {
  QGPU_TRACE_SEED();
  for (const uint64_t kernel_us : {100, 300, 700, 1000, 2000, 5000}) {
    Bed bed;
    bed.open();
    ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 30), tenantOf(2, 70)}));
    const size_t b = bed.add(2, queued());
    bed.run(500 * kMilli);
    const size_t a = bed.add(1, synced(kernel_us));
    bed.run(1 * kSecond);
    const auto got = bed.shares({a, b}, 2 * kSecond);
    EXPECT_NEAR(got[0], 0.29, 0.03) << kernel_us;
    EXPECT_GE(got[0] + got[1], 0.95) << kernel_us;
  }
}

// Two that their processors pace: each fills what the other leaves, and windows would stand empty.
TEST(Executor, WhoIsPacedByItsProcessorGetsNoWindows) {
  QGPU_TRACE_SEED();
  for (const uint64_t kernel_us : {10, 20}) {
    Bed bed;
    bed.open();
    ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 200), tenantOf(2, 100)}));
    const auto work = paced(kernel_us, 50, 200);
    const size_t a = bed.add(1, work), b = bed.add(2, work);
    bed.run(1 * kSecond);
    const auto got = bed.shares({a, b}, 4 * kSecond);
    for (const double share : got)
      EXPECT_NEAR(share, static_cast<double>(kernel_us) / 50, 0.01) << kernel_us;
    const Stats stats = bed.executor->stats();
    EXPECT_EQ(stats.tenants[0].windows + stats.tenants[1].windows, 0u) << kernel_us;
  }
}

TEST(Executor, WhoIsPacedByItsProcessorBesideAQueuedOneGetsNoWindows) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 200), tenantOf(2, 100)}));
  const size_t a = bed.add(1, paced(10, 40, 400)), b = bed.add(2, queued());
  bed.run(1 * kSecond);
  const auto got = bed.shares({a, b}, 4 * kSecond);
  EXPECT_GE(got[0], 0.24);
  EXPECT_GE(got[0] + got[1], 0.95);
  EXPECT_EQ(bed.executor->stats().tenants[0].windows, 0u);
}

// What was launch-and-sync and leaves room now: its windows end, and do not come back at once.
TEST(Executor, WhoLeavesItsWindowsEmptyLosesThem) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 200), tenantOf(2, 100)}));
  const size_t a = bed.add(1, synced(1000)), b = bed.add(2, queued());
  bed.run(3 * kSecond);
  ASSERT_GT(bed.executor->stats().tenants[0].windows, 10u);
  bed.tsg(a).work = synced(300, 1500);
  bed.run(4 * kSecond);
  const uint64_t before = bed.executor->stats().tenants[0].windows;
  const auto got = bed.shares({a, b}, 4 * kSecond);
  EXPECT_LE(bed.executor->stats().tenants[0].windows - before, 12u);
  EXPECT_GE(got[0] + got[1], 0.9);
}

// At its end it launches no more and lives on for a while: that says nothing of the next.
TEST(Executor, TheNextJobOfATenantHasItsShareSoon) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 30), tenantOf(2, 70)}));
  for (const uint64_t kernel_us : {100, 300, 1000, 5000, 300, 5000}) {
    SCOPED_TRACE(kernel_us);
    const size_t a = bed.add(1, synced(kernel_us)), b = bed.add(2, queued());
    bed.run(3 * kSecond);
    EXPECT_NEAR(bed.shares({a, b}, 7 * kSecond)[0], 0.29, 0.02);
    bed.tsg(a).work = bed.tsg(b).work = {};
    bed.run(300 * kMilli);
    bed.end(a);
    bed.end(b);
    bed.run(200 * kMilli);
  }
}

// What a context is made with cannot be cut, and lasts as long as a tail.
TEST(Executor, WhoCouldNotBeCutOnceHasItsShareSoonAfter) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 30), tenantOf(2, 70)}));
  const size_t b = bed.add(2, queued());
  bed.run(100 * kMilli);
  const size_t a = bed.add(1, synced(100, 5000));
  bed.run(300 * kMilli);
  bed.tsg(a).work = synced(60'000, 5000);
  bed.tsg(a).work.uncuttable = true;
  bed.run(80 * kMilli);
  bed.tsg(a).work = synced(100);
  bed.tsg(a).left_ns = 100'000;
  bed.run(3 * kSecond);
  EXPECT_NEAR(bed.shares({a, b}, 1 * kSecond)[0], 0.28, 0.03);
}

// A pause says nothing of what comes after it.
TEST(Executor, WhoPausesHasItsShareSoonAfter) {
  QGPU_TRACE_SEED();
  for (int k = 0; k < 10; k++) {
    SCOPED_TRACE(k);
    Bed bed;
    bed.open();
    ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 30), tenantOf(2, 70)}));
    const size_t b = bed.add(2, queued()), a = bed.add(1, synced(300));
    bed.run((60 + 30 * k) * kMilli);
    bed.tsg(a).work = synced(300, 6000);
    bed.run(200 * kMilli);
    bed.tsg(a).work = synced(300);
    bed.run(3500 * kMilli);
    EXPECT_NEAR(bed.shares({a, b}, 1 * kSecond)[0], 0.29, 0.03);
  }
}

TEST(Executor, FixedSharesHoldAloneAndTogether) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_FIXED_SHARE, {tenantOf(1, 100, 300'000)}));
  const size_t a = bed.add(1, queued());
  bed.run(500 * kMilli);
  EXPECT_NEAR(bed.shares({a}, 3 * kSecond)[0], 0.3, 0.003);
  ASSERT_TRUE(
      bed.plan(QGPU_POLICY_FIXED_SHARE, {tenantOf(1, 100, 300'000), tenantOf(2, 100, 400'000)}));
  const size_t b = bed.add(2, queued());
  bed.run(500 * kMilli);
  const auto got = bed.shares({a, b}, 3 * kSecond);
  EXPECT_NEAR(got[0], 0.3, 0.003);
  EXPECT_NEAR(got[1], 0.4, 0.004);
}

TEST(Executor, CeilingHoldsALoneTenant) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 100)}));
  const size_t a = bed.add(1, queued());
  for (const uint32_t percent : {30, 10, 50}) {
    SCOPED_TRACE(percent);
    ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 100, 0, percent * 10'000)}));
    bed.run(1 * kSecond);
    const uint64_t gates = bed.executor->stats().tenants[0].gates;
    EXPECT_NEAR(bed.shares({a}, 9 * kSecond)[0], percent / 100.0, percent / 10'000.0);
    // Each frame of 45 ms, none left out for what the one before it overran.
    EXPECT_GE(bed.executor->stats().tenants[0].gates - gates, 9000u / 45 - 2);
  }
}

TEST(Executor, OnlineIsServedAtOnceAndTheOthersGetTheRest) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  std::vector<PlanTenant> tenants = {tenantOf(1, 100), tenantOf(2, 100), tenantOf(3, 100)};
  tenants[0].work_class = QGPU_CLASS_ONLINE;
  tenants[1].work_class = tenants[2].work_class = QGPU_CLASS_OFFLINE;
  if (const auto done = bed.plan(QGPU_POLICY_BURST_SHARE, tenants); !done)
    GTEST_SKIP() << done.error().sentence;
  const size_t b = bed.add(2, queued()), c = bed.add(3, queued());
  bed.run(500 * kMilli);
  // 300 us of work every 5 ms, less what it waits.
  const size_t a = bed.add(1, synced(300, 4700));
  bed.run(1 * kSecond);
  const auto got = bed.shares({a, b, c}, 10 * kSecond);
  EXPECT_GE(got[0], 0.055);
  EXPECT_NEAR(got[1], got[2], 0.01);
  EXPECT_GE(got[1] + got[2], 0.94 * (1 - got[0]) - 0.05);
}

TEST(Executor, EverythingIsAsFoundAfterStop) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 30), tenantOf(2, 70)}));
  const size_t a = bed.add(1, synced(300)), b = bed.add(2, queued());
  bed.run(3 * kSecond);
  EXPECT_NE(bed.tsg(b).slice_us, 2048u);
  bed.executor->stop();
  bed.executor.reset();
  for (const size_t i : {a, b}) {
    EXPECT_EQ(bed.tsg(i).slice_us, 2048u);
    EXPECT_TRUE(bed.tsg(i).enabled);
  }
  EXPECT_TRUE(bed.io.open_fds.empty());
  EXPECT_NE(access((bed.folder / "GPU-fake.gates").c_str(), F_OK), 0);
  EXPECT_NE(access((bed.folder / "GPU-fake.exec").c_str(), F_OK), 0);
}

TEST(Executor, RefusedPlanChangesNothing) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 100)}));
  const uint64_t generation = bed.executor->hello().generation;
  const auto done =
      bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 100, 600'000), tenantOf(2, 100, 500'000)});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().err, ENOSPC);
  EXPECT_NE(done.error().sentence.find("110.0"), std::string::npos) << done.error().sentence;
  EXPECT_FALSE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 100), tenantOf(1, 100)}));
  EXPECT_EQ(bed.executor->hello().generation, generation);
  EXPECT_EQ(bed.executor->stats().tenants.size(), 1u);
}

TEST(Executor, AWaitThatCannotBeKeptIsRefusedWithWhatCanBe) {
  Bed bed;
  bed.open();
  std::vector<PlanTenant> tenants = {tenantOf(1, 100), tenantOf(2, 100), tenantOf(3, 100)};
  tenants[1].wake_ns = 1 * kMilli;
  const auto done = bed.plan(QGPU_POLICY_BURST_SHARE, tenants);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().err, ENOSPC);
  EXPECT_EQ(done.error().item, "wake_within");
  EXPECT_NE(done.error().sentence.find("shortest wait"), std::string::npos)
      << done.error().sentence;
  tenants[0].work_class = QGPU_CLASS_ONLINE;
  const auto beside = bed.plan(QGPU_POLICY_BURST_SHARE, tenants);
  ASSERT_FALSE(beside);
  EXPECT_NE(beside.error().sentence.find("no longest wait"), std::string::npos)
      << beside.error().sentence;
  tenants = {tenantOf(1, 100), tenantOf(2, 1000)};
  tenants[0].wake_ns = 6 * kMilli;
  const auto bent = bed.plan(QGPU_POLICY_BURST_SHARE, tenants);
  ASSERT_FALSE(bent);
  EXPECT_EQ(bent.error().sentence,
            "the shortest wait that can be promised is 6152 us, for slices to follow the weights");
  tenants[0].wake_ns = 6152 * 1000;
  EXPECT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, tenants));
}

// Nothing that would not be kept is taken.
TEST(Executor, AHangTimeoutIsRefused) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  PlanTenant tenant = tenantOf(1, 100);
  tenant.hang_ns = kSecond;
  const auto done = bed.plan(QGPU_POLICY_BURST_SHARE, {tenant});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().err, EOPNOTSUPP);
  EXPECT_EQ(done.error().item, "hang_timeout");
  EXPECT_EQ(done.error().sentence, "method rm does not notice work that runs for too long");
  EXPECT_TRUE(bed.plan(QGPU_POLICY_BEST_EFFORT, {tenant}));  // kept for later
}

TEST(Executor, ProcessNeedsATenantOfThePlanAndItsOwnDescriptor) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  fakes::Child a, b;
  EXPECT_EQ(bed.executor->addProcess(a.pid(), a.pidfd(), 1).error().err, ENOENT);
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 100)}));
  EXPECT_EQ(bed.executor->addProcess(a.pid(), b.pidfd(), 1).error().err, EINVAL);
  EXPECT_TRUE(bed.executor->addProcess(a.pid(), a.pidfd(), 1));
  EXPECT_TRUE(bed.executor->dropProcess(a.pid()));
  EXPECT_EQ(bed.executor->dropProcess(a.pid()).error().err, ENOENT);
}

TEST(Executor, TenantThatDiesWhileStoppedLeavesNothing) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(
      bed.plan(QGPU_POLICY_FIXED_SHARE, {tenantOf(1, 100, 300'000), tenantOf(2, 100, 300'000)}));
  const size_t a = bed.add(1, queued()), b = bed.add(2, queued());
  bed.run(500 * kMilli);
  const size_t open = bed.io.open_fds.size();
  while (bed.tsg(a).enabled) bed.run(1 * kMilli);
  const pid_t pid = bed.children[a]->pid();
  bed.children[a]->end();
  bed.io.endProcess(pid);
  bed.run(1 * kSecond);
  EXPECT_EQ(bed.count(EventKind::kProcessGone), 1u);
  EXPECT_EQ(bed.io.open_fds.size(), open - 1);
  EXPECT_EQ(bed.executor->stats().objects.size(), 1u);
  EXPECT_EQ(readGates(bed.folder / "GPU-fake.gates")->size(), 1u);
  EXPECT_NEAR(bed.shares({b}, 2 * kSecond)[0], 0.3, 0.005);
}

TEST(Executor, SliceThatSomebodyElseSetIsRestoredAndReported) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 100), tenantOf(2, 100)}));
  const size_t a = bed.add(1, queued());
  bed.add(2, queued());
  bed.run(3 * kSecond);
  const uint64_t ours = bed.tsg(a).slice_us;
  bed.tsg(a).slice_us = 1'000'000;
  bed.run(1200 * kMilli);
  // The trim may have changed it by a little meanwhile.
  EXPECT_NEAR(static_cast<double>(bed.tsg(a).slice_us), static_cast<double>(ours),
              0.3 * static_cast<double>(ours));
  EXPECT_EQ(bed.tsg(a).slice_us * CardParams().slice_unit_ns,
            bed.executor->stats().objects.at(0).slice_ns);
  EXPECT_EQ(bed.count(EventKind::kForeignChange), 1u);
  EXPECT_EQ(bed.count(EventKind::kQuarantine), 0u);
  bed.tsg(a).slice_us = 1'000'000;
  bed.run(1200 * kMilli);
  EXPECT_EQ(bed.count(EventKind::kQuarantine), 1u);
  EXPECT_EQ(bed.executor->stats().tenants[0].foreign_changes, 2u);
}

// A process is found before its own driver has set the slice it is to have.
TEST(Executor, SliceThatItsOwnDriverSetsAtFirstIsNoForeignChange) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 100), tenantOf(2, 100)}));
  const size_t a = bed.add(1, queued());
  bed.add(2, queued());
  bed.run(200 * kMilli);
  bed.tsg(a).slice_us = 4096;
  bed.run(100 * kMilli);
  EXPECT_NE(bed.tsg(a).slice_us, 4096u);
  bed.run(2000 * kMilli);
  EXPECT_EQ(bed.count(EventKind::kForeignChange), 0u);
  bed.tsg(a).slice_us = 1'000'000;
  bed.run(1200 * kMilli);
  EXPECT_EQ(bed.count(EventKind::kForeignChange), 1u);
  bed.executor->stop();
  EXPECT_EQ(bed.tsg(a).slice_us, 4096u);
}

// Sixteen that queue no more than a slice each: asking them costs nothing to speak of.
TEST(Executor, ManyThatEndEarlyAreNotAskedAllTheTime) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, equalTenants(16)));
  for (uint32_t i = 1; i <= 16; i++) bed.add(i, paced(200, 210, 13));
  bed.run(10 * kSecond);
  const uint64_t before = bed.io.calls[rm::kCtrlTsgPreempt];
  bed.run(10 * kSecond);
  EXPECT_LE(bed.io.calls[rm::kCtrlTsgPreempt] - before, 60u);
}

// What sixteen that saturate cost: the trace is read twice a cycle, which is a flush and the
// place read up to; beside that slices are read back, and corrected now and then. Looks for what
// they may have made meanwhile are part of it.
TEST(Executor, SixteenThatSaturateCostFewControls) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, equalTenants(16)));
  for (uint32_t i = 1; i <= 16; i++) bed.add(i, queued());
  bed.run(6 * kSecond);
  const auto before = bed.io.calls;
  constexpr uint64_t kSeconds = 8;
  bed.run(kSeconds * kSecond);
  const auto fresh = [&](uint32_t control) {
    const auto it = before.find(control);
    return bed.io.calls[control] - (it == before.end() ? 0 : it->second);
  };
  const uint64_t reads = fresh(rm::kCtrlEventBufferFlush) + fresh(rm::kCtrlEventBufferUpdateGet);
  const uint64_t others = fresh(rm::kCtrlTsgSetTimeslice) + fresh(rm::kCtrlTsgGetTimeslice) +
                          fresh(rm::kCtrlTsgPreempt) + fresh(rm::kCtrlFifoDisableChannels);
  EXPECT_LE(reads, 2 * 50 * kSeconds);
  EXPECT_LE(others, 40 * kSeconds);
}

// Who was late is behind the others, and is corrected; that changes the cycle, and seldom all
// slices.
TEST(Executor, AMemberThatIsCorrectedCostsFewWritesOfTheOthers) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, equalTenants(16)));
  std::vector<size_t> all;
  for (uint32_t i = 1; i <= 16; i++) {
    all.push_back(bed.add(i, queued()));
    bed.run(40 * kMilli);
  }
  bed.run(2 * kSecond);
  // Half a cycle, so it is awake all the time.
  const uint64_t before = bed.io.calls[rm::kCtrlTsgSetTimeslice];
  for (size_t i = 0; i < 8; i++) {
    bed.tsg(all[i]).work = {};
    bed.run(25 * kMilli);
    bed.tsg(all[i]).work = queued();
    bed.run(2 * kSecond);
  }
  EXPECT_LE(bed.io.calls[rm::kCtrlTsgSetTimeslice] - before, 16u * 8);
  const auto got = bed.shares(all, 8 * kSecond);
  for (const double share : got) EXPECT_NEAR(share, got[0], 0.004);
}

// Of a slice that is too short nothing is seen, and so it would stay.
TEST(Executor, WhoSleptBesideACrowdHasItsShareAgain) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, equalTenants(16)));
  std::vector<size_t> all;
  for (uint32_t i = 1; i <= 16; i++) all.push_back(bed.add(i, queued()));
  bed.run(6 * kSecond);
  bed.tsg(all[0]).work = {};
  bed.run(1 * kSecond);
  const uint64_t kept_us = bed.tsg(all[0]).slice_us;
  bed.run(12 * kSecond);
  EXPECT_EQ(bed.tsg(all[0]).slice_us, kept_us);
  bed.tsg(all[0]).work = queued();
  bed.run(1 * kSecond);
  const auto got = bed.shares(all, 4 * kSecond);
  EXPECT_NEAR(got[0], got[1], 0.01);
}

// What is known of a tenant does not go with its processes.
TEST(Executor, ManyShortProcessesOfATenantAreNotAskedForEver) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 100), tenantOf(2, 100)}));
  bed.add(2, queued());
  uint64_t before = 0;
  constexpr unsigned kProcesses = 24, kWarm = 8;
  for (unsigned i = 0; i < kProcesses; i++) {
    if (i == kWarm) before = bed.io.calls[rm::kCtrlTsgPreempt];
    const size_t brief = bed.add(1, synced(300));
    bed.run(400 * kMilli);
    const pid_t pid = bed.children[brief]->pid();
    bed.children[brief]->end();
    bed.io.endProcess(pid);
    bed.run(100 * kMilli);
  }
  // One to see who has the engine when it is found; the holder now and then; askings, which take
  // two, once a second.
  const auto asked = static_cast<double>(bed.io.calls[rm::kCtrlTsgPreempt] - before);
  EXPECT_LE(asked / (kProcesses - kWarm), 5) << asked;
}

TEST(Executor, RefusedControlIsReportedOnceASecondAndTheOthersGoOn) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  bed.io.refuse[rm::kCtrlTsgSetTimeslice] = rm::kInsufficientPermissions;
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 200), tenantOf(2, 100)}));
  bed.add(1, queued());
  bed.add(2, queued());
  bed.run(3 * kSecond);
  EXPECT_GE(bed.count(EventKind::kControlRefused), 2u);
  EXPECT_LE(bed.count(EventKind::kControlRefused), 10u);
  bed.io.refuse.clear();
  bed.run(2 * kSecond);
  EXPECT_NE(bed.tsg(0).slice_us, 2048u);
}

TEST(Executor, WithoutTheTraceSlicesStillHoldAndTheSourceSaysSo) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.io.status_of_trace = rm::kInsufficientPermissions;
  bed.open();
  EXPECT_EQ(bed.executor->hello().source, static_cast<uint32_t>(QGPU_SOURCE_INFERRED));
  EXPECT_NE(bed.executor->hello().status.sentence[0], 0);
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 200), tenantOf(2, 100)}));
  const size_t a = bed.add(1, queued()), b = bed.add(2, queued());
  bed.run(500 * kMilli);
  const auto got = bed.shares({a, b}, 2 * kSecond);
  EXPECT_NEAR(got[0] / (got[0] + got[1]), 2.0 / 3, 0.01);
  EXPECT_EQ(bed.executor->stats().tenants[0].source, static_cast<uint32_t>(QGPU_SOURCE_INFERRED));
}

TEST(Executor, SuccessorTakesOverPlanProcessesAndFoundSlices) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 200), tenantOf(2, 100)}));
  const size_t a = bed.add(1, queued()), b = bed.add(2, queued());
  bed.run(1 * kSecond);
  const uint64_t slice = bed.tsg(a).slice_us;
  const uint64_t generation = bed.executor->hello().generation;
  bed.executor.reset();  // as by a signal: nothing is put back
  EXPECT_EQ(bed.tsg(a).slice_us, slice);
  bed.open(1);
  EXPECT_EQ(bed.executor->hello().generation, generation);
  EXPECT_EQ(bed.executor->hello().processes, 2u);
  bed.run(500 * kMilli);
  EXPECT_EQ(bed.count(EventKind::kWorkerRestarted), 1u);
  const auto got = bed.shares({a, b}, 2 * kSecond);
  EXPECT_NEAR(got[0] / (got[0] + got[1]), 2.0 / 3, 0.01);
  bed.executor->stop();
  EXPECT_EQ(bed.tsg(a).slice_us, 2048u);
  EXPECT_EQ(bed.tsg(b).slice_us, 2048u);
}

TEST(Executor, BestEffortPutsEverythingBack) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_FIXED_SHARE, {tenantOf(1, 100, 200'000)}));
  const size_t a = bed.add(1, queued());
  bed.run(500 * kMilli);
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BEST_EFFORT, {tenantOf(1, 100)}));
  bed.run(100 * kMilli);
  EXPECT_TRUE(bed.tsg(a).enabled);
  EXPECT_EQ(bed.tsg(a).slice_us, 2048u);
  EXPECT_GE(bed.shares({a}, 1 * kSecond)[0], 0.99);
}

TEST(Executor, NobodyIsStoppedForLongerThanTheDriverWaits) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(
      bed.plan(QGPU_POLICY_FIXED_SHARE, {tenantOf(1, 100, 10'000), tenantOf(2, 100, 980'000)}));
  const size_t a = bed.add(1, queued());
  bed.add(2, queued());
  bed.run(6 * kSecond);
  EXPECT_LE(bed.tsg(a).gap_longest_ns, 500 * kMilli);
}

}  // namespace exec_executor_test
}  // namespace qgpu::exec
