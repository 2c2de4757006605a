// SPDX-License-Identifier: GPL-2.0
// The executor as a whole against a fake driver: what tenants get, and what is left behind.
#include <unistd.h>

#include <cstdio>

#include "daemon/exec/gates.hpp"
#include "unit/exec_bed.hpp"

namespace qgpu::exec {
namespace {

TEST(Executor, QueuedTenantsGetTheirWeights) {
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 200), tenantOf(2, 100)}));
  const size_t a = bed.add(1, queued()), b = bed.add(2, queued());
  bed.run(500 * kMilli);
  const auto got = bed.shares({a, b}, 2 * kSecond);
  EXPECT_NEAR(got[0] / (got[0] + got[1]), 2.0 / 3, 0.01);
  EXPECT_GE(got[0] + got[1], 0.975);
  // Slices hold them: nobody is ever stopped.
  EXPECT_EQ(bed.io.calls[rm::kCtrlFifoDisableChannels], 0u);
  EXPECT_EQ(bed.count(EventKind::kProcessControlled), 2u);
}

TEST(Executor, LedgerAgreesWithWhatRan) {
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 300), tenantOf(2, 100)}));
  const size_t a = bed.add(1, queued()), b = bed.add(2, queued());
  bed.run(500 * kMilli);
  const Stats before = bed.executor->stats();
  const uint64_t from = bed.io.nowNs();
  const auto got = bed.shares({a, b}, 2 * kSecond);
  const Stats after = bed.executor->stats();
  const double wall = static_cast<double>(bed.io.nowNs() - from);
  for (size_t i = 0; i < 2; i++)
    EXPECT_NEAR(static_cast<double>(after.tenants[i].run_ns - before.tenants[i].run_ns) / wall,
                got[i], 0.005);
  EXPECT_EQ(after.head.source, static_cast<uint32_t>(QGPU_SOURCE_TRACE));
}

TEST(Executor, LaunchAndSyncTenantGetsItsShareByWindows) {
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 30), tenantOf(2, 70)}));
  const size_t a = bed.add(1, synced(300)), b = bed.add(2, queued());
  bed.run(3 * kSecond);
  const auto got = bed.shares({a, b}, 5 * kSecond);
  std::printf("sync %.4f queued %.4f\n", got[0], got[1]);
  EXPECT_GE(got[0], 0.27);
  EXPECT_LE(got[0], 0.31);
  EXPECT_GE(got[0] + got[1], 0.95);
}

TEST(Executor, EverythingIsAsFoundAfterStop) {
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

}  // namespace
}  // namespace qgpu::exec
