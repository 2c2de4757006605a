// SPDX-License-Identifier: GPL-2.0
// The executor without the driver's trace: what it shows of run times and where that is from, which
// limits it keeps and how, and what it refuses.
#include <dlfcn.h>

#include <cerrno>

#include "daemon/exec/rm_abi.hpp"
#include "daemon/exec/utilisation.hpp"
#include "fakes/fake_nvml.hpp"
#include "unit/exec_bed.hpp"

namespace qgpu::exec {
namespace {

// Of the library that the executor loads; the same for as long as this lives.
struct Nvml {
  void *handle = dlopen(QGPU_FAKE_NVML, RTLD_NOW);
  fakes::FakeNvml &state() {
    using Function = fakes::FakeNvml *();
    return *reinterpret_cast<Function *>(dlsym(handle, "fakeNvml"))();
  }
  ~Nvml() {
    state() = {};
    dlclose(handle);
  }
};

struct ClockBed : Bed {
  explicit ClockBed(const std::string &library = "") {
    nvml = library;
    io.status_of_trace = rm::kInsufficientPermissions;
    open();
  }
  double ran(size_t tenant, uint64_t ns) {
    const uint64_t before = executor->stats().tenants.at(tenant).run_ns;
    run(ns);
    return static_cast<double>(executor->stats().tenants.at(tenant).run_ns - before) /
           static_cast<double>(ns);
  }
};

TEST(ByClock, RunTimesAreNvmlsWithTheirErrorAndSoSaid) {
  QGPU_TRACE_SEED();
  Nvml nvml;
  ClockBed bed(QGPU_FAKE_NVML);
  EXPECT_EQ(bed.executor->hello().source, kSourceNvml);
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 200), tenantOf(2, 100)}));
  const size_t a = bed.add(1, queued());
  bed.add(2, {});
  nvml.state().percents[static_cast<unsigned>(bed.children[a]->pid())] = 40;
  nvml.state().percents[1] = 10;  // somebody else
  nvml.state().time_us = 777;
  bed.run(1 * kSecond);
  EXPECT_NEAR(bed.ran(0, 10 * kSecond), 0.4, 0.05);
  EXPECT_EQ(bed.ran(1, 2 * kSecond), 0);
  EXPECT_EQ(nvml.state().since_us, 777u);
  const Stats stats = bed.executor->stats();
  for (const TenantStats &tenant : stats.tenants) {
    EXPECT_EQ(tenant.source, kSourceNvml);
    EXPECT_GT(tenant.run_err_ns, 300 * kMilli);
  }
  EXPECT_EQ(stats.head.card_state, uint32_t{QGPU_CARD_DEGRADED});
  EXPECT_NE(std::string(stats.head.status.sentence).find("NVML"), std::string::npos);
  bed.executor.reset();
  EXPECT_EQ(nvml.state().starts, 0);
}

TEST(ByClock, ANvmlThatFailsIsGivenUpAndCountingBeginsAnew) {
  QGPU_TRACE_SEED();
  Nvml nvml;
  ClockBed bed(QGPU_FAKE_NVML);
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 200)}));
  const size_t a = bed.add(1, queued());
  nvml.state().percents[static_cast<unsigned>(bed.children[a]->pid())] = 100;
  bed.run(2 * kSecond);
  const uint64_t since_ns = bed.executor->stats().head.since_ns;
  nvml.state().read_code = 999;
  bed.run(2 * kSecond);
  const Stats stats = bed.executor->stats();
  EXPECT_EQ(stats.head.source, uint32_t{QGPU_SOURCE_INFERRED});
  EXPECT_GT(stats.head.since_ns, since_ns);
  EXPECT_NE(std::string(stats.head.status.sentence).find("inferred"), std::string::npos);
  EXPECT_EQ(nvml.state().starts, 0);
}

TEST(ByClock, NoNvmlOrAnotherCardsIsNoReasonToStop) {
  Nvml nvml;
  EXPECT_EQ(Utilisation::open("GPU-fake", "libnvidia-ml.so.none").error().err, ENOENT);
  EXPECT_EQ(Utilisation::open("GPU-fake", "libc.so.6").error().err, ENOENT);
  EXPECT_FALSE(Utilisation::open("GPU-other", QGPU_FAKE_NVML));
  nvml.state().init_code = 9;
  EXPECT_FALSE(Utilisation::open("GPU-fake", QGPU_FAKE_NVML));
  const ClockBed bed(QGPU_FAKE_NVML);
  EXPECT_EQ(bed.executor->hello().source, uint32_t{QGPU_SOURCE_INFERRED});
}

// What is inferred may be wrong by all of it, and the error says so.
TEST(ByClock, WhatIsInferredHasAnErrorThatCoversTheTruth) {
  QGPU_TRACE_SEED();
  ClockBed bed;
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 200), tenantOf(2, 100)}));
  const size_t a = bed.add(1, queued()), b = bed.add(2, {});
  bed.run(5 * kSecond);
  const Stats stats = bed.executor->stats();
  for (const size_t i : {a, b}) {
    const auto shown = static_cast<double>(stats.tenants[i].run_ns);
    const auto error = static_cast<double>(stats.tenants[i].run_err_ns);
    EXPECT_LE(std::abs(shown - static_cast<double>(bed.tsg(i).run_ns)), error + 100e6) << i;
  }
}

TEST(ByClock, ACeilingIsKeptAloneBesideWhoIsIdleAndInCompany) {
  QGPU_TRACE_SEED();
  for (const auto &work : {fakes::FakeWork{}, queued(), synced(300)}) {
    ClockBed bed;
    ASSERT_TRUE(
        bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 100, 0, 300'000), tenantOf(2, 100)}));
    const size_t a = bed.add(1, queued());
    bed.run(1 * kSecond);
    EXPECT_NEAR(bed.shares({a}, 5 * kSecond)[0], 0.295, 0.015);
    bed.add(2, work);
    bed.run(1 * kSecond);
    EXPECT_NEAR(bed.shares({a}, 5 * kSecond)[0], 0.295, 0.015) << work.kind;
  }
}

TEST(ByClock, FixedSharesAreKept) {
  QGPU_TRACE_SEED();
  ClockBed bed;
  ASSERT_TRUE(
      bed.plan(QGPU_POLICY_FIXED_SHARE, {tenantOf(1, 100, 300'000), tenantOf(2, 100, 400'000)}));
  const size_t a = bed.add(1, queued()), b = bed.add(2, queued());
  bed.run(1 * kSecond);
  const auto got = bed.shares({a, b}, 5 * kSecond);
  EXPECT_NEAR(got[0], 0.295, 0.015);
  EXPECT_NEAR(got[1], 0.395, 0.015);
}

TEST(ByClock, WhatNeedsTheTraceIsRefusedWithATenantAndAReason) {
  ClockBed bed;
  const auto refused = [&](auto change) {
    PlanTenant tenant = tenantOf(1, 100);
    change(tenant);
    const auto done = bed.plan(QGPU_POLICY_BURST_SHARE, {tenant, tenantOf(2, 100)});
    return done ? Error{} : done.error();
  };
  EXPECT_EQ(refused([](PlanTenant &t) { t.work_class = QGPU_CLASS_ONLINE; }).err, EOPNOTSUPP);
  EXPECT_EQ(refused([](PlanTenant &t) { t.work_class = QGPU_CLASS_OFFLINE; }).item, "class");
  const Error wake = refused([](PlanTenant &t) { t.wake_ns = kSecond; });
  EXPECT_EQ(wake.item, "wake_within");
  EXPECT_NE(wake.sentence.find("trace"), std::string::npos);
  EXPECT_EQ(refused([](PlanTenant &t) { t.ceiling_ppm = 300'000; }).err, 0);
  const auto sum = bed.plan(QGPU_POLICY_BURST_SHARE,
                            {tenantOf(1, 100, 0, 600'000), tenantOf(2, 100, 0, 600'000)});
  ASSERT_FALSE(sum);
  EXPECT_EQ(sum.error().err, ENOSPC);
  EXPECT_NE(sum.error().sentence.find("a ceiling is one"), std::string::npos)
      << sum.error().sentence;
}

// The driver is another than what was thought: what it records from then on says nothing.
TEST(ByClock, RecordsOfAnUnknownLayoutEndTheTraceAndLimitsHold) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 100, 0, 300'000), tenantOf(2, 100)}));
  const size_t a = bed.add(1, queued()), b = bed.add(2, queued());
  bed.run(2 * kSecond);
  EXPECT_EQ(bed.executor->hello().source, uint32_t{QGPU_SOURCE_TRACE});
  bed.io.record_type = 3;
  bed.run(2 * kSecond);
  const HelloReply hello = bed.executor->hello();
  EXPECT_EQ(hello.source, uint32_t{QGPU_SOURCE_INFERRED});
  EXPECT_NE(std::string(hello.status.sentence).find("layout"), std::string::npos);
  EXPECT_NEAR(bed.shares({a, b}, 5 * kSecond)[0], 0.295, 0.015);
}

// Counters of another source are others: none of what the trace counted is in them.
TEST(ByClock, CountersBeginAnewWithSinceWhenTheTraceIsLost) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 100), tenantOf(2, 100)}));
  const size_t a = bed.add(1, queued());
  bed.add(2, queued());
  bed.run(20 * kSecond);
  const uint64_t since_ns = bed.executor->stats().head.since_ns;
  bed.io.record_type = 3;
  bed.run(1 * kSecond);
  for (int second = 0; second < 5; second++) {
    const Stats stats = bed.executor->stats();
    EXPECT_GT(stats.head.since_ns, since_ns + 20 * kSecond);
    const uint64_t elapsed_ns = stats.head.time_ns - stats.head.since_ns;
    uint64_t counted_ns = stats.head.switch_ns + stats.head.idle_ns + stats.head.nobody_ns;
    for (const TenantStats &tenant : stats.tenants) {
      counted_ns += tenant.run_ns;
      EXPECT_LE(tenant.run_ns, elapsed_ns);
      EXPECT_EQ(tenant.visits, 0u);
    }
    EXPECT_LE(counted_ns, elapsed_ns);
    bed.run(1 * kSecond);
  }
  EXPECT_TRUE(bed.tsg(a).enabled);
}

TEST(ByClock, APlanThatCannotBeEnforcedSoIsNotEnforcedAndThatIsSaid) {
  QGPU_TRACE_SEED();
  for (const bool online : {true, false}) {
    Bed bed;
    bed.open();
    std::vector<PlanTenant> tenants = {tenantOf(1, 100), tenantOf(2, 100)};
    if (online)
      tenants[0].work_class = QGPU_CLASS_ONLINE;
    else
      tenants[0].wake_ns = 20 * kMilli;
    ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, tenants));
    const size_t a = bed.add(1, synced(300, 4700)), b = bed.add(2, queued());
    bed.run(2 * kSecond);
    bed.io.record_type = 3;
    bed.run(2 * kSecond);
    const HelloReply hello = bed.executor->hello();
    EXPECT_EQ(std::string(hello.status.sentence).find("nothing is enforced: "), 0u)
        << hello.status.sentence;
    EXPECT_EQ(hello.card_state, uint32_t{QGPU_CARD_DEGRADED});
    for (const size_t i : {a, b}) {
      EXPECT_TRUE(bed.tsg(i).enabled);
      EXPECT_EQ(bed.tsg(i).slice_us, 2048u);
    }
  }
}

}  // namespace
}  // namespace qgpu::exec
