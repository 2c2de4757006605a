// SPDX-License-Identifier: GPL-2.0
// Troubles of a runlist: for as long as they last, and not on other runlists.
#include <gtest/gtest.h>

#include <random>

#include "fakes/seed.hpp"
#include "unit/chip_driver.hpp"

namespace qgpu::fakes {
namespace chip_trouble_test {

constexpr uint64_t kMs = 1000000, kSecond = 1000 * kMs;
constexpr uint32_t kPreemptPending = 1u << 20;

class Troubled : public ::testing::Test {
 protected:
  Troubled() : a(card.createTsg()), b(card.createTsg()), copier(card.createTsg({.runlist = 1})) {
    for (SimTsg *tsg : {&a, &b, &copier}) tsg->channel().saturate(Kernel{3 * kMs});
    card.submit({&a, &b});
    card.submit({&copier}, 1);
    card.advanceUntil([&] { return card.runNs(a) > 0; }, kSecond);
    card.advanceBy(kMs / 2);
  }
  ~Troubled() override {
    for (const uint32_t engine : {0u, 1u, 2u, 3u}) {
      const chip_totals t = card.totals(engine);
      EXPECT_EQ(t.run_ns + t.switch_ns + t.idle_ns, card.nowNs());
    }
  }
  uint64_t ranIn(const SimTsg &tsg, uint64_t ns) {
    const uint64_t before = card.runNs(tsg);
    card.advanceBy(ns);
    return card.runNs(tsg) - before;
  }
  // Both run again, and soon; the other runlist never noticed.
  void expectOver() {
    setTrouble(card);
    const uint64_t b_ns = card.runNs(b), a_ns = card.runNs(a);
    EXPECT_GT(ranIn(copier, 50 * kMs), 49 * kMs);
    EXPECT_GT(card.runNs(b), b_ns + 15 * kMs);
    EXPECT_GT(card.runNs(a), a_ns + 15 * kMs);
  }

  SimCard card;
  SimTsg &a, &b, &copier;
};

TEST_F(Troubled, APreemptThatIsNotHeardStaysPendingWhoeverLeaves) {
  setTrouble(card, {.preempt_stuck = 1});
  card.preempt(a);
  EXPECT_GT(ranIn(copier, 100 * kMs), 99 * kMs);
  EXPECT_EQ(card.read32(CHIP_PREEMPT) & kPreemptPending, kPreemptPending);
  EXPECT_GT(card.runNs(b), 40 * kMs) << "slices end as ever";
  card.preempt(copier);
  EXPECT_GE(ranIn(copier, kMs), 9 * kMs / 10) << "another runlist hears";
  expectOver();
  EXPECT_EQ(card.read32(CHIP_PREEMPT) & kPreemptPending, 0u);
}

TEST_F(Troubled, APreemptThatWasNotHeardIsNotHeldAgainstAnotherTsg) {
  setTrouble(card, {.preempt_stuck = 1});
  card.preempt(a);
  card.advanceUntil(
      [&] {
        return (card.engineStatus() & 0xfff) == b.id() && statusCode(card.engineStatus()) == 1;
      },
      kSecond);
  setTrouble(card);
  EXPECT_EQ(card.read32(CHIP_PREEMPT) & kPreemptPending, 0u);
  EXPECT_EQ(ranIn(b, kMs / 2), kMs / 2);
}

TEST_F(Troubled, APbdmaThatDoesNotLetGoStopsItsRunlist) {
  setTrouble(card, {.pbdma_stuck = 1});
  card.advanceBy(2 * kMs);
  EXPECT_EQ(ranIn(b, 100 * kSecond) + ranIn(a, kMs), 0u);
  EXPECT_EQ(statusCode(card.read32(CHIP_PBDMA_STATUS)), CHIP_STATUS_SAVE);
  expectOver();
}

TEST_F(Troubled, AnEngineThatDoesNotSaveOrLoadStopsItsRunlist) {
  for (const Trouble &trouble : {Trouble{.save_stuck = 1}, Trouble{.load_stuck = 1}}) {
    setTrouble(card, trouble);
    card.advanceBy(2 * kMs);
    EXPECT_EQ(ranIn(b, 100 * kSecond) + ranIn(a, kMs), 0u);
    EXPECT_EQ(statusCode(card.engineStatus()),
              trouble.save_stuck ? CHIP_STATUS_SAVE : CHIP_STATUS_LOAD);
    expectOver();
  }
}

TEST_F(Troubled, AListThatIsNeverFetchedLeavesTheRunlistAsTheSubmitFoundIt) {
  setTrouble(card, {.fetch_stuck = 1});
  card.submitEntries(card.entriesOf({&b, &a}));
  card.advanceBy(100 * kSecond);
  EXPECT_TRUE(card.isPending());
  EXPECT_EQ(card.runNs(b), 0u) << "nobody is chosen from the old list";
  expectOver();
  EXPECT_FALSE(card.isPending());
}

TEST_F(Troubled, AGarbledListIsMalformed) {
  setTrouble(card, {.fetch_garbled = 1});
  card.submitEntries(card.entriesOf({&b, &a}));
  card.advanceBy(50 * kMs);
  EXPECT_EQ(card.read32(CHIP_SCHED_ERROR), CHIP_SCHED_ERROR_BAD_TSG);
  EXPECT_TRUE(card.isPending());
  EXPECT_EQ(card.runNs(b), 0u);
  setTrouble(card);
  card.submitEntries(card.entriesOf({&b, &a}));
  expectOver();
}

TEST_F(Troubled, ALateDoorbellActsWhenItArrives) {
  SimTsg &c = card.createTsg();
  card.submit({&c});
  card.preempt(a);
  card.advanceBy(kMs);
  setTrouble(card, {.doorbell_late_ns = 700'000});
  c.channel().launch({.duration_ns = kMs});
  card.advanceBy(699'999);
  EXPECT_EQ((card.channelStatus(c.channel()) >> 24) & 0xf, 0u);
  card.advanceBy(1);
  EXPECT_NE((card.channelStatus(c.channel()) >> 24) & 0xf, 0u);
  card.advanceBy(5 * kMs);
  EXPECT_EQ(c.channel().completed(), 1u);
}

// None is lost or overtakes another, however many there are and whatever becomes of the delay.
TEST_F(Troubled, LateDoorbellsKeepTheirOrderAndAllArrive) {
  QGPU_TRACE_SEED();
  std::mt19937_64 random(seed());
  const uint64_t before = card.totals(0).doorbells, from = a.channel().completed();
  uint64_t rung = 0;
  a.channel().stop();
  for (int i = 0; i < 20'000; i++) {
    if (random() % 100 == 0)
      setTrouble(card, {.doorbell_late_ns = static_cast<u32>(random() % (3 * kMs))});
    a.channel().ring();
    rung++;
    if (random() % 7 == 0) card.advanceBy(random() % 20'000);
  }
  setTrouble(card);
  card.advanceBy(10 * kMs);
  // b's own rings are counted as well
  EXPECT_GE(card.totals(0).doorbells - before, rung);
  EXPECT_GE(a.channel().completed(), from);
}

// Whatever comes and goes in whatever order, when it is over everybody runs.
TEST_F(Troubled, NobodyIsLeftStoppedByTroublesThatComeAndGo) {
  QGPU_TRACE_SEED();
  std::mt19937_64 random(seed());
  for (int i = 0; i < 3'000; i++) {
    const auto mask = [&] { return static_cast<u32>(random() % 4 == 0 ? random() % 4 : 0); };
    setTrouble(card, {.preempt_stuck = mask(),
                      .pbdma_stuck = mask(),
                      .save_stuck = mask(),
                      .load_stuck = mask(),
                      .fetch_stuck = mask(),
                      .fetch_garbled = mask(),
                      .doorbell_late_ns = random() % 2 ? static_cast<u32>(random() % kMs) : 0});
    if (random() % 3 == 0) card.preempt(random() % 2 ? a : b);
    if (random() % 5 == 0) card.write32(CHIP_RUNLIST_PREEMPT, static_cast<u32>(random() % 4));
    if (random() % 4 == 0) card.submitEntries(card.entriesOf({&b, &a}));
    if (random() % 9 == 0) resetEngine(card, random() % 2 ? 1u << 12 : 1u << 21);
    card.advanceBy(random() % (2 * kMs));
    if (i % 50) continue;
    setTrouble(card);
    card.submitEntries(card.entriesOf({&b, &a}));
    for (SimTsg *tsg : {&a, &b, &copier}) tsg->channel().ring();
    card.advanceBy(20 * kMs);
    const uint64_t before[] = {card.runNs(a), card.runNs(b), card.runNs(copier)};
    card.advanceBy(20 * kMs);
    // a reset loses the kernels on an engine; who has none left has nothing to run
    ASSERT_TRUE(card.runNs(a) > before[0] ||
                a.channel().gpGet() == (a.channel().launched() & 1023));
    ASSERT_TRUE(card.runNs(b) > before[1] ||
                b.channel().gpGet() == (b.channel().launched() & 1023));
    for (SimTsg *tsg : {&a, &b, &copier})
      while (tsg->channel().launched() - tsg->channel().completed() < 900 &&
             tsg->channel().gpGet() == (tsg->channel().launched() & 1023))
        tsg->channel().launch({.duration_ns = 3 * kMs});
  }
}

}  // namespace chip_trouble_test
}  // namespace qgpu::fakes
