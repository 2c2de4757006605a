// SPDX-License-Identifier: GPL-2.0
// The time limit of a context switch: when it is found, whom it blames, how it ends.
#include <gtest/gtest.h>

#include "unit/chip_driver.hpp"

namespace qgpu::fakes {
namespace chip_ctxsw_test {

constexpr uint64_t kMs = 1000000, kSecond = 1000 * kMs, kUnit = 1024;
constexpr uint32_t kOn = 1u << 31;

struct Info {
  uint32_t previous, state, next, status;
};

class Ctxsw : public ::testing::Test {
 protected:
  Ctxsw() : a(card.createTsg()), b(card.createTsg()) {
    card.submit({&a, &b});
    card.write32(CHIP_CTXSW_TIMEOUT, kOn | 100'000);  // 102.4 ms
  }
  Info info() {
    const uint32_t w = card.read32(CHIP_CTXSW_TIMEOUT_INFO);
    return {w & 0x3fff, (w >> 14) & 3, (w >> 16) & 0x3fff, w >> 30};
  }
  bool timedOut() {
    const uint32_t bits = card.read32(CHIP_INTR_CTXSW);
    EXPECT_EQ(card.read32(CHIP_INTR_0) >> 1 & 1, bits != 0);
    return bits == 1;
  }

  SimCard card;
  SimTsg &a, &b;
};

TEST_F(Ctxsw, IsOnForFourSecondsAfterReset) {
  SimCard fresh;
  EXPECT_EQ(fresh.read32(CHIP_CTXSW_TIMEOUT), 0x3fffffu | kOn);
}

TEST_F(Ctxsw, FindsWorkThatCannotBeCut) {
  a.channel().launch({.duration_ns = kSecond, .preemption = CHIP_WFI});
  b.channel().saturate(Kernel{kMs});
  // The slice ends, the PBDMA saves, the engine is asked.
  card.advanceUntil([&] { return statusCode(card.engineStatus()) == 7; }, kSecond);
  card.advanceBy(5000);
  card.advanceBy(100'000 * kUnit - 1);
  EXPECT_FALSE(timedOut());
  card.advanceBy(1);
  EXPECT_TRUE(timedOut());
  EXPECT_EQ(info().previous, a.id());
  EXPECT_EQ(info().next, b.id());
  EXPECT_EQ(info().state, 3u) << "the save has not begun";
  EXPECT_EQ(info().status, 0u) << "still waiting: the blame is right";
  card.write32(CHIP_INTR_CTXSW, 1);
  EXPECT_FALSE(timedOut());
  card.advanceBy(2 * kSecond);
  EXPECT_FALSE(timedOut()) << "once a switch";
  EXPECT_EQ(info().status, 2u) << "it came after all";
  EXPECT_GT(card.runNs(b), 0u);
}

TEST_F(Ctxsw, FindsASaveAndALoadThatDoNotEnd) {
  a.channel().saturate(Kernel{kMs});
  b.channel().saturate(Kernel{kMs});
  card.advanceBy(500'000);
  setTrouble(card, {.save_stuck = 1});
  card.advanceBy(200 * kMs);
  EXPECT_TRUE(timedOut());
  EXPECT_EQ(info().state, 2u);
  EXPECT_EQ(info().previous, a.id());
  card.write32(CHIP_INTR_CTXSW, 1);
  setTrouble(card, {.load_stuck = 1});
  card.advanceBy(kMs);
  EXPECT_EQ(info().status, 2u);
  card.advanceBy(200 * kMs);
  EXPECT_TRUE(timedOut());
  EXPECT_EQ(info().state, 1u);
  EXPECT_EQ(info().next, b.id()) << "a load is the next one's fault";
  setTrouble(card);
  card.advanceBy(20 * kMs);
  EXPECT_EQ(info().status, 2u);
  EXPECT_GT(card.runNs(b), 5 * kMs);
}

TEST_F(Ctxsw, IsSilentWhenDetectionIsOffAndActsAtOnceWhenSwitchedOnLate) {
  card.write32(CHIP_CTXSW_TIMEOUT, 100'000);
  a.channel().launch({.duration_ns = 10 * kSecond, .preemption = CHIP_WFI});
  b.channel().saturate(Kernel{kMs});
  card.advanceBy(kSecond);
  EXPECT_FALSE(timedOut());
  card.write32(CHIP_CTXSW_TIMEOUT, kOn | 100'000);
  card.advanceBy(1);
  EXPECT_TRUE(timedOut());
}

TEST_F(Ctxsw, SaysThatTheEngineWasReset) {
  a.channel().launch({.duration_ns = 10 * kSecond, .preemption = CHIP_WFI});
  b.channel().saturate(Kernel{kMs});
  card.advanceBy(kSecond);
  resetEngine(card, 1u << 12);
  EXPECT_EQ(info().status, 1u);
  card.advanceBy(10 * kMs);
  EXPECT_GT(card.runNs(b), 5 * kMs);
  EXPECT_EQ(a.channel().completed(), 0u);
}

TEST_F(Ctxsw, SaysThatNobodyWantsTheSwitchAnyMore) {
  a.channel().launch({.duration_ns = 10 * kSecond, .preemption = CHIP_WFI});
  b.channel().launch({.duration_ns = kMs});
  card.advanceBy(kSecond);
  EXPECT_TRUE(timedOut());
  card.submit({&a});
  EXPECT_EQ(info().status, 3u);
}

TEST_F(Ctxsw, NeverComesForWorkThatIsCutInTime) {
  a.channel().saturate(Kernel{20 * kMs});
  b.channel().saturate({.duration_ns = 90 * kMs, .preemption = CHIP_WFI});
  card.advanceBy(20 * kSecond);
  EXPECT_FALSE(timedOut());
}

}  // namespace chip_ctxsw_test
}  // namespace qgpu::fakes
