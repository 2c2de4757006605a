// SPDX-License-Identifier: GPL-2.0
// Looking: who is on the engine, what a channel is doing, what time it is.
#include "unit/tu104_card.hpp"

namespace tu104_status_test {

using qgpu::fakes::kGraphics;

class Tu104Status : public qgpu::fakes::Tu104Card {
 protected:
  void SetUp() override { probe(); }
};

TEST_F(Tu104Status, NamesEveryStateOfAnEngine) {
  struct Row {
    u32 value;
    hw_engine_state state;
    u16 tsg, next;
  };
  const Row rows[] = {
      {status(0, 7, 8), HW_ENGINE_EMPTY, HW_NO_ID, HW_NO_ID},
      {status(1, 7, 8, true), HW_ENGINE_RUNNING, 7, HW_NO_ID},
      {status(1, 7, 8, false), HW_ENGINE_IDLE, 7, HW_NO_ID},
      {status(5, 7, 8), HW_ENGINE_SWITCHING, HW_NO_ID, 8},
      {status(6, 7, 8, true), HW_ENGINE_SWITCHING, 7, HW_NO_ID},
      {status(7, 7, 8, true), HW_ENGINE_SWITCHING, 7, 8},
      {status(1, 4095, 0, true), HW_ENGINE_RUNNING, 4095, HW_NO_ID},
  };
  for (const Row &row : rows) {
    io.set(TU104_ENGINE_STATUS(kGraphics), row.value);
    hw_status got{};
    ASSERT_EQ(tu104_ops.status(&hw, kGraphics, &got), 0);
    EXPECT_EQ(got.state, row.state) << &row - rows;
    EXPECT_EQ(got.tsg_id, row.tsg) << &row - rows;
    EXPECT_EQ(got.next_tsg_id, row.next) << &row - rows;
  }
}

TEST_F(Tu104Status, CostsOneRead) {
  io.set(TU104_ENGINE_STATUS(3), status(1, 7, 0, true));
  hw_status got{};
  ASSERT_EQ(tu104_ops.status(&hw, 3, &got), 0);
  EXPECT_EQ(io.log().size(), 1u);
  EXPECT_EQ(io.reads(0x2658), 1u);
}

// Graphics is idle, its runlist's copy engines may not be.
TEST_F(Tu104Status, WorkBesideAnIdleEngineIsWork) {
  io.set(TU104_ENGINE_STATUS(kGraphics), status(1, 7));
  hw_status got{};
  ASSERT_EQ(tu104_ops.status(&hw, kGraphics, &got), 0);
  EXPECT_EQ(got.state, HW_ENGINE_IDLE);
  EXPECT_EQ(io.log().size(), 3u) << "one read for each engine of the runlist";
  for (const u32 engine : {1u, 2u}) {
    io.set(TU104_ENGINE_STATUS(engine), status(1, 7, 0, true));
    ASSERT_EQ(tu104_ops.status(&hw, kGraphics, &got), 0);
    EXPECT_EQ(got.state, HW_ENGINE_RUNNING);
    EXPECT_EQ(got.tsg_id, 7);
    io.set(TU104_ENGINE_STATUS(engine), status(1, 8, 0, true));
    ASSERT_EQ(tu104_ops.status(&hw, kGraphics, &got), 0);
    EXPECT_EQ(got.state, HW_ENGINE_IDLE) << "of another TSG";
    io.set(TU104_ENGINE_STATUS(engine), 0);
  }
  io.set(TU104_ENGINE_STATUS(3), status(1, 7, 0, true));
  ASSERT_EQ(tu104_ops.status(&hw, kGraphics, &got), 0);
  EXPECT_EQ(got.state, HW_ENGINE_IDLE) << "on another runlist";
}

// A busy engine that reloads TSG 0xAD5 reads 0xBAD5xxxx.
TEST_F(Tu104Status, TellsAWordThatLooksLikeAnErrorFromAnError) {
  const u32 looks_bad = status(7, 9, 0xad5, true) | 1u << 29;
  ASSERT_TRUE(hw_io_bad(looks_bad));
  io.set(TU104_ENGINE_STATUS(kGraphics), looks_bad);
  hw_status got{};
  ASSERT_EQ(tu104_ops.status(&hw, kGraphics, &got), 0);
  EXPECT_EQ(got.next_tsg_id, 0xad5);
  io.refuse(0x2640, 0x26ff);
  EXPECT_EQ(tu104_ops.status(&hw, kGraphics, &got), -EIO);
  io.heal();
  io.loseCard();
  EXPECT_EQ(tu104_ops.status(&hw, kGraphics, &got), -ENODEV);
  EXPECT_EQ(tu104_ops.status(&hw, 13, &got), -EINVAL);
}

TEST_F(Tu104Status, AChangedIdentityIsALostCard) {
  io.set(TU104_ENGINE_STATUS(kGraphics), 0xffffffffu);
  hw_status got{};
  EXPECT_EQ(tu104_ops.status(&hw, kGraphics, &got), -EIO);
  io.set(TU104_PMC_BOOT_0, 0);
  EXPECT_EQ(tu104_ops.status(&hw, kGraphics, &got), -ENODEV);
}

class Tu104Channel : public Tu104Status {
 protected:
  static constexpr u16 kChannel = 0x21;
  static constexpr u64 kInst = 0x1'2345'6000;

  int look(u32 channel, hw_channel_work *out) {
    io.set(0x800000 + 8 * kChannel, 0xa0000000u | static_cast<u32>(kInst >> 12));
    io.set(0x800004 + 8 * kChannel, channel);
    return tu104_ops.channel_work(&hw, kChannel, kInst, out);
  }
};

TEST_F(Tu104Channel, KnowsEveryCode) {
  const hw_channel_work wanted[15] = {
      HW_CHANNEL_QUIET,                          // IDLE
      HW_CHANNEL_HAS_WORK, HW_CHANNEL_HAS_WORK,  // PENDING, _CTX_RELOAD
      HW_CHANNEL_HAS_WORK, HW_CHANNEL_HAS_WORK,  // PENDING_ACQUIRE, _CTX_RELOAD
      HW_CHANNEL_HAS_WORK, HW_CHANNEL_HAS_WORK,  // ON_PBDMA, ON_PBDMA_AND_ENG
      HW_CHANNEL_QUIET,                          // ON_ENG
      HW_CHANNEL_HAS_WORK, HW_CHANNEL_HAS_WORK,  // ON_ENG_PENDING_ACQUIRE, ON_ENG_PENDING
      HW_CHANNEL_HAS_WORK, HW_CHANNEL_HAS_WORK,  // ON_PBDMA_CTX_RELOAD, ON_PBDMA_AND_ENG_...
      HW_CHANNEL_QUIET,                          // ON_ENG_CTX_RELOAD
      HW_CHANNEL_HAS_WORK, HW_CHANNEL_HAS_WORK,  // ON_ENG_PENDING_..., ON_ENG_PENDING_ACQ_...
  };
  for (u32 code = 0; code < 15; code++) {
    hw_channel_work got{};
    ASSERT_EQ(look(1u | code << 24, &got), 0);
    EXPECT_EQ(got, wanted[code]) << code;
    ASSERT_EQ(look(code << 24, &got), 0);
    EXPECT_EQ(got, HW_CHANNEL_DISABLED) << code;
    for (u32 fault : {1u << 22, 1u << 23}) {
      ASSERT_EQ(look(1u | code << 24 | fault, &got), 0);
      EXPECT_EQ(got, HW_CHANNEL_FAULTED) << code;
    }
  }
  for (u32 code : {7u, 0xcu}) {
    hw_channel_work got{};
    ASSERT_EQ(look(1u | code << 24 | 1u << 28, &got), 0);
    EXPECT_EQ(got, HW_CHANNEL_HAS_WORK) << "on the engine and busy, " << code;
  }
}

TEST_F(Tu104Channel, IsNeverTakenForTheNextUserOfItsId) {
  hw_channel_work got{};
  ASSERT_EQ(look(1, &got), 0);
  EXPECT_EQ(tu104_ops.channel_work(&hw, kChannel, kInst + 0x1000, &got), -ESTALE);
  io.set(0x800000 + 8 * kChannel, static_cast<u32>(kInst >> 12));  // not bound
  EXPECT_EQ(tu104_ops.channel_work(&hw, kChannel, kInst, &got), -ESTALE);
}

TEST_F(Tu104Channel, ReadsTwoRegistersAndWritesNone) {
  hw_channel_work got{};
  ASSERT_EQ(look(1, &got), 0);
  EXPECT_EQ(io.log().size(), 2u);
  EXPECT_TRUE(io.writes().empty());
}

TEST_F(Tu104Channel, AnInstanceAddressMayLookLikeAnError) {
  const u64 inst = 0xad'1234'5000;
  io.set(0x800000 + 8 * kChannel, 0x80000000u | 3u << 28 | static_cast<u32>(inst >> 12));
  io.set(0x800004 + 8 * kChannel, 1);
  ASSERT_TRUE(hw_io_bad(io.get(0x800000 + 8 * kChannel)));
  hw_channel_work got{};
  EXPECT_EQ(tu104_ops.channel_work(&hw, kChannel, inst, &got), 0);
  io.refuse(0x800000, 0x807fff);
  EXPECT_EQ(tu104_ops.channel_work(&hw, kChannel, inst, &got), -EIO);
  io.heal();
  io.loseCard();
  EXPECT_EQ(tu104_ops.channel_work(&hw, kChannel, inst, &got), -ENODEV);
  EXPECT_EQ(tu104_ops.channel_work(&hw, 4096, inst, &got), -EINVAL);
}

TEST_F(Tu104Status, TimeIsOneNumberAlsoWhenTheLowWordWraps) {
  io.set(TU104_PTIMER_TIME_1, 5);
  io.script(TU104_PTIMER_TIME_1, {4, 5});
  io.script(TU104_PTIMER_TIME_0, {0xffffffe0u, 0x40});
  u64 time_ns = 0;
  ASSERT_EQ(tu104_ops.time_ns(&hw, &time_ns), 0);
  EXPECT_EQ(time_ns, (5ull << 32) + 0x40);
}

TEST_F(Tu104Status, TimeMayLookLikeAnErrorInItsLowWord) {
  io.set(TU104_PTIMER_TIME_1, 4);
  io.set(TU104_PTIMER_TIME_0, 0xbad12340u);
  u64 time_ns = 0;
  ASSERT_EQ(tu104_ops.time_ns(&hw, &time_ns), 0);
  EXPECT_EQ(time_ns, 0x4'bad1'2340ull);
  io.refuse(0x9400, 0x9410);
  EXPECT_EQ(tu104_ops.time_ns(&hw, &time_ns), -EIO);
  io.heal();
  io.loseCard();
  EXPECT_EQ(tu104_ops.time_ns(&hw, &time_ns), -ENODEV);
}

}  // namespace tu104_status_test
