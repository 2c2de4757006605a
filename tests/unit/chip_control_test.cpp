// SPDX-License-Identifier: GPL-2.0
// Preempting, disabling and holding a runlist: what stops, when, and what comes back.
#include <gtest/gtest.h>

#include "fakes/sim_card.hpp"

namespace qgpu::fakes {
namespace chip_control_test {

constexpr uint64_t kMs = 1000000, kSwitch = 100000, kLoads = 50000, kSaves = 50000;
constexpr uint32_t kPreempt = 0x2634, kRunlistPreempt = 0x2638, kSchedDisable = 0x2630;
constexpr uint32_t kPending = 1u << 20;

uint32_t engineCode(SimCard &card) { return (card.engineStatus() >> 13) & 7; }

TEST(ChipPreempt, TakesALoneTenantOffAndLetsItBack) {
  SimCard card;
  SimTsg &a = card.createTsg();
  a.channel().launch({.duration_ns = 10 * kMs});
  card.submit({&a});
  card.advanceBy(kLoads + kMs);
  card.preempt(a);
  EXPECT_EQ(card.read32(kPreempt), a.id() | 1u << 24 | kPending);
  card.advanceBy(kSaves - 1);
  EXPECT_NE(card.read32(kPreempt) & kPending, 0u);
  card.advanceBy(1);
  EXPECT_EQ(card.read32(kPreempt) & kPending, 0u);
  card.advanceBy(20 * kMs);
  EXPECT_EQ(a.channel().lastCompletionNs(), 10100 + kLoads + 10 * kMs + kSwitch);
}

TEST(ChipPreempt, HandsTheEngineToTheNextTenant) {
  SimCard card;
  SimTsg &a = card.createTsg({.timeout = 250, .scale = 6}), &b = card.createTsg();
  a.channel().saturate(Kernel{kMs});
  b.channel().saturate(Kernel{kMs});
  card.submit({&a, &b});
  card.advanceBy(kLoads + kMs);
  card.preempt(a);
  card.advanceBy(kSwitch + 500000);
  EXPECT_EQ(card.runNs(a), kMs);
  EXPECT_EQ(card.runNs(b), 500000u);
}

TEST(ChipPreempt, IsDoneAtOnceWhenTheTsgIsNotThere) {
  SimCard card;
  SimTsg &a = card.createTsg(), &b = card.createTsg();
  a.channel().saturate(Kernel{kMs});
  card.submit({&a, &b});
  card.advanceBy(kLoads + kMs);
  card.preempt(b);
  EXPECT_EQ(card.read32(kPreempt) & kPending, 0u);
  card.advanceBy(kMs);
  EXPECT_EQ(card.runNs(a), 2 * kMs);
  EXPECT_EQ(card.totals().preempts, 1u);
}

TEST(ChipPreempt, TakesAnIdleContextOffTheEngine) {
  SimCard card;
  SimTsg &a = card.createTsg();
  a.channel().launch({.duration_ns = kMs});
  card.submit({&a});
  card.advanceBy(10 * kMs);
  EXPECT_EQ(engineCode(card), 1u);
  card.preempt(a);
  EXPECT_EQ(engineCode(card), 6u);
  card.advanceBy(45000);
  EXPECT_EQ(engineCode(card), 0u);
  EXPECT_EQ(card.read32(kPreempt) & kPending, 0u);
}

TEST(ChipPreempt, OfAChannelDoesNothing) {
  SimCard card;
  SimTsg &a = card.createTsg();
  a.channel().saturate(Kernel{kMs});
  card.submit({&a});
  card.advanceBy(kLoads + kMs);
  card.write32(kPreempt, a.channel().id());
  card.write32(kPreempt, a.id() | 2u << 24);
  card.advanceBy(kMs);
  EXPECT_EQ(card.runNs(a), 2 * kMs);
}

TEST(ChipPreempt, SetsItsInterruptBitOnlyWhenUnmasked) {
  for (bool unmasked : {false, true}) {
    SimCard card;
    SimTsg &a = card.createTsg();
    a.channel().saturate(Kernel{kMs});
    card.submit({&a});
    card.advanceBy(kMs);
    if (unmasked) card.write32(0x2180, 1u << 28);
    card.preempt(a);
    card.advanceBy(kSwitch);
    EXPECT_EQ(card.read32(0x2100) >> 28 & 1, unmasked ? 1u : 0u);
    card.write32(0x2100, 1u << 28);
    EXPECT_EQ(card.read32(0x2100) >> 28 & 1, 0u);
    card.write32(kPreempt, 1u << 24 | 4000);
    EXPECT_EQ(card.read32(0x2100) >> 28 & 1, unmasked ? 1u : 0u) << "done at once";
    card.write32(0x21c0, 1u << 28);
    EXPECT_EQ(card.read32(0x2180), 0u);
  }
}

TEST(ChipPreempt, WaitsForWorkThatCannotBeCut) {
  for (uint32_t preemption : {CHIP_WFI, CHIP_CTA}) {
    SimCard card;
    SimTsg &a = card.createTsg(), &b = card.createTsg();
    for (int i = 0; i < 5; i++) a.channel().launch({10 * kMs, preemption});
    card.submit({&a, &b});
    card.advanceBy(kLoads + 3 * kMs);
    card.preempt(a);
    card.advanceBy(7 * kMs - 1);
    EXPECT_EQ(engineCode(card), 7u) << "a save that has not begun";
    EXPECT_NE(card.read32(kPreempt) & kPending, 0u);
    EXPECT_EQ(a.channel().completed(), 0u);
    card.advanceBy(1);
    EXPECT_EQ(a.channel().completed(), 1u) << "ended at its exact time";
    EXPECT_EQ(engineCode(card), 6u);
    card.advanceBy(45000);
    EXPECT_EQ(card.read32(kPreempt) & kPending, 0u);
    EXPECT_EQ(card.runNs(a), 10 * kMs);
  }
}

TEST(ChipPreempt, WorksAtEveryMomentOfASwitch) {
  for (uint64_t after = 0; after < 260000; after += 900) {
    SimCard card;
    SimTsg &a = card.createTsg(), &b = card.createTsg();
    a.channel().saturate(Kernel{400000});
    b.channel().saturate(Kernel{400000});
    card.submit({&a, &b});
    card.advanceBy(kLoads + a.sliceNs() - 70000 + after);
    card.preempt(b);
    card.preempt(a);
    const bool done = card.advanceUntil([&] { return !(card.read32(kPreempt) & kPending); },
                                        card.nowNs() + 200000);
    ASSERT_TRUE(done) << after;
    card.advanceBy(20 * kMs);
    ASSERT_GT(card.runNs(a), 7 * kMs) << after;
    ASSERT_GT(card.runNs(b), 7 * kMs) << after;
  }
}

TEST(ChipPreempt, OfADisabledTenantHoldsUntilItsDoorbellIsRung) {
  SimCard card;
  SimTsg &a = card.createTsg(), &b = card.createTsg();
  a.channel().saturate(Kernel{5 * kMs});
  card.submit({&a, &b});
  card.advanceBy(kLoads + kMs);
  a.channel().disable();
  card.advanceBy(kMs);
  EXPECT_EQ(card.runNs(a), 2 * kMs) << "disabling alone stops nothing that runs";
  card.preempt(a);
  card.advanceBy(20 * kMs);
  EXPECT_EQ(card.runNs(a), 2 * kMs);
  a.channel().enable();
  card.advanceBy(20 * kMs);
  EXPECT_EQ(card.runNs(a), 2 * kMs) << "enabling alone starts nothing";
  a.channel().ring();
  card.advanceBy(kLoads + 3 * kMs);
  EXPECT_EQ(a.channel().completed(), 1u) << "and what was cut is not lost";
}

TEST(ChipPreempt, OfADisabledTenantNeedsNoRingIfTheChipKeepsItsMark) {
  SimOptions options;
  options.config.sw.disable_keeps_pending = true;
  SimCard card(options);
  SimTsg &a = card.createTsg();
  a.channel().saturate(Kernel{5 * kMs});
  card.submit({&a});
  card.advanceBy(kLoads + kMs);
  a.channel().disable();
  card.preempt(a);
  card.advanceBy(20 * kMs);
  EXPECT_EQ(card.runNs(a), kMs);
  a.channel().enable();
  card.advanceBy(kLoads + kMs);
  EXPECT_EQ(card.runNs(a), 2 * kMs);
}

TEST(ChipDisable, OfALoneTenantDoesNotStopIt) {
  SimCard card;
  SimTsg &a = card.createTsg();
  a.channel().saturate(Kernel{kMs}, 50);
  card.submit({&a});
  card.advanceBy(kLoads + kMs);
  a.channel().disable();
  card.advanceBy(20 * kMs);
  EXPECT_EQ(card.runNs(a), 21 * kMs) << "nobody else wants the engine, so nothing switches it out";
}

TEST(ChipDisable, OfARunningTenantEndsWithItsSliceWhenAnotherWaits) {
  SimCard card;
  SimTsg &a = card.createTsg(), &b = card.createTsg();
  a.channel().saturate(Kernel{kMs});
  b.channel().saturate(Kernel{kMs});
  card.submit({&a, &b});
  card.advanceBy(kLoads + 1000);
  a.channel().disable();
  card.advanceBy(50 * kMs);
  EXPECT_EQ(card.runNs(a), a.sliceNs());
}

TEST(ChipSchedDisable, KeepsWhatRunsAndStartsNothing) {
  SimCard card;
  SimTsg &a = card.createTsg(), &b = card.createTsg();
  a.channel().saturate(Kernel{kMs});
  b.channel().saturate(Kernel{kMs});
  card.submit({&a, &b});
  card.advanceBy(kLoads + kMs / 2);
  card.write32(kSchedDisable, 1);
  card.advanceBy(50 * kMs);
  EXPECT_EQ(card.runNs(a), 50 * kMs + kMs / 2);
  EXPECT_EQ(card.runNs(b), 0u);
  card.write32(kSchedDisable, 0);
  card.advanceBy(kSwitch + kMs / 2);
  EXPECT_EQ(card.runNs(a), 50 * kMs + kMs / 2) << "its slice had long been over";
  EXPECT_EQ(card.runNs(b), kMs / 2);
}

TEST(ChipSchedDisable, HoldsAPreemptedTenantOff) {
  SimCard card;
  SimTsg &a = card.createTsg();
  a.channel().saturate(Kernel{kMs});
  card.submit({&a});
  card.advanceBy(kLoads + kMs);
  card.write32(kSchedDisable, 1);
  card.preempt(a);
  card.advanceBy(50 * kMs);
  EXPECT_EQ(card.runNs(a), kMs);
  EXPECT_EQ(engineCode(card), 0u);
  EXPECT_EQ((card.read32(0x3080) >> 13) & 7, 0u);
  card.write32(kSchedDisable, 0);
  card.advanceBy(kLoads + kMs);
  EXPECT_EQ(card.runNs(a), 2 * kMs);
}

TEST(ChipSchedDisable, StopsASwitchThatHasNotLoadedYet) {
  SimCard card;
  SimTsg &a = card.createTsg(), &b = card.createTsg();
  a.channel().saturate(Kernel{kMs});
  b.channel().saturate(Kernel{kMs});
  card.submit({&a, &b});
  card.advanceBy(kLoads + a.sliceNs() + 20000);
  card.write32(kSchedDisable, 1);
  card.advanceBy(10 * kMs);
  EXPECT_EQ(card.runNs(b), 0u);
  card.write32(kSchedDisable, 0);
  card.advanceBy(10 * kMs);
  EXPECT_GT(card.runNs(b), 3 * kMs);
}

TEST(ChipRunlistPreempt, TakesOffWhateverRuns) {
  SimCard card;
  SimTsg &a = card.createTsg({.timeout = 250, .scale = 6}), &b = card.createTsg();
  a.channel().saturate(Kernel{kMs});
  b.channel().saturate(Kernel{kMs});
  card.submit({&a, &b});
  card.advanceBy(kLoads + kMs);
  card.write32(kRunlistPreempt, 1);
  EXPECT_EQ(card.read32(kRunlistPreempt), 1u);
  card.advanceBy(kSaves);
  EXPECT_EQ(card.read32(kRunlistPreempt), 0u);
  card.advanceBy(kLoads + 500000);
  EXPECT_EQ(card.runNs(a), kMs);
  EXPECT_EQ(card.runNs(b), 500000u);
}

TEST(ChipRunlistPreempt, IsDoneAtOnceOnAnIdleRunlist) {
  SimCard card;
  card.write32(kRunlistPreempt, 0x7ff);
  EXPECT_EQ(card.read32(kRunlistPreempt), 0u);
}

TEST(ChipNext, StaysSetWhenSliceAndWorkEndTogether) {
  SimCard card;
  SimTsg &a = card.createTsg(), &b = card.createTsg();
  a.channel().launch({.duration_ns = a.sliceNs()});
  b.channel().saturate(Kernel{kMs});
  card.submit({&a, &b});
  card.advanceBy(kLoads + a.sliceNs() + kSwitch);
  EXPECT_EQ(a.channel().completed(), 1u);
  EXPECT_NE(card.channelStatus(a.channel()) & 2, 0u);
  EXPECT_EQ((card.channelStatus(a.channel()) >> 24) & 0xf, 0u) << "though it has nothing to do";
}

TEST(ChipNext, DecidesWhereATsgGoesOn) {
  for (bool cleared : {false, true}) {
    SimCard card;
    SimTsg &a = card.createTsg({.channels = 2}), &b = card.createTsg();
    a.channel(0).launch({.duration_ns = 100000});
    a.channel(1).launch({.duration_ns = 5 * kMs});
    b.channel().saturate(Kernel{kMs});
    card.submit({&a, &b});
    card.advanceBy(kLoads + a.sliceNs() + kSaves);
    a.channel(0).launch({.duration_ns = 100000});
    if (cleared) a.channel(1).enable();  // a plain store: NEXT becomes 0
    card.advanceBy(kLoads + b.sliceNs() + kSwitch + 200000);
    EXPECT_EQ(a.channel(0).completed(), cleared ? 2u : 1u);
  }
}

}  // namespace chip_control_test
}  // namespace qgpu::fakes
