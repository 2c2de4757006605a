// SPDX-License-Identifier: GPL-2.0
// Copies: on runlists of their own, and on the copy engines that share the graphics runlist.
#include <gtest/gtest.h>

#include <random>

#include "fakes/seed.hpp"
#include "unit/chip_driver.hpp"

namespace qgpu::fakes {
namespace chip_copy_test {

constexpr uint64_t kMs = 1000000, kSecond = 1000 * kMs, kCeLoad = 5000, kSwitch = 100000;
constexpr uint32_t kGrce0 = 1, kGrce1 = 2, kFirstCopy = 3, kSecondCopy = 4;

Kernel copyOf(uint64_t ns) { return {.duration_ns = ns, .preemption = CHIP_COPY}; }

uint64_t ranOn(const SimCard &card, uint32_t engine, const SimTsg &tsg) {
  uint64_t ns = 0;
  for (const Ran &r : card.records())
    if (r.engine == engine && r.tsg == tsg.id()) ns += r.to_ns - r.from_ns;
  return ns;
}

void expectBooksBalance(SimCard &card) {
  for (uint32_t engine = 0; engine < CHIP_ENGINES; engine++) {
    const chip_totals t = card.totals(engine);
    EXPECT_EQ(t.run_ns + t.switch_ns + t.idle_ns, card.nowNs()) << engine;
  }
}

TEST(ChipCopy, TheTableHasThreeCopyRunlistsAndTwoCopyEnginesOnTheGraphicsRunlist) {
  SimCard card;
  std::map<uint32_t, std::vector<uint32_t>> engines;  // by runlist
  uint32_t engine = 0, runlist = 0;
  for (uint32_t i = 0; i < CHIP_PTOP_SLOTS; i++) {
    const uint32_t word = card.read32(CHIP_PTOP_DEVICE_INFO + 4 * i);
    if ((word & 3) == 2) {
      engine = (word >> 26) & 0xf;
      runlist = (word >> 21) & 0xf;
    }
    if ((word & 3) == 3 && word >> 2 == 19) engines[runlist].push_back(engine);
  }
  EXPECT_EQ(engines[0], (std::vector<uint32_t>{kGrce0, kGrce1}));
  EXPECT_EQ(engines[1], std::vector<uint32_t>{kFirstCopy});
  EXPECT_EQ(engines[2], std::vector<uint32_t>{kSecondCopy});
  EXPECT_EQ(engines[3].size(), 1u);
}

TEST(ChipGrce, RunsACopyOfTheGraphicsRunlistWhileGraphicsStandsIdle) {
  SimCard card;
  SimTsg &a = card.createTsg();
  card.submit({&a});
  a.channel().launch({.duration_ns = kMs});
  a.channel().launch(copyOf(2 * kMs));
  a.channel().launch({.duration_ns = kMs});
  card.advanceBy(50000 + kMs + kCeLoad - 1);
  EXPECT_EQ(statusCode(card.engineStatus(kGrce0)), CHIP_STATUS_LOAD);
  EXPECT_EQ(card.engineStatus(kGrce0) >> 16 & 0xfff, a.id());
  card.advanceBy(1);
  EXPECT_EQ(card.engineStatus(kGrce0) >> 31, 1u);
  EXPECT_EQ(card.engineStatus(kGrce0) & 0xfff, a.id());
  EXPECT_EQ(card.engineStatus() >> 31, 0u) << "VALID is not running";
  EXPECT_EQ(statusCode(card.engineStatus()), CHIP_STATUS_VALID);
  card.advanceBy(10 * kMs);
  EXPECT_EQ(a.channel().completed(), 3u);
  EXPECT_EQ(ranOn(card, 0, a), 2 * kMs);
  EXPECT_EQ(ranOn(card, kGrce0, a), 2 * kMs);
  EXPECT_EQ(card.totals(0).run_ns, 2 * kMs);
  EXPECT_EQ(card.totals(kGrce0).run_ns, 2 * kMs);
  EXPECT_EQ(card.totals(kGrce0).switch_ns, kCeLoad);
  EXPECT_EQ(card.totals(0).kernels, 2u);
  EXPECT_EQ(card.totals(kGrce0).kernels, 1u);
  EXPECT_EQ(card.totals(kGrce1).idle_ns, card.nowNs());
  EXPECT_EQ(card.runNs(a), 4 * kMs);
  expectBooksBalance(card);
}

// The slice stands still while the copy engine loads, and a copy uses it up like any work.
TEST(ChipGrce, LoadsOnItsOwnTime) {
  SimCard card;
  SimTsg &a = card.createTsg(), &b = card.createTsg();
  a.channel().launch(copyOf(20 * kMs));
  b.channel().saturate(Kernel{kMs});
  card.submit({&a, &b});
  card.advanceUntil([&] { return card.runNs(b) > 0; }, kSecond);
  EXPECT_EQ(ranOn(card, kGrce0, a), a.sliceNs());
  card.advanceBy(100 * kMs);
  EXPECT_EQ(a.channel().completed(), 1u);
  EXPECT_EQ(card.totals(kGrce0).switches, (20 * kMs + a.sliceNs() - 1) / a.sliceNs())
      << "each visit brings its context anew";
  expectBooksBalance(card);
}

TEST(ChipGrce, IsPreemptedWithItsTsg) {
  for (uint64_t after = 0; after < 300'000; after += 1'777) {
    SimCard card;
    SimTsg &a = card.createTsg();
    a.channel().launch(copyOf(20 * kMs));
    card.submit({&a});
    card.advanceBy(after);
    a.channel().disable();
    card.preempt(a);
    card.advanceBy(kSwitch + kCeLoad);
    EXPECT_EQ(card.read32(CHIP_PREEMPT) >> 20 & 1, 0u) << after;
    for (const uint32_t engine : {0u, kGrce0})
      EXPECT_EQ(statusCode(card.engineStatus(engine)), CHIP_STATUS_INVALID) << after;
    const uint64_t ran = card.runNs(a);
    card.advanceBy(5 * kMs);
    EXPECT_EQ(card.runNs(a), ran);
    a.channel().enable();
    a.channel().ring();
    card.advanceBy(30 * kMs);
    EXPECT_EQ(a.channel().completed(), 1u) << after;
    EXPECT_EQ(card.runNs(a), 20 * kMs) << after;
    expectBooksBalance(card);
  }
}

// Selector 1: the second PBDMA shows the channel, the second copy engine does its copies.
TEST(ChipGrce, FollowsTheRunqueueOfItsChannel) {
  for (const uint32_t runlist : {0u, 1u}) {
    SimCard card;
    SimTsg &a = card.createTsg({.channels = 2, .runlist = runlist});
    auto entries = SimCard::entriesOf({&a});
    entries[2][0] |= CHIP_RL0_RUNQUEUE;
    card.submitEntries(entries, runlist);
    card.advanceBy(kMs);
    a.channel(1).launch(copyOf(kMs));
    card.advanceBy(kMs / 2);
    const uint32_t first = runlist ? 2 : 0;
    EXPECT_EQ(statusCode(card.read32(CHIP_PBDMA_STATUS + 4 * first)), runlist ? 1u : 0u);
    if (!runlist) {
      EXPECT_EQ(statusCode(card.read32(CHIP_PBDMA_STATUS + 4)), 1u);
      EXPECT_EQ(card.read32(pbdmaBase(1) + CHIP_PBDMA_CHANNEL), a.channel(1).id());
      EXPECT_EQ(card.engineStatus(kGrce1) >> 31, 1u);
    } else {
      EXPECT_EQ(card.engineStatus(kFirstCopy) >> 31, 1u) << "taken as 0 where there is one PBDMA";
    }
    ASSERT_EQ(fail(card, a.channel(1), CHIP_FAULT_METHOD), 0);
    EXPECT_EQ(card.read32(CHIP_INTR_PBDMA), runlist ? 1u << 2 : 1u << 1);
    card.write32(pbdmaBase(runlist ? 2 : 1) + CHIP_PBDMA_INTR_0, ~0u);
    card.advanceBy(10 * kMs);
    EXPECT_EQ(a.channel(1).completed(), 1u);
  }
}

TEST(ChipGrce, ACopyThatFailsLeavesGraphicsToTheOthers) {
  SimCard card;
  SimTsg &a = card.createTsg(), &b = card.createTsg();
  a.channel().saturate(copyOf(5 * kMs));
  b.channel().saturate(Kernel{kMs});
  card.submit({&a, &b});
  card.advanceUntil([&] { return card.runNs(a) > 0; }, kSecond);
  card.advanceBy(kMs / 2);
  ASSERT_EQ(fail(card, a.channel(), CHIP_FAULT_PAGE), 0);
  const uint64_t before = card.runNs(b);
  card.advanceBy(50 * kMs);
  EXPECT_GT(card.runNs(b), before + 49 * kMs);
  expectBooksBalance(card);
}

TEST(ChipGrce, LosesItsCopyWhenItIsReset) {
  SimCard card;
  SimTsg &a = card.createTsg();
  a.channel().launch(copyOf(5 * kMs));
  a.channel().launch({.duration_ns = kMs});
  card.submit({&a});
  card.advanceBy(2 * kMs);
  resetEngine(card, 1u << 6);
  card.advanceBy(2 * kMs);
  EXPECT_EQ(a.channel().completed(), 1u) << "the copy is gone, what follows runs";
  expectBooksBalance(card);
}

// A tenant with compute and copies, each TSG on its runlist: rotations are independent, a preempt
// of one leaves the others alone, and what each ran adds up.
TEST(ChipTsgSets, RunOnTheirRunlistsSideBySide) {
  SimCard card;
  struct Tenant {
    SimTsg *compute, *up, *down;
  };
  std::vector<Tenant> tenants;
  for (int i = 0; i < 3; i++) {
    Tenant &t =
        tenants.emplace_back(&card.createTsg({.timeout = static_cast<uint8_t>(80 * (i + 1))}),
                             &card.createTsg({.runlist = 1}), &card.createTsg({.runlist = 2}));
    t.compute->channel().saturate(Kernel{kMs / 5});
    t.up->channel().saturate(copyOf(kMs / 7));
    t.down->channel().saturate(copyOf(kMs / 3));
  }
  std::vector<SimTsg *> compute, up, down;
  for (Tenant &t : tenants) {
    compute.push_back(t.compute);
    up.push_back(t.up);
    down.push_back(t.down);
  }
  card.submit(compute);
  card.submit(up, 1);
  card.submit(down, 2);
  const uint64_t before = card.runNs(*tenants[0].up);
  for (int i = 0; i < 100; i++) {
    card.preempt(*tenants[2].compute);
    card.advanceBy(10 * kMs);
  }
  EXPECT_NEAR(static_cast<double>(card.runNs(*tenants[1].compute)) /
                  static_cast<double>(card.runNs(*tenants[0].compute)),
              2, 0.1);
  for (Tenant &t : tenants) {
    EXPECT_NEAR(static_cast<double>(card.runNs(*t.up) - before), 1e9 / 3, 2e7)
        << "nobody's copies notice";
    EXPECT_NEAR(static_cast<double>(card.runNs(*t.down)), 1e9 / 3, 2e7);
    EXPECT_EQ(ranOn(card, 0, *t.up) + ranOn(card, kSecondCopy, *t.up), 0u);
  }
  EXPECT_EQ(card.totals(0).run_ns,
            card.runNs(*compute[0]) + card.runNs(*compute[1]) + card.runNs(*compute[2]));
  expectBooksBalance(card);
}

// A copy engine's recovery is its own runlist's business.
TEST(ChipTsgSets, AFaultOnOneRunlistIsNotSeenOnTheOthers) {
  SimCard card;
  SimTsg &compute = card.createTsg(), &bad = card.createTsg({.runlist = 1}),
         &good = card.createTsg({.runlist = 1}), &other = card.createTsg({.runlist = 2});
  for (SimTsg *tsg : {&compute, &bad, &good, &other}) tsg->channel().saturate(Kernel{kMs});
  card.submit({&compute});
  card.submit({&bad, &good}, 1);
  card.submit({&other}, 2);
  card.advanceUntil([&] { return card.runNs(bad) > 0; }, kSecond);
  card.advanceBy(kMs / 2);
  ASSERT_EQ(fail(card, bad.channel(), CHIP_FAULT_METHOD), 0);
  const uint64_t from = card.nowNs(), compute_ns = card.runNs(compute),
                 other_ns = card.runNs(other);
  card.advanceBy(30 * kMs);
  EXPECT_EQ(recover(card, bad, kCopyUnits), Recovery::kLeft);
  card.submit({&good}, 1);
  card.advanceBy(30 * kMs);
  EXPECT_GT(card.runNs(good), 29 * kMs);
  EXPECT_EQ(card.runNs(compute) - compute_ns, card.nowNs() - from);
  EXPECT_EQ(card.runNs(other) - other_ns, card.nowNs() - from);
}

}  // namespace chip_copy_test
}  // namespace qgpu::fakes
