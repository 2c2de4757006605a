// SPDX-License-Identifier: GPL-2.0
// What the executor does when something is kept from it: processes that it may not or cannot
// see, controls that hang, tenants that do not go on.
#include <sys/prctl.h>

#include <cerrno>

#include "daemon/exec/rm_abi.hpp"
#include "unit/exec_bed.hpp"

namespace qgpu::exec {
namespace exec_faults_test {

TEST(ExecutorFaults, WhoMayNotBeLookedAtIsToldOfOnceAndShown) {
  QGPU_TRACE_SEED();
  for (const bool looks : {false, true}) {
    Bed bed;
    bed.io.permit_looks = looks;
    bed.io.permit_duplicates = false;
    bed.open();
    ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 100), tenantOf(2, 100)}));
    const size_t a = bed.add(1, queued());
    bed.run(10 * kSecond);
    EXPECT_EQ(bed.count(EventKind::kProcessBlind), 1u);
    const std::string why = bed.lastSentence(EventKind::kProcessBlind);
    EXPECT_NE(why.find("process " + std::to_string(bed.children[a]->pid())), std::string::npos)
        << why;
    const Stats stats = bed.executor->stats();
    EXPECT_EQ(stats.head.card_state, uint32_t{QGPU_CARD_DEGRADED});
    EXPECT_EQ(stats.head.status.tenant_id, 1u);
    EXPECT_EQ(std::string(stats.head.status.sentence), why);
    EXPECT_EQ(bed.lastSentence(EventKind::kCardState), why);
    EXPECT_EQ(bed.executor->hello().card_state, uint32_t{QGPU_CARD_DEGRADED});

    bed.io.permit_looks = bed.io.permit_duplicates = true;
    bed.run(3 * kSecond);
    EXPECT_EQ(bed.count(EventKind::kProcessControlled), 1u);
    EXPECT_EQ(bed.executor->stats().head.card_state, uint32_t{QGPU_CARD_OK});
    EXPECT_EQ(bed.lastSentence(EventKind::kCardState), "");
  }
}

// Seen on a card: of eight that started at once one was not found, for the number of its descriptor
// was of another file when it was first looked at. Nor is one lost whose client does not answer at
// first.
TEST(ExecutorFaults, WhoOpensTheDriverAnewWhileItStartsIsFound) {
  QGPU_TRACE_SEED();
  for (const bool reopens : {true, false}) {
    Bed bed;
    bed.open();
    ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 100), tenantOf(2, 100)}));
    bed.add(1, queued());
    const size_t b = bed.add(2, queued());
    bed.io.silent_once.insert(bed.tsg(b).client);
    while (!bed.io.silent_once.empty()) bed.run(kMilli);
    if (reopens) bed.io.reopenControl(bed.tsg(b).pid);
    bed.run(200 * kMilli);
    EXPECT_EQ(bed.executor->stats().objects.size(), 2u) << reopens;
    EXPECT_EQ(bed.count(EventKind::kProcessBlind), 0u);
  }
}

// It becomes another program, or closes the driver, and opens it anew before anybody looks: the
// number is the same, the file is not.
TEST(ExecutorFaults, WhoOpensTheDriverAnewUnderTheSameNumberIsUnderControlAgain) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 100, 0, 300'000), tenantOf(2, 100)}));
  const size_t a = bed.add(1, queued());
  bed.run(20 * kSecond);
  const pid_t pid = bed.children[a]->pid();
  bed.io.endProcess(pid);
  bed.io.reopenControl(pid);
  bed.io.addProcess(pid).work = queued();
  bed.run(3 * kSecond);
  EXPECT_NEAR(bed.shares({a}, 3 * kSecond)[0], 0.3, 0.02);
  EXPECT_EQ(bed.count(EventKind::kProcessControlled), 2u);
}

TEST(ExecutorFaults, WhoGoesBlindAgainIsToldOfAgain) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.io.permit_duplicates = false;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 100), tenantOf(2, 100)}));
  const size_t a = bed.add(1, queued());
  bed.run(5 * kSecond);
  ASSERT_EQ(bed.count(EventKind::kProcessBlind), 1u);
  bed.io.permit_duplicates = true;
  bed.run(3 * kSecond);
  ASSERT_EQ(bed.count(EventKind::kProcessControlled), 1u);
  // It closes the driver, and what it opens then may not be looked at.
  bed.io.permit_duplicates = false;
  bed.io.endProcess(bed.children[a]->pid());
  bed.io.addProcess(bed.children[a]->pid(), 8, 6).work = queued();
  bed.run(10 * kSecond);
  EXPECT_EQ(bed.count(EventKind::kProcessBlind), 2u);
  EXPECT_EQ(bed.executor->stats().head.card_state, uint32_t{QGPU_CARD_DEGRADED});
}

TEST(ExecutorFaults, TheNameOfABlindOneIsShownPrintable) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.io.permit_duplicates = false;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 100)}));
  char name[16];
  prctl(PR_GET_NAME, name);
  prctl(PR_SET_NAME, "\xff\x1b");  // children begin with it
  const size_t a = bed.add(1, queued());
  prctl(PR_SET_NAME, name);
  bed.run(1 * kSecond);
  const std::string begin = "process " + std::to_string(bed.children[a]->pid()) + " (\?\?) runs";
  for (const std::string &said :
       {bed.lastSentence(EventKind::kProcessBlind), bed.lastSentence(EventKind::kCardState),
        std::string(bed.executor->stats().head.status.sentence)})
    EXPECT_EQ(said.substr(0, begin.size()), begin);
}

TEST(ExecutorFaults, AnMpsServerIsOneTenantAndThatIsSaid) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 200), tenantOf(2, 100)}));
  char name[16];
  prctl(PR_GET_NAME, name);
  prctl(PR_SET_NAME, "nvidia-cuda-mps-server");  // children begin with it
  const size_t a = bed.add(1, queued());
  prctl(PR_SET_NAME, name);
  bed.run(1 * kSecond);
  const std::string said = bed.lastSentence(EventKind::kProcessControlled);
  EXPECT_NE(said.find("is an MPS server"), std::string::npos) << said;
  const size_t b = bed.add(2, queued());
  bed.run(1 * kSecond);
  EXPECT_EQ(bed.lastSentence(EventKind::kProcessControlled), "");
  const auto got = bed.shares({a, b}, 2 * kSecond);
  EXPECT_NEAR(got[0] / got[1], 2, 0.1);
}

TEST(ExecutorFaults, WhoUsesTheCardWithoutADescriptorIsToldOf) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 100), tenantOf(2, 100)}));
  const size_t hidden = bed.add(1, queued(), -1);
  bed.add(2, queued());
  bed.add(2, {}, -1);  // has nothing to do with the card
  bed.run(800 * kMilli);
  EXPECT_EQ(bed.count(EventKind::kProcessBlind), 0u);
  bed.run(10 * kSecond);
  EXPECT_EQ(bed.count(EventKind::kProcessBlind), 1u);
  const std::string why = bed.lastSentence(EventKind::kProcessBlind);
  EXPECT_NE(why.find("none of its descriptors is /dev/nvidiactl"), std::string::npos) << why;
  EXPECT_EQ(bed.executor->stats().head.card_state, uint32_t{QGPU_CARD_DEGRADED});
  bed.io.endProcess(bed.children[hidden]->pid());
  bed.children[hidden]->end();
  bed.run(1 * kSecond);
  EXPECT_EQ(bed.executor->stats().head.card_state, uint32_t{QGPU_CARD_OK});
}

TEST(ExecutorFaults, WhoseLastUseIsLongAgoIsNotToldOf) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 100), tenantOf(2, 100)}));
  bed.add(2, queued());
  const size_t brief = bed.add(1, queued(), -1);
  bed.run(300 * kMilli);
  bed.tsg(brief).work = {};
  bed.run(5 * kSecond);
  EXPECT_EQ(bed.count(EventKind::kProcessBlind), 0u);
}

// A control hangs for 8 s as the plan goes from one to the other, whatever is on then.
struct Hang {
  const char *name;
  uint32_t policy;
  std::vector<PlanTenant> before, after;  // after: 2:1
  fakes::FakeWork work;
  double tolerance;
};

std::vector<Hang> hangs() {
  return {
      {"rotation",
       QGPU_POLICY_BURST_SHARE,
       {tenantOf(1, 800), tenantOf(2, 100)},
       {tenantOf(1, 200), tenantOf(2, 100)},
       queued(),
       0.1},
      {"windows by lag",
       QGPU_POLICY_BURST_SHARE,
       {tenantOf(1, 100), tenantOf(2, 100)},
       {tenantOf(1, 200), tenantOf(2, 100)},
       synced(300),
       0.2},  // its gaps are its own loss
      {"ceiling",
       QGPU_POLICY_BURST_SHARE,
       {tenantOf(1, 100), tenantOf(2, 100, 0, 200'000)},
       {tenantOf(1, 200), tenantOf(2, 100, 0, 330'000)},
       queued(),
       0.2},
      {"windows on the clock",
       QGPU_POLICY_FIXED_SHARE,
       {tenantOf(1, 100, 300'000), tenantOf(2, 100, 300'000)},
       {tenantOf(1, 100, 600'000), tenantOf(2, 100, 300'000)},
       queued(),
       0.05},
      {"a window on the clock beside the rotation",
       QGPU_POLICY_BURST_SHARE,
       {tenantOf(1, 100, 300'000, 300'000), tenantOf(2, 100)},
       {tenantOf(1, 100, 660'000, 660'000), tenantOf(2, 100)},
       queued(),
       0.1},
  };
}

TEST(ExecutorFaults, WhatRanWhileAControlHungIsNobodysDebt) {
  QGPU_TRACE_SEED();
  for (const uint32_t control :
       {rm::kCtrlFifoDisableChannels, rm::kCtrlTsgSetTimeslice, rm::kCtrlTsgGetTimeslice,
        rm::kCtrlTsgPreempt, rm::kCtrlEventBufferFlush})
    for (const Hang &hang : hangs()) {
      SCOPED_TRACE(testing::Message() << hang.name << ", control " << std::hex << control);
      Bed bed;
      bed.open();
      ASSERT_TRUE(bed.plan(hang.policy, hang.before));
      const size_t a = bed.add(1, hang.work), b = bed.add(2, queued());
      bed.run(4 * kSecond);
      bed.io.slow_once_ns[control] = 8 * kSecond;
      ASSERT_TRUE(bed.plan(hang.policy, hang.after));
      for (int i = 0; i < 1000 && bed.io.slow_once_ns.count(control); i++) bed.run(1 * kMilli);
      if (bed.io.slow_once_ns.count(control)) continue;  // not needed now
      bed.run(20 * kMilli);
      for (int i = 0; i < 4; i++)
        for (const double got : bed.shares({a, b}, 1 * kSecond)) EXPECT_GT(got, 0.2) << i;
      const auto got = bed.shares({a, b}, 4 * kSecond);
      EXPECT_NEAR(got[0] / got[1], 2, hang.tolerance) << got[0] << " " << got[1];
    }
}

// A turn that is long because there is much to do is no stall: what runs meanwhile is owed.
TEST(ExecutorFaults, ATurnThatIsLongByItsOwnWorkIsNobodysRelease) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 100, 0, 300'000), tenantOf(2, 100)}));
  const size_t a = bed.add(1, queued());
  bed.add(2, {});
  bed.run(2 * kSecond);
  const uint64_t before = bed.tsg(a).run_ns, from_ns = bed.io.nowNs();
  for (int i = 0; i < 15; i++) {
    // Read back once a second, of each.
    bed.io.slow_ns[rm::kCtrlTsgGetTimeslice] = 600 * kMilli;
    for (const uint64_t calls = bed.io.calls[rm::kCtrlTsgGetTimeslice];
         bed.io.calls[rm::kCtrlTsgGetTimeslice] < calls + 2;)
      bed.run(1 * kMilli);
    bed.io.slow_ns.clear();
    bed.run(3 * kSecond);
  }
  // Where it happens to run in such a turn it gets 1.2 s of it, and pays with what follows; what it
  // loses where it happens to be stopped then nobody owes it.
  const auto ns = static_cast<double>(bed.io.nowNs() - from_ns);
  EXPECT_LE(static_cast<double>(bed.tsg(a).run_ns - before) / ns, 0.28);
}

// An enable that the host does not notice, and what it takes to bring the tenant back.
TEST(ExecutorFaults, WhoDoesNotGoOnAfterAGateIsHelpedInOrderAndThatIsSaid) {
  QGPU_TRACE_SEED();
  const std::pair<fakes::FakeTsg::Lost, const char *> cases[] = {
      {fakes::FakeTsg::kUntilRung, "until it was rung again"},
      {fakes::FakeTsg::kUntilEnabled, "until it was enabled again"},
      {fakes::FakeTsg::kUntilPreempted, "until it was preempted"}};
  for (const auto &[lost, sentence] : cases)
    for (const bool alone : {true, false}) {
      Bed bed;
      bed.open();
      ASSERT_TRUE(bed.plan(QGPU_POLICY_FIXED_SHARE,
                           {tenantOf(1, 100, 300'000), tenantOf(2, 100, 300'000)}));
      const size_t a = bed.add(1, queued());
      if (!alone) bed.add(2, queued());
      bed.run(1 * kSecond);
      EXPECT_EQ(bed.count(EventKind::kNoProgress), 0u);
      bed.io.lose_next = lost;
      bed.run(1 * kSecond);
      EXPECT_EQ(bed.count(EventKind::kNoProgress), 1u) << sentence;
      const std::string said = bed.lastSentence(EventKind::kNoProgress);
      EXPECT_NE(said.find(sentence), std::string::npos) << said;
      EXPECT_NEAR(bed.shares({a}, 2 * kSecond)[0], 0.3, 0.005) << sentence;
    }
}

TEST(ExecutorFaults, WhomNothingBringsBackIsTriedAgainAndTheOthersGoOn) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(
      bed.plan(QGPU_POLICY_FIXED_SHARE, {tenantOf(1, 100, 300'000), tenantOf(2, 100, 300'000)}));
  const size_t a = bed.add(1, queued()), b = bed.add(2, queued());
  bed.run(1 * kSecond);
  for (const size_t i : {a, b}) {
    bed.io.lose_next = fakes::FakeTsg::kForEver;
    while (bed.io.lose_next) bed.run(kMilli);
    const size_t lost = bed.tsg(a).lost ? a : b;
    bed.run(5 * kSecond);
    EXPECT_NEAR(bed.shares({a + b - lost}, 2 * kSecond)[0], 0.3, 0.01);
    bed.tsg(lost).lost = fakes::FakeTsg::kUntilPreempted;
    bed.run(1500 * kMilli);
    EXPECT_EQ(bed.tsg(lost).lost, fakes::FakeTsg::kNo);
    EXPECT_EQ(bed.count(EventKind::kNoProgress), i - a + 1);
  }
}

TEST(ExecutorFaults, WhoHasNothingToDoIsNoLostTenant) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(
      bed.plan(QGPU_POLICY_FIXED_SHARE, {tenantOf(1, 100, 300'000), tenantOf(2, 100, 300'000)}));
  const size_t a = bed.add(1, synced(2000, 30'000)), b = bed.add(2, queued());
  bed.run(5 * kSecond);
  bed.tsg(a).work = {};
  bed.run(2 * kSecond);
  bed.tsg(a).work = synced(5000, 100);
  bed.run(2 * kSecond);
  EXPECT_EQ(bed.count(EventKind::kNoProgress), 0u) << bed.lastSentence(EventKind::kNoProgress);
  EXPECT_NEAR(bed.shares({b}, 2 * kSecond)[0], 0.3, 0.01);
}

// Also when nothing is known yet of where they have their objects.
TEST(ExecutorFaults, SixteenThatStartAtOnceAreSoonAllUnderControl) {
  QGPU_TRACE_SEED();
  for (const bool known : {false, true}) {
    Bed bed;
    bed.open();
    ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 100), tenantOf(2, 100)}));
    if (known) {
      bed.add(1, queued());
      bed.run(1 * kSecond);
    }
    for (int i = 0; i < 16; i++) bed.add(1 + i % 2, queued());
    for (int i = 0; i < (known ? 10 : 24); i++) {
      bed.executor->turn();
      bed.io.advance(100'000);
    }
    unsigned controlled = 0;
    for (const Event &event : bed.executor->takeEvents()) {
      if (event.kind != EventKind::kProcessControlled) continue;
      controlled++;
      EXPECT_LT(event.value_ns, 100 * kMilli) << known;  // for so long it ran as it liked
    }
    EXPECT_EQ(controlled, 16u) << known;
  }
}

// The trace names processes, not TSGs: who makes a second context is not out of control by that.
TEST(ExecutorFaults, ASecondContextIsUnderTheSameCeiling) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 100, 0, 300'000)}));
  const size_t a = bed.add(1, queued());
  fakes::FakeTsg &second = bed.io.addTsg(bed.children[a]->pid());
  second.work = queued();
  bed.run(2 * kSecond);
  const uint64_t before = bed.tsg(a).run_ns + second.run_ns;
  bed.run(5 * kSecond);
  const auto ran = static_cast<double>(bed.tsg(a).run_ns + second.run_ns - before);
  EXPECT_NEAR(ran / 5e9, 0.3, 0.02);
}

// However late it comes: who runs while all that is known of it is stopped has more.
TEST(ExecutorFaults, AContextThatIsMadeLateIsUnderTheSameCeiling) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 100, 0, 300'000)}));
  const size_t a = bed.add(1, queued());
  bed.run(20 * kSecond);
  fakes::FakeTsg &late = bed.io.addTsg(bed.children[a]->pid());
  late.work = queued();
  bed.run(3 * kSecond);
  EXPECT_EQ(bed.executor->stats().objects.size(), 2u);
  EXPECT_EQ(bed.count(EventKind::kForeignChange), 0u);
  // What it had too much until it was found is paid back.
  const uint64_t before = bed.tsg(a).run_ns + late.run_ns;
  bed.run(5 * kSecond);
  const auto ran = static_cast<double>(bed.tsg(a).run_ns + late.run_ns - before);
  EXPECT_LE(ran / 5e9, 0.31);
}

// The driver lets anybody enable any channel, and of a process one client is found.
TEST(ExecutorFaults, WhoRunsThoughStoppedIsToldOfAndStoppedAnew) {
  QGPU_TRACE_SEED();
  for (const bool enables_itself : {true, false}) {
    Bed bed;
    bed.open();
    ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 100, 0, 300'000)}));
    const size_t a = bed.add(1, queued());
    bed.run(10 * kSecond);
    EXPECT_EQ(bed.count(EventKind::kForeignChange), 0u);
    const auto pid = bed.children[a]->pid();
    if (!enables_itself) bed.io.addProcess(pid, 8, 6).work = queued();
    for (int i = 0; i < 400; i++) {
      bed.run(20 * kMilli);
      if (enables_itself) bed.tsg(a).enabled = true;
    }
    EXPECT_GE(bed.count(EventKind::kForeignChange), 1u) << enables_itself;
    EXPECT_EQ(bed.count(EventKind::kQuarantine), 1u) << enables_itself;
    EXPECT_NE(bed.lastSentence(EventKind::kQuarantine).find("ran while it was stopped"),
              std::string::npos);
    // It pays for what it had, once what it did last was found.
    if (enables_itself) {
      bed.run(kSecond);
      EXPECT_LE(bed.shares({a}, 5 * kSecond)[0], 0.1);
    }
  }
}

// What is known of it is stopped all the same, and must not stay so.
TEST(ExecutorFaults, WhoEscapedIsLetRunAtTheEnd) {
  QGPU_TRACE_SEED();
  for (const bool stops : {true, false}) {
    Bed bed;
    bed.open();
    ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 100, 0, 100'000)}));
    const size_t a = bed.add(1, queued());
    bed.run(5 * kSecond);
    bed.io.addProcess(bed.children[a]->pid(), 8, 6).work = queued();
    // One turn after the other, up to the end of the one in which it is seen.
    bool told = false;
    for (int i = 0; i < 10'000 && !told; i++) {
      const uint64_t wait_ns = bed.executor->turn();
      for (const Event &event : bed.executor->takeEvents())
        told |= event.kind == EventKind::kForeignChange;
      if (!told) bed.io.advance(wait_ns);
    }
    ASSERT_TRUE(told);
    if (stops) {
      bed.executor->stop();
    } else {
      ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 100)}));
      bed.run(kSecond);
    }
    EXPECT_TRUE(bed.tsg(a).enabled) << stops;
  }
}

// Of a kernel that nothing can stop the rest runs on.
TEST(ExecutorFaults, WhoCannotBeCutHasNotEscaped) {
  QGPU_TRACE_SEED();
  for (const uint64_t kernel_ms : {10, 40, 100, 250}) {
    Bed bed;
    bed.open();
    ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 100, 0, 300'000)}));
    fakes::FakeWork work = synced(kernel_ms * 1000);
    work.uncuttable = true;
    bed.add(1, work);
    bed.run(60 * kSecond);
    EXPECT_EQ(bed.count(EventKind::kForeignChange), 0u) << kernel_ms << " ms";
  }
}

// What the trace said last may be older than the stop.
TEST(ExecutorFaults, WhoIsStoppedBySlowControlsHasNotEscaped) {
  QGPU_TRACE_SEED();
  for (const uint32_t slow : {rm::kCtrlTsgGetTimeslice, rm::kCtrlTsgSetTimeslice,
                              rm::kCtrlFifoDisableChannels, rm::kCtrlEventBufferFlush}) {
    Bed bed;
    bed.open();
    bed.io.slow_ns[slow] = 4 * kMilli;
    std::vector<PlanTenant> tenants = equalTenants(4);
    for (PlanTenant &tenant : tenants) tenant.ceiling_ppm = 200'000;
    tenants[0].work_class = QGPU_CLASS_ONLINE;
    ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, tenants));
    for (uint32_t id = 1; id <= 4; id++)
      bed.add(id, id == 1 ? paced(300, 5000, 4) : queued());
    for (int i = 0; i < 30; i++) {
      // Its own driver may still be setting it up.
      bed.add(2, queued());
      bed.run(kSecond);
      bed.end(bed.children.size() - 1);
    }
    EXPECT_EQ(bed.count(EventKind::kForeignChange), 0u) << std::hex << slow;
  }
}

// One that shares by slices is never stopped: the trace tells that another of its contexts runs.
TEST(ExecutorFaults, AContextThatIsMadeLateIsFoundByTheTrace) {
  QGPU_TRACE_SEED();
  for (const bool told : {true, false}) {
    Bed bed;
    bed.io.names_contexts = told;
    bed.open();
    ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, equalTenants(2)));
    const size_t a = bed.add(1, queued());
    bed.add(2, queued());
    bed.run(20 * kSecond);
    bed.io.addTsg(bed.children[a]->pid()).work = queued();
    bed.run(300 * kMilli);
    EXPECT_EQ(bed.executor->stats().objects.size(), told ? 3u : 2u);
    bed.run(35 * kSecond);
    EXPECT_EQ(bed.executor->stats().objects.size(), 3u);
  }
}

// Who begins while that is lost is found all the same: where records were lost, and where there are
// no more of them.
TEST(ExecutorFaults, AContextThatIsMadeLateIsFoundWithoutItsRecord) {
  QGPU_TRACE_SEED();
  for (const bool ends : {true, false}) {
    Bed bed;
    bed.open();
    ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, equalTenants(2)));
    const size_t a = bed.add(1, queued());
    bed.add(2, queued());
    bed.run(20 * kSecond);
    bed.io.names_contexts = false;  // what is lost
    bed.io.addTsg(bed.children[a]->pid()).work = queued();
    bed.run(300 * kMilli);
    ASSERT_EQ(bed.executor->stats().objects.size(), 2u);
    if (ends)
      bed.io.record_type = 99;
    else
      bed.io.loseRecords(7);
    bed.run(ends ? 40 * kSecond : 2 * kSecond);
    EXPECT_EQ(bed.executor->stats().objects.size(), 3u) << ends;
  }
}

// And so those who are known cost nothing.
TEST(ExecutorFaults, NobodyIsLookedAtWhoHasNothingNew) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, equalTenants(16)));
  for (uint32_t id = 1; id <= 16; id++) bed.add(id, queued());
  bed.run(20 * kSecond);
  const uint64_t before = bed.io.calls[rm::kCtrlTsgGetInfo];
  bed.run(60 * kSecond);
  EXPECT_EQ(bed.io.calls[rm::kCtrlTsgGetInfo], before);
}

// It stays on the record of who is stopped, and is let run as soon as that works.
TEST(ExecutorFaults, WhoCouldNotBeLetRunIsTriedAgain) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 100, 0, 300'000)}));
  const size_t a = bed.add(1, queued());
  bed.run(2 * kSecond);
  while (bed.tsg(a).enabled) bed.run(kMilli);
  bed.io.refuse[rm::kCtrlFifoDisableChannels] = 0x1f;
  bed.run(kSecond);
  EXPECT_FALSE(bed.tsg(a).enabled);
  EXPECT_TRUE(bed.executor->stats().objects.at(0).gated);
  bed.io.refuse.clear();
  bed.run(1100 * kMilli);
  EXPECT_NEAR(bed.shares({a}, 5 * kSecond)[0], 0.3, 0.02);
}

TEST(ExecutorFaults, WhoCouldNotBeLetRunAtTheEndIsLeftToRelease) {
  QGPU_TRACE_SEED();
  for (const bool refused : {true, false}) {
    Bed bed;
    bed.open();
    ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 100, 0, 300'000)}));
    const size_t a = bed.add(1, queued());
    bed.run(2 * kSecond);
    while (bed.tsg(a).enabled) bed.run(kMilli);
    if (refused) bed.io.refuse[rm::kCtrlFifoDisableChannels] = 0x1f;
    bed.executor->stop();
    const auto entries = readGates(gatesPath(bed.folder.path(), "GPU-fake"));
    ASSERT_TRUE(entries);
    EXPECT_EQ(entries->size(), refused ? 1u : 0u);
    EXPECT_EQ(bed.tsg(a).enabled, !refused);
  }
}

TEST(ExecutorFaults, ASecondContextGetsNoSecondShare) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 100), tenantOf(2, 100)}));
  const size_t a = bed.add(1, queued()), b = bed.add(2, queued());
  bed.io.addTsg(bed.children[a]->pid()).work = queued();
  bed.run(2 * kSecond);
  EXPECT_NEAR(bed.shares({b}, 5 * kSecond)[0], 0.49, 0.03);
}

TEST(ExecutorFaults, WhoFreesItsFirstContextStaysUnderControl) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 100, 0, 300'000), tenantOf(2, 100)}));
  const size_t a = bed.add(1, queued()), b = bed.add(2, queued());
  bed.io.addTsg(bed.children[a]->pid()).work = queued();
  bed.run(2 * kSecond);
  bed.io.freeTsg(bed.children[a]->pid());
  bed.run(2 * kSecond);
  const auto got = bed.shares({a, b}, 5 * kSecond);
  EXPECT_NEAR(got[0], 0.3, 0.02);
  EXPECT_GE(got[1], 0.64);
}

}  // namespace exec_faults_test
}  // namespace qgpu::exec
