// SPDX-License-Identifier: GPL-2.0
// PCCSR and the doorbell: which bits act, what STATUS says, and how a ring gets lost.
#include <gtest/gtest.h>

#include "fakes/sim_card.hpp"

namespace qgpu::fakes {
namespace chip_channel_test {

constexpr uint32_t kEnable = 1u << 0, kNext = 1u << 1, kEnableSet = 1u << 10, kEnableClr = 1u << 11,
                   kForcePbdmaFault = 1u << 20, kForceEngFault = 1u << 21, kPbdmaFaulted = 1u << 22,
                   kEngFaulted = 1u << 23, kBind = 1u << 31;
constexpr uint32_t kMs = 1000000;

uint32_t inst(uint32_t channel) { return 0x800000 + 8 * channel; }
uint32_t control(uint32_t channel) { return 0x800004 + 8 * channel; }
uint32_t statusCode(SimCard &card, const SimChannel &c) {
  return (card.channelStatus(c) >> 24) & 0xf;
}

struct Row {
  const char *what;
  uint32_t before;  // written first to set the scene
  uint32_t write;
  uint32_t after;  // ENABLE, NEXT and fault bits afterwards
};

TEST(ChipChannel, ActsOnExactlyTheBitsWritten) {
  const Row rows[] = {
      {"set enables", 0, kEnableSet, kEnable},
      {"clear disables", kEnableSet, kEnableClr, 0},
      {"bit 0 is read only", 0, kEnable, 0},
      {"zero in the set bit changes nothing but NEXT", kEnableSet, 0, kEnable},
      {"set and clear together end enabled", 0, kEnableSet | kEnableClr, kEnable},
      {"NEXT is stored", 0, kNext, kNext},
      {"a plain enable store clears NEXT", kNext, kEnableSet, kEnable},
      {"a store that carries NEXT keeps it", kNext, kEnableSet | kNext, kEnable | kNext},
      {"a forced PBDMA fault shows", 0, kForcePbdmaFault, kPbdmaFaulted},
      {"a forced engine fault shows", 0, kForceEngFault, kEngFaulted},
      {"a plain store leaves faults alone", kForcePbdmaFault, kEnableSet, kEnable | kPbdmaFaulted},
      {"writing a one clears that fault", kForcePbdmaFault | kForceEngFault, kPbdmaFaulted,
       kEngFaulted},
      {"a read-modify-write loses every fault", kForcePbdmaFault | kForceEngFault,
       kPbdmaFaulted | kEngFaulted | kEnableSet, kEnable},
  };
  for (const Row &row : rows) {
    SimCard card;
    card.write32(control(7), row.before);
    card.write32(control(7), row.write);
    EXPECT_EQ(card.read32(control(7)) & (kEnable | kNext | kPbdmaFaulted | kEngFaulted), row.after)
        << row.what;
  }
}

TEST(ChipChannel, RecordsABindOfABoundChannelAndKeepsTheOldOne) {
  SimCard card;
  card.write32(inst(9), 0x1234 | kBind);
  card.write32(inst(9), 0x5678 | kBind);
  EXPECT_EQ(card.read32(0x252c), 1u);
  EXPECT_EQ(card.read32(0x2100) & 1, 1u);
  EXPECT_EQ(card.read32(inst(9)), 0x1234 | kBind);
  card.write32(0x2100, 1);
  EXPECT_EQ(card.read32(0x2100) & 1, 0u);
}

TEST(ChipChannel, RecordsABindToATargetThatDoesNotExist) {
  SimCard card;
  card.write32(inst(9), 0x1234 | 1u << 28 | kBind);
  EXPECT_EQ(card.read32(0x252c), 6u);
  EXPECT_EQ(card.read32(inst(9)), 0u);
}

TEST(ChipChannel, CannotBeUnboundWhileOnTheEngine) {
  SimCard card;
  SimTsg &tsg = card.createTsg();
  tsg.channel().saturate(Kernel{kMs});
  card.submit({&tsg});
  card.advanceBy(kMs);
  card.write32(inst(tsg.channel().id()), 0);
  EXPECT_EQ(card.read32(0x252c), 3u);
  EXPECT_NE(card.read32(inst(tsg.channel().id())) & kBind, 0u);
  card.advanceBy(10 * kMs);
  EXPECT_GT(tsg.channel().completed(), 8u) << "the channel goes on as if nothing had been written";
}

TEST(ChipChannel, CannotBeUnboundWhileItsIdleContextIsOnTheEngine) {
  SimCard card;
  SimTsg &tsg = card.createTsg();
  tsg.channel().launch({.duration_ns = kMs});
  card.submit({&tsg});
  card.advanceBy(10 * kMs);
  card.write32(inst(tsg.channel().id()), 0);
  EXPECT_EQ(card.read32(0x252c), 3u);
}

TEST(ChipChannel, CanBeUnboundOnceItIsPreemptedAndDisabled) {
  SimCard card;
  SimTsg &tsg = card.createTsg();
  tsg.channel().saturate(Kernel{kMs});
  card.submit({&tsg});
  card.advanceBy(kMs);
  tsg.channel().disable();
  card.preempt(tsg);
  card.advanceBy(kMs);
  card.write32(inst(tsg.channel().id()), 0);
  EXPECT_EQ(card.read32(0x2100) & 1, 0u);
  EXPECT_EQ(card.read32(inst(tsg.channel().id())) & kBind, 0u);
}

TEST(ChipChannel, ShowsItsWayThroughStatus) {
  SimCard card;
  SimTsg &a = card.createTsg(), &b = card.createTsg();
  EXPECT_EQ(statusCode(card, a.channel()), 0x0u) << "idle";
  a.channel().launch({.duration_ns = 10 * kMs});
  EXPECT_EQ(statusCode(card, a.channel()), 0x1u) << "pending";
  card.submit({&a, &b});
  card.advanceBy(95000);
  EXPECT_EQ(statusCode(card, a.channel()), 0x6u) << "on PBDMA and engine";
  b.channel().launch({.duration_ns = 10 * kMs});
  card.advanceBy(1048576);
  EXPECT_EQ(statusCode(card, a.channel()), 0x9u) << "cut, its context still being saved";
  card.advanceBy(100000);
  EXPECT_EQ(statusCode(card, a.channel()), 0x2u) << "pending, context to be loaded again";
  EXPECT_NE(card.channelStatus(a.channel()) & kNext, 0u) << "goes on here";
  card.advanceBy(40 * kMs);
  EXPECT_EQ(a.channel().completed(), 1u);
  EXPECT_EQ(b.channel().completed(), 1u);
  EXPECT_EQ(statusCode(card, b.channel()), 0x7u) << "out of work, context still on the engine";
  EXPECT_EQ(card.channelStatus(b.channel()) & 1u << 28, 0u) << "not busy";
  EXPECT_EQ(statusCode(card, a.channel()), 0x0u) << "idle again";
}

TEST(ChipChannel, ShowsAForcedReload) {
  SimCard card;
  SimTsg &tsg = card.createTsg();
  card.write32(control(tsg.channel().id()), 1u << 8);
  EXPECT_EQ(statusCode(card, tsg.channel()), 0x0u) << "hidden while idle";
  tsg.channel().launch({.duration_ns = kMs});
  EXPECT_EQ(statusCode(card, tsg.channel()), 0x2u);
}

struct Token {
  const char *what;
  uint32_t flip;  // bits of the right token that are wrong
};

TEST(ChipDoorbell, IgnoresATokenWithAnythingWrongInIt) {
  const Token rows[] = {{"bit 12", 1u << 12},          {"bit 15", 1u << 15},
                        {"bit 23", 1u << 23},          {"bit 31", 1u << 31},
                        {"another runlist", 1u << 16}, {"a runlist that is not there", 9u << 16},
                        {"all runlists", 15u << 16},   {"another channel", 0x800}};
  for (const Token &row : rows) {
    SimCard card;
    SimTsg &tsg = card.createTsg();
    card.submit({&tsg});
    tsg.channel().push({.duration_ns = kMs});
    tsg.channel().publish();
    card.write32(0xbb0090, tsg.channel().id() ^ row.flip);
    EXPECT_EQ(statusCode(card, tsg.channel()), 0u) << row.what;
  }
}

TEST(ChipDoorbell, OfAnUnboundChannelIsLost) {
  SimCard card;
  card.write32(control(9), kEnableSet);
  card.write32(0xbb0090, 9);
  EXPECT_EQ(card.read32(control(9)), kEnable);
}

TEST(ChipDoorbell, WorksAtBothAddresses) {
  for (uint32_t address : {0xbb0090u, 0x810090u}) {
    SimCard card;
    SimTsg &tsg = card.createTsg();
    card.submit({&tsg});
    tsg.channel().push({.duration_ns = kMs});
    tsg.channel().publish();
    card.write32(address, tsg.channel().id());
    card.advanceBy(2 * kMs);
    EXPECT_EQ(tsg.channel().completed(), 1u) << std::hex << address;
  }
}

TEST(ChipDoorbell, DoesNothingWhileDoorbellsAreOff) {
  SimCard card;
  SimTsg &tsg = card.createTsg();
  card.submit({&tsg});
  card.write32(0xb65000, 0);
  tsg.channel().launch({.duration_ns = kMs});
  card.write32(0xb65000, 1u << 31);
  card.advanceBy(10 * kMs);
  EXPECT_EQ(tsg.channel().completed(), 0u);
  tsg.channel().ring();
  card.advanceBy(10 * kMs);
  EXPECT_EQ(tsg.channel().completed(), 1u);
}

TEST(ChipDoorbell, IsLostWhenTheChannelIsDisabled) {
  SimCard card;
  SimTsg &tsg = card.createTsg();
  card.submit({&tsg});
  tsg.channel().disable();
  tsg.channel().launch({.duration_ns = kMs});
  tsg.channel().enable();
  card.advanceBy(10 * kMs);
  EXPECT_EQ(tsg.channel().completed(), 0u) << "enabling alone does not bring it back";
  tsg.channel().ring();
  card.advanceBy(10 * kMs);
  EXPECT_EQ(tsg.channel().completed(), 1u);
}

TEST(ChipDoorbell, IsKeptWhenDisabledIfTheChipIsSaidToDoThat) {
  SimOptions options;
  options.config.sw.doorbell_kept_when_disabled = true;
  SimCard card(options);
  SimTsg &tsg = card.createTsg();
  card.submit({&tsg});
  tsg.channel().disable();
  tsg.channel().launch({.duration_ns = kMs});
  card.advanceBy(10 * kMs);
  EXPECT_EQ(tsg.channel().completed(), 0u);
  tsg.channel().enable();
  card.advanceBy(10 * kMs);
  EXPECT_EQ(tsg.channel().completed(), 1u);
}

TEST(ChipDoorbell, IsNotNeededAfterEnableIfTheChipIsSaidToBeOlder) {
  SimOptions options;
  options.config.sw.enable_sets_pending = true;
  SimCard card(options);
  SimTsg &tsg = card.createTsg();
  card.submit({&tsg});
  tsg.channel().disable();
  tsg.channel().launch({.duration_ns = kMs});
  tsg.channel().enable();
  card.advanceBy(10 * kMs);
  EXPECT_EQ(tsg.channel().completed(), 1u);
}

TEST(ChipDoorbell, IsNotLostWhileTheChannelIsOnThePbdma) {
  // The ring comes at every moment of a kernel's life in turn, the last one included.
  for (uint64_t after = 0; after <= 250000; after += 1000) {
    SimCard card;
    SimTsg &tsg = card.createTsg();
    card.submit({&tsg});
    tsg.channel().launch({.duration_ns = 100000});
    card.advanceBy(after);
    tsg.channel().launch({.duration_ns = 100000});
    card.advanceBy(kMs);
    ASSERT_EQ(tsg.channel().completed(), 2u) << after << " ns after the first";
  }
}

TEST(ChipDoorbell, IsNeededForWorkThatIsOnlyPublished) {
  SimCard card;
  SimTsg &tsg = card.createTsg();
  card.submit({&tsg});
  tsg.channel().launch({.duration_ns = kMs});
  card.advanceBy(kMs / 2);
  tsg.channel().push({.duration_ns = kMs});
  tsg.channel().publish();
  card.advanceBy(10 * kMs);
  EXPECT_EQ(tsg.channel().completed(), 1u);
  tsg.channel().ring();
  card.advanceBy(10 * kMs);
  EXPECT_EQ(tsg.channel().completed(), 2u);
}

TEST(ChipDoorbell, IsNotNeededForPublishedWorkIfTheChipLooksAgain) {
  SimOptions options;
  options.config.sw.gp_put_reread = true;
  SimCard card(options);
  SimTsg &tsg = card.createTsg();
  card.submit({&tsg});
  tsg.channel().launch({.duration_ns = kMs});
  card.advanceBy(kMs / 2);
  tsg.channel().push({.duration_ns = kMs});
  tsg.channel().publish();
  card.advanceBy(10 * kMs);
  EXPECT_EQ(tsg.channel().completed(), 2u);
}

TEST(ChipDoorbell, OfAnIdleChannelCostsOneVisit) {
  SimCard card;
  SimTsg &a = card.createTsg(), &b = card.createTsg();
  a.channel().saturate(Kernel{kMs});
  card.submit({&a, &b});
  card.advanceBy(kMs);
  b.channel().ring();
  card.advanceBy(20 * kMs);
  // load of a, then a -> b -> a; b's visit runs nothing
  EXPECT_EQ(card.totals().switches, 3u);
  EXPECT_EQ(card.runNs(b), 0u);
  EXPECT_EQ(card.totals().doorbells, a.channel().completed() + 2);
}

TEST(ChipUserd, ShowsProgressAtMost100usLate) {
  SimCard card;
  SimTsg &tsg = card.createTsg();
  SimChannel &channel = tsg.channel();
  for (int i = 0; i < 40; i++) channel.push({.duration_ns = 30000});
  channel.publish();
  channel.ring();
  card.submit({&tsg});
  const uint64_t start = 10000 + 2 * 50 + 50000;  // fetch, then both loads
  for (uint64_t t = start; t < start + 40 * 30000; t += 5000) {
    card.advanceTo(t);
    const uint64_t taken = (t - start) / 30000 + 1;
    const uint64_t late = t - start < 100000 ? 0 : (t - start - 100000) / 30000 + 1;
    EXPECT_LE(channel.gpGet(), taken) << t;
    EXPECT_GE(channel.gpGet(), late) << t;
  }
}

TEST(ChipUserd, IsExactOnceTheChannelIsOffThePbdma) {
  SimCard card;
  SimTsg &tsg = card.createTsg();
  for (int i = 0; i < 3; i++) tsg.channel().push({.duration_ns = 3000});
  tsg.channel().publish();
  tsg.channel().ring();
  card.submit({&tsg});
  card.advanceBy(50000 + 3 * 3000 + 5000);
  EXPECT_EQ(tsg.channel().gpGet(), 3u);
  uint32_t gp_get;
  std::memcpy(&gp_get, static_cast<uint8_t *>(tsg.channel().instMemory().cpu) + 5 * 4, 4);
  EXPECT_EQ(gp_get, 3u) << "RAMFC";
}

TEST(ChipChannel, WithoutASignatureIsNotServed) {
  SimCard card;
  SimTsg &tsg = card.createTsg();
  std::memset(static_cast<uint8_t *>(tsg.channel().instMemory().cpu) + 4 * 4, 0, 4);
  tsg.channel().launch({.duration_ns = kMs});
  card.submit({&tsg});
  card.advanceBy(10 * kMs);
  EXPECT_EQ(tsg.channel().completed(), 0u);
  EXPECT_EQ(card.protocolErrors().size(), 1u);
}

TEST(ChipChannel, IsNotPickedWhileFaulted) {
  SimCard card;
  SimTsg &tsg = card.createTsg();
  card.submit({&tsg});
  card.write32(control(tsg.channel().id()), kForceEngFault);
  tsg.channel().launch({.duration_ns = kMs});
  card.advanceBy(5 * kMs);
  EXPECT_EQ(tsg.channel().completed(), 0u);
  card.write32(control(tsg.channel().id()), kEngFaulted);
  card.advanceBy(5 * kMs);
  EXPECT_EQ(tsg.channel().completed(), 1u);
}

}  // namespace chip_channel_test
}  // namespace qgpu::fakes
