// SPDX-License-Identifier: GPL-2.0
// The TU104 layer on a chip that does not obey: every operation ends at its deadline, says what is
// wrong, and works again when it is over.
#include <gtest/gtest.h>

#include "unit/chip_driver.hpp"

extern "C" {
#include "hw/hw_ops.h"
}

namespace qgpu::fakes {
namespace tu104_trouble_test {

constexpr u32 kGraphics = 0;
constexpr u64 kMs = 1'000'000, kSubmitNs = 201 * kMs;

class Tu104InTrouble : public ::testing::Test {
 protected:
  Tu104InTrouble() : card(options()), a(card.createTsg()), b(card.createTsg()) {
    hw.ops = &tu104_ops;
    hw.io = card.io();
    EXPECT_EQ(tu104_ops.probe(&hw), 0);
    for (hw_mem &image : images) image = card.allocate(65536);
    a.channel().saturate({.duration_ns = 3 * kMs});
    b.channel().saturate({.duration_ns = 3 * kMs});
    EXPECT_EQ(put({&a, &b}), 0);
    card.advanceUntil([&] { return card.runNs(a) > 0; }, card.nowNs() + 10 * kMs);
  }
  static SimOptions options() {
    SimOptions options;
    options.mmio_read_ns = 1000;
    options.mmio_write_ns = 100;
    return options;
  }
  int put(const std::vector<SimTsg *> &tsgs) {
    std::vector<hw_channel> channels;
    channels.reserve(tsgs.size());
    std::vector<hw_image_tsg> list;
    for (SimTsg *tsg : tsgs) {
      channels.push_back(tsg->channel().hwChannel());
      list.push_back({tsg->id(), 1, 2 * kMs, &channels.back()});
    }
    u32 entries = 0;
    spare ^= 1;
    const int err =
        tu104_ops.image_write(&images[spare], list.data(), static_cast<u32>(list.size()), &entries);
    return err ? err : tu104_ops.submit(&hw, 0, &images[spare], entries);
  }
  int preempt(const SimTsg &tsg, u64 within_ns) {
    return tu104_ops.preempt(&hw, kGraphics, tsg.id(), card.nowNs() + within_ns);
  }
  hw_channel_work work(SimTsg &tsg) {
    const hw_channel channel = tsg.channel().hwChannel();
    hw_channel_work out{};
    EXPECT_EQ(tu104_ops.channel_work(&hw, channel.id, channel.inst_addr, &out), 0);
    return out;
  }
  hw_status status() {
    hw_status out{};
    EXPECT_EQ(tu104_ops.status(&hw, kGraphics, &out), 0);
    return out;
  }

  SimCard card;
  SimTsg &a, &b;
  struct hw hw {};
  hw_mem images[2];
  int spare = 0;
};

TEST_F(Tu104InTrouble, APreemptEndsAtItsDeadlineAndIsDoneWhenTheTroubleIsOver) {
  for (const Trouble &trouble :
       {Trouble{.preempt_stuck = 1}, Trouble{.pbdma_stuck = 1}, Trouble{.save_stuck = 1}}) {
    ASSERT_EQ(put({&a}), 0);
    card.advanceBy(20 * kMs);
    ASSERT_EQ(status().tsg_id, a.id());
    setTrouble(card, trouble);
    const u64 before = card.nowNs();
    EXPECT_EQ(preempt(a, 5 * kMs), -EBUSY);
    EXPECT_GE(card.nowNs() - before, 5 * kMs);
    EXPECT_LE(card.nowNs() - before, 6 * kMs);
    setTrouble(card);
    ASSERT_EQ(put({&b}), 0);
    EXPECT_EQ(preempt(a, 5 * kMs), 0);
    const u64 a_ns = card.runNs(a);
    card.advanceBy(20 * kMs);
    EXPECT_EQ(card.runNs(a), a_ns);
  }
}

// Saved means computing no more, whether the save ends or not; so a turn need not wait for it.
TEST_F(Tu104InTrouble, AStuckSaveShowsWhoIsSaved) {
  setTrouble(card, {.save_stuck = 1});
  card.advanceBy(20 * kMs);
  EXPECT_EQ(status().state, HW_ENGINE_SWITCHING);
  EXPECT_EQ(status().tsg_id, a.id());
  EXPECT_EQ(status().next_tsg_id, HW_NO_ID);
}

TEST_F(Tu104InTrouble, ASubmitThatIsNotFetchedEndsAtItsDeadlineAndIsTakenLater) {
  setTrouble(card, {.fetch_stuck = 1});
  u64 before = card.nowNs();
  EXPECT_EQ(put({&b}), -ETIMEDOUT);
  EXPECT_LE(card.nowNs() - before, kSubmitNs);
  before = card.nowNs();
  EXPECT_EQ(put({&a}), -EBUSY);
  EXPECT_LE(card.nowNs() - before, kSubmitNs);
  setTrouble(card);
  card.advanceBy(kMs);
  EXPECT_EQ(put({&a}), 0);
  EXPECT_EQ(card.protocolErrors().size(), 1u) << "the buffer in flight was written by this test";
}

TEST_F(Tu104InTrouble, AMalformedListIsReplaced) {
  setTrouble(card, {.fetch_garbled = 1});
  EXPECT_EQ(put({&b}), -ETIMEDOUT);
  setTrouble(card);
  const u64 before = card.nowNs();
  EXPECT_EQ(put({&b}), 0);
  EXPECT_LE(card.nowNs() - before, kSubmitNs);
  EXPECT_EQ(preempt(a, 5 * kMs), 0);
  const u64 b_ns = card.runNs(b);
  card.advanceBy(20 * kMs);
  EXPECT_GT(card.runNs(b), b_ns + 19 * kMs);
}

TEST_F(Tu104InTrouble, RegistersThatRefuseAreToldFromACardThatIsGone) {
  setTrouble(card, {.refused = {{0x2000, 0x2000, true}}});
  EXPECT_EQ(put({&b}), -EIO) << "dropped in silence";
  EXPECT_EQ(status().tsg_id, a.id()) << "reads are answered";
  setTrouble(card, {.refused = {{0x2000, 0x2000, false}}});
  hw_status out{};
  EXPECT_EQ(put({&b}), -EIO);
  EXPECT_EQ(preempt(a, kMs), -EIO);
  EXPECT_EQ(tu104_ops.status(&hw, kGraphics, &out), -EIO);
  setTrouble(card);
  for (const chip_presence gone : {CHIP_OFF_BUS, CHIP_POWERED_OFF}) {
    setPresence(card, gone);
    EXPECT_EQ(put({&b}), -ENODEV);
    EXPECT_EQ(preempt(a, kMs), -ENODEV);
    EXPECT_EQ(tu104_ops.status(&hw, kGraphics, &out), -ENODEV);
  }
}

TEST_F(Tu104InTrouble, AFaultIsSeenOnChannelAndEngine) {
  ASSERT_EQ(fail(card, a.channel(), CHIP_FAULT_PAGE), 0);
  EXPECT_EQ(work(a), HW_CHANNEL_FAULTED);
  EXPECT_EQ(status().state, HW_ENGINE_RUNNING) << "busy, with an error";
  EXPECT_EQ(status().tsg_id, a.id());
  EXPECT_EQ(preempt(a, 5 * kMs), -EBUSY) << "nothing saves before the fault is dealt with";
  EXPECT_EQ(recover(card, a), Recovery::kEngineReset);
  EXPECT_EQ(preempt(a, 5 * kMs), 0);
  EXPECT_EQ(put({&b}), 0);
  const u64 b_ns = card.runNs(b);
  card.advanceBy(20 * kMs);
  EXPECT_GT(card.runNs(b), b_ns + 19 * kMs);
  EXPECT_NE(work(a), HW_CHANNEL_FAULTED);
}

// Who runs on the second PBDMA, or copies on a graphics copy engine, is preempted like any.
TEST_F(Tu104InTrouble, TheSecondPbdmaAndTheGraphicsCopyEnginesArePreemptedToo) {
  SimTsg &c = card.createTsg();
  c.channel().launch({.duration_ns = 100 * kMs, .preemption = CHIP_COPY});
  hw_channel channel = c.channel().hwChannel();
  channel.runqueue = 1;
  const hw_image_tsg list = {c.id(), 1, 50 * kMs, &channel};
  u32 entries = 0;
  ASSERT_EQ(tu104_ops.image_write(&images[spare ^ 1], &list, 1, &entries), 0);
  ASSERT_EQ(tu104_ops.submit(&hw, 0, &images[spare ^ 1], entries), 0);
  card.advanceBy(10 * kMs);
  ASSERT_GT(card.runNs(c), 5 * kMs);
  EXPECT_EQ(card.engineStatus() >> 31, 0u) << "graphics has nothing to do";
  EXPECT_EQ(status().state, HW_ENGINE_RUNNING) << "but its slice is used";
  EXPECT_EQ(status().tsg_id, c.id());
  spare ^= 1;
  ASSERT_EQ(put({}), 0);
  ASSERT_EQ(preempt(c, 5 * kMs), 0);
  const u64 c_ns = card.runNs(c);
  card.advanceBy(20 * kMs);
  EXPECT_EQ(card.runNs(c), c_ns);
}

}  // namespace tu104_trouble_test
}  // namespace qgpu::fakes
