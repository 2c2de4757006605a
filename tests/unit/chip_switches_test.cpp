// SPDX-License-Identifier: GPL-2.0
// Each point that the sources leave open, both ways: the model keeps its books and its laziness,
// who is let run runs, and the switch does what its name says.
#include "unit/chip_switches.hpp"

#include <gtest/gtest.h>

#include "fakes/seed.hpp"
#include "unit/chip_story.hpp"

namespace qgpu::fakes {
namespace chip_switches_test {

constexpr uint64_t kMs = 1000000;

class EachSwitch : public ::testing::TestWithParam<std::tuple<ChipSwitch, bool>> {
 protected:
  EachSwitch() { options_.config.sw.*std::get<0>(GetParam()).member = std::get<1>(GetParam()); }
  SimOptions options_;
};

TEST_P(EachSwitch, KeepsBooksAndLazinessWhateverHappens) {
  QGPU_TRACE_SEED();
  for (uint64_t s = seed(); s < seed() + 6; s++) {
    const Story unwatched = Actor(s, false, options_.config.sw).play(150);
    const Story watched = Actor(s, true, options_.config.sw).play(150);
    ASSERT_TRUE(unwatched == watched) << "QGPU_SEED=" << s;
    ASSERT_FALSE(HasFailure()) << "QGPU_SEED=" << s;
  }
}

// Slices are kept, a disabled tenant is stopped and comes back, a submit with a preempt cuts.
TEST_P(EachSwitch, LeavesWhatDriversRelyOn) {
  SimCard card(options_);
  SimTsg &a = card.createTsg({.timeout = 240}), &b = card.createTsg({.timeout = 80});
  for (SimTsg *tsg : {&a, &b}) tsg->channel().saturate(Kernel{kMs / 3});
  card.submit({&a, &b});
  card.advanceBy(500 * kMs);
  EXPECT_NEAR(static_cast<double>(card.runNs(a)) / static_cast<double>(card.runNs(b)), 3, 0.1);
  a.channel().disable();
  card.preempt(a);
  card.advanceBy(kMs);
  uint64_t a_ns = card.runNs(a), b_ns = card.runNs(b);
  card.advanceBy(20 * kMs);
  EXPECT_EQ(card.runNs(a), a_ns);
  EXPECT_GT(card.runNs(b), b_ns + 18 * kMs);
  a.channel().enable();
  a.channel().ring();
  card.submit({&a});
  card.preempt(b);
  card.advanceBy(kMs);
  a_ns = card.runNs(a), b_ns = card.runNs(b);
  card.advanceBy(20 * kMs);
  EXPECT_GT(card.runNs(a), a_ns + 18 * kMs);
  EXPECT_EQ(card.runNs(b), b_ns);
  EXPECT_TRUE(card.protocolErrors().empty());
  EXPECT_EQ(card.read32(CHIP_INTR_0) & (CHIP_INTR_BIND_ERROR | CHIP_INTR_SCHED_ERROR), 0u);
}

// Faults are recovered from by the one sequence there is.
TEST_P(EachSwitch, LetsARecoveryGiveTheRunlistBack) {
  for (const enum chip_fault fault :
       {CHIP_FAULT_PAGE, CHIP_FAULT_EXCEPTION, CHIP_FAULT_PBDMA_PAGE, CHIP_FAULT_METHOD}) {
    SimCard card(options_);
    SimTsg &a = card.createTsg(), &b = card.createTsg();
    for (SimTsg *tsg : {&a, &b}) tsg->channel().saturate(Kernel{kMs / 3});
    card.submit({&a, &b});
    card.advanceUntil([&] { return card.runNs(a) > 0; }, 10 * kMs);
    ASSERT_EQ(fail(card, a.channel(), fault), 0);
    card.advanceBy(5 * kMs);
    EXPECT_NE(recover(card, a), Recovery::kGaveUp) << fault;
    card.submit({&b});
    const uint64_t b_ns = card.runNs(b);
    card.advanceBy(20 * kMs);
    EXPECT_GT(card.runNs(b), b_ns + 18 * kMs) << fault;
  }
}

INSTANTIATE_TEST_SUITE_P(Both, EachSwitch,
                         ::testing::Combine(::testing::ValuesIn(kChipSwitches), ::testing::Bool()),
                         nameOfSwitch);

// --- what those switches do that no other file tests ---

SimOptions with(bool chip_switches::*member, bool on) {
  SimOptions options;
  options.config.sw.*member = on;
  return options;
}

TEST(ChipSwitch, TheLastOrTheFirstOfTwoSubmitsWins) {
  for (const bool first : {false, true}) {
    SimCard card(with(&chip_switches::pending_submit_kept, first));
    SimTsg &a = card.createTsg(), &b = card.createTsg();
    for (SimTsg *tsg : {&a, &b}) tsg->channel().saturate(Kernel{kMs});
    card.submitEntries(card.entriesOf({&a}));
    card.advanceBy(5000);
    card.submitEntries(card.entriesOf({&b}));
    card.advanceBy(20 * kMs);
    EXPECT_FALSE(card.isPending());
    EXPECT_EQ(card.runNs(a) > 0, first);
    EXPECT_EQ(card.runNs(b) > 0, !first);
    EXPECT_EQ(card.protocolErrors().size(), 1u) << "a mistake either way";
  }
}

TEST(ChipSwitch, AnOffsetSaysWhereANewListBeginsOrNothing) {
  for (const bool ignored : {false, true}) {
    SimCard card(with(&chip_switches::submit_offset_ignored, ignored));
    SimTsg &a = card.createTsg(), &b = card.createTsg();
    for (SimTsg *tsg : {&a, &b}) tsg->channel().saturate(Kernel{kMs});
    card.submitEntries(card.entriesOf({&a, &b}), 0, 2);
    card.advanceBy(kMs / 2);
    EXPECT_EQ(card.runNs(ignored ? b : a), 0u);
    EXPECT_GT(card.runNs(ignored ? a : b), 0u);
  }
}

TEST(ChipSwitch, WhereAListWasCutIsRecordedOrNot) {
  for (const bool silent : {false, true}) {
    SimCard card(with(&chip_switches::preempted_not_recorded, silent));
    SimTsg &a = card.createTsg();
    a.channel().saturate(Kernel{kMs});
    card.submit({&a});
    card.advanceBy(kMs);
    card.submit({&a});
    EXPECT_EQ(card.read32(0x2b0c), silent ? 0u : a.id() | 1u << 14);
  }
}

TEST(ChipSwitch, ASecondPreemptRunsBesideTheFirstOrInsteadOfIt) {
  for (const bool replaces : {false, true}) {
    SimCard card(with(&chip_switches::preempt_replaces, replaces));
    SimTsg &a = card.createTsg(), &b = card.createTsg({.runlist = 1});
    a.channel().launch({.duration_ns = 30 * kMs, .preemption = CHIP_WFI});
    b.channel().saturate(Kernel{kMs});
    card.submit({&a});
    card.submit({&b}, 1);
    card.advanceBy(kMs);
    card.preempt(a);
    card.preempt(b);
    card.advanceBy(kMs);
    EXPECT_EQ(card.read32(CHIP_PREEMPT) >> 20 & 1, replaces ? 0u : 1u);
    card.advanceBy(50 * kMs);
    EXPECT_EQ(card.read32(CHIP_PREEMPT) >> 20 & 1, 0u);
  }
}

TEST(ChipSwitch, AnIdlePbdmaShowsNothingOrTheLastTsg) {
  for (const bool valid : {false, true}) {
    SimCard card(with(&chip_switches::idle_pbdma_stays_valid, valid));
    SimTsg &a = card.createTsg();
    a.channel().launch({.duration_ns = kMs});
    card.submit({&a});
    card.advanceBy(10 * kMs);
    EXPECT_EQ(statusCode(card.read32(CHIP_PBDMA_STATUS)), valid ? 1u : 0u);
    EXPECT_EQ(card.engineStatus() >> 31, 0u);
    card.preempt(a);
    card.advanceBy(kMs);
    EXPECT_EQ(statusCode(card.read32(CHIP_PBDMA_STATUS)), 0u) << "off is off";
  }
}

}  // namespace chip_switches_test
}  // namespace qgpu::fakes
