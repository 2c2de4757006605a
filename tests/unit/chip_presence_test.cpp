// SPDX-License-Identifier: GPL-2.0
// A card that is gone and comes back, a host in reset, registers that refuse.
#include <gtest/gtest.h>

#include "unit/chip_driver.hpp"

namespace qgpu::fakes {
namespace chip_presence_test {

constexpr uint64_t kMs = 1000000;
constexpr uint32_t kOnes = 0xffffffffu;

// Every register of a card that has a value after reset, but for the clock.
std::vector<uint32_t> allRegisters(SimCard &card) {
  std::vector<uint32_t> values;
  const auto take = [&](uint32_t from, uint32_t bytes) {
    for (uint32_t offset = from; offset < from + bytes; offset += 4)
      values.push_back(card.read32(offset));
  };
  take(0, 0x10);
  take(CHIP_PMC_ENABLE, 4);
  take(0x2000, 0x2000);
  take(CHIP_PTOP_DEVICE_INFO, 256);
  for (uint32_t p = 0; p < CHIP_PBDMAS; p++) take(pbdmaBase(p), 0x150);
  take(CHIP_PCCSR, 8 * CHIP_CHANNELS);
  take(CHIP_VIRTUAL_CHANNEL_CFG, 4);
  return values;
}

class Present : public ::testing::Test {
 protected:
  Present() : a(card.createTsg()), b(card.createTsg()) {
    a.channel().saturate(Kernel{3 * kMs});
    b.channel().saturate({.duration_ns = 3 * kMs, .preemption = CHIP_WFI});
    card.submit({&a, &b});
  }
  void expectBooksBalance() {
    const chip_totals t = card.totals();
    EXPECT_EQ(t.run_ns + t.switch_ns + t.idle_ns, card.nowNs());
  }

  SimCard card;
  SimTsg &a, &b;
};

TEST_F(Present, OffTheBusEverythingReadsOnesAndNothingIsWritten) {
  card.advanceBy(10 * kMs);
  setPresence(card, CHIP_OFF_BUS);
  for (const uint32_t value : allRegisters(card)) ASSERT_EQ(value, kOnes);
  card.write32(CHIP_SCHED_DISABLE, 1);
  card.write32(0x800004 + 8u * a.channel().id(), 1u << 11);
  card.write32(CHIP_RUNLIST_REGS + CHIP_RUNLIST_SUBMIT, 0);
  const uint64_t before = card.totals().run_ns;
  card.advanceBy(50 * kMs);
  EXPECT_GT(card.totals().run_ns, before + 30 * kMs) << "work goes on unseen";
  setPresence(card, CHIP_PRESENT);
  EXPECT_EQ(card.read32(CHIP_SCHED_DISABLE), 0u);
  EXPECT_EQ(card.channelStatus(a.channel()) & 1, 1u);
  EXPECT_FALSE(card.isPending());
  expectBooksBalance();
}

TEST_F(Present, ComesBackFromNoPowerWithEverythingAtReset) {
  SimCard fresh;
  fresh.write32(CHIP_VIRTUAL_CHANNEL_CFG, 0);
  const std::vector<uint32_t> reset = allRegisters(fresh);
  for (uint64_t after = 0; after < 8 * kMs; after += 97'001) {
    SimCard c;
    SimTsg &x = c.createTsg(), &y = c.createTsg(), &z = c.createTsg({.runlist = 2});
    for (SimTsg *tsg : {&x, &z}) tsg->channel().saturate(Kernel{kMs});
    y.channel().saturate({.duration_ns = kMs, .preemption = CHIP_WFI});
    c.submit({&x, &y});
    c.submit({&z}, 2);
    c.write32(CHIP_CTXSW_TIMEOUT, 17);
    c.write32(0x2180, 1u << 28);
    c.advanceBy(after);
    setPresence(c, CHIP_POWERED_OFF);
    EXPECT_EQ(c.read32(0), kOnes);
    const uint64_t ran = c.totals().run_ns + c.runNs(z);
    c.advanceBy(20 * kMs);
    EXPECT_EQ(c.totals().run_ns + c.runNs(z), ran) << "nothing runs without power";
    setPresence(c, CHIP_PRESENT);
    ASSERT_TRUE(allRegisters(c) == reset) << after;
    const chip_totals t = c.totals();
    ASSERT_EQ(t.run_ns + t.switch_ns + t.idle_ns, c.nowNs());
    // A driver starts over.
    c.write32(CHIP_VIRTUAL_CHANNEL_CFG, CHIP_VIRTUAL_CHANNEL_CFG_ON);
    SimTsg &again = c.createTsg();
    again.channel().saturate(Kernel{kMs});
    c.submit({&again});
    c.advanceBy(20 * kMs);
    ASSERT_GT(c.runNs(again), 19 * kMs) << after;
  }
}

TEST_F(Present, AHostInResetRefusesAndForgets) {
  card.advanceBy(10 * kMs);
  const uint32_t enabled = card.read32(CHIP_PMC_ENABLE);
  card.write32(CHIP_PMC_ENABLE, enabled & ~CHIP_PMC_ENABLE_PFIFO);
  for (const uint32_t offset : {0x2630u, 0x2640u, 0x2b0cu, 0x3080u, 0x800004u, 0x40108u})
    EXPECT_EQ(card.read32(offset) >> 20, 0xbadu) << std::hex << offset;
  EXPECT_EQ(card.read32(CHIP_PMC_BOOT_0) >> 20, 0x164u) << "other units answer";
  EXPECT_NE(card.read32(CHIP_PTOP_DEVICE_INFO + 4) >> 20, 0xbadu);
  card.write32(CHIP_PMC_ENABLE, enabled);
  const uint64_t ran = card.totals().run_ns;
  card.advanceBy(20 * kMs);
  EXPECT_EQ(card.totals().run_ns, ran);
  EXPECT_EQ(card.read32(0x800000 + 8u * a.channel().id()), 0u);
  expectBooksBalance();
}

TEST_F(Present, ARefusingRangeFailsAndTheRestAnswers) {
  setTrouble(card, {.refused = {{0x2630, 0x10, false}, {0x800000, 0x8000, true}}});
  EXPECT_EQ(card.read32(CHIP_SCHED_DISABLE) >> 20, 0xbadu);
  EXPECT_EQ(card.read32(0x9084), 0x2630u | 1u);
  EXPECT_EQ(card.read32(0x908c) >> 20, 0xbadu);
  EXPECT_EQ(card.read32(CHIP_PREEMPT) >> 20, 0xbadu);
  EXPECT_NE(card.engineStatus() >> 20, 0xbadu);
  EXPECT_EQ(card.channelStatus(a.channel()) & 1, 1u) << "reads are answered";
  a.channel().disable();
  EXPECT_EQ(card.channelStatus(a.channel()) & 1, 1u) << "writes are not heard";
  EXPECT_EQ(card.read32(0x9084), (0x800004u + 8u * a.channel().id()) | 3u);
  EXPECT_EQ(card.read32(0x9088), CHIP_CH_ENABLE_CLR);
  setTrouble(card);
  EXPECT_EQ(card.read32(CHIP_SCHED_DISABLE), 0u);
}

TEST_F(Present, AnAbsentRegisterIsAPriErrorUnlessTheSwitchSaysOtherwise) {
  for (const bool zero : {false, true}) {
    SimOptions options;
    options.config.sw.absent_reads_zero = zero;
    SimCard c(options);
    for (const uint32_t offset : {0x2bb0u, 0x400000u, 0x104040u, 0x40200u, 0x2001u})
      EXPECT_EQ(c.read32(offset) >> 20, zero ? 0u : 0xbadu) << std::hex << offset;
  }
}

}  // namespace chip_presence_test
}  // namespace qgpu::fakes
