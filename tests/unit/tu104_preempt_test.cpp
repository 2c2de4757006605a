// SPDX-License-Identifier: GPL-2.0
// Preempt: asks once, only when nobody else's request is pending, and believes the status
// registers.
#include "unit/tu104_card.hpp"

namespace tu104_preempt_test {

using qgpu::fakes::Access;
using qgpu::fakes::kGraphics;

constexpr u32 kInvalid = 0, kValid = 1, kLoad = 5, kSave = 6, kSwitch = 7;
constexpr u16 kTsg = 0x123, kOther = 0x456;
constexpr u32 kRequest = kTsg | 1u << 24;

class Tu104Preempt : public qgpu::fakes::Tu104Card {
 protected:
  void SetUp() override {
    probe();
    onEngine(status(kValid, kTsg, 0, true));
    onPbdma(0, status(kValid, kTsg));
  }

  void onEngine(u32 value) { io.set(TU104_ENGINE_STATUS(kGraphics), value); }
  void onPbdma(u32 p, u32 value) { io.set(TU104_PBDMA_STATUS(p), value); }
  void leave() {
    onEngine(0);
    onPbdma(0, 0);
  }
  int preempt(u64 within_ns = 1'000'000) {
    return tu104_ops.preempt(&hw, kGraphics, kTsg, io.nowNs() + within_ns);
  }
  // A chip that obeys after @ns.
  void obeyAfter(u64 ns) {
    io.onWrite(TU104_PREEMPT, [this, ns](u32 value) {
      io.set(TU104_PREEMPT, value | TU104_PREEMPT_PENDING);
      io.at(io.nowNs() + ns, [this, value] {
        io.set(TU104_PREEMPT, value);
        leave();
      });
    });
  }
};

TEST_F(Tu104Preempt, AsksOnceAndReturnsSoonAfterTheTsgIsOff) {
  obeyAfter(50'000);
  const u64 before = io.nowNs();
  ASSERT_EQ(preempt(), 0);
  EXPECT_EQ(io.writes(), (std::vector<Access>{{Access::Write, TU104_PREEMPT, kRequest}}));
  EXPECT_GE(io.nowNs() - before, 50'000u);
  EXPECT_LE(io.nowNs() - before, 70'000u);
}

TEST_F(Tu104Preempt, AsksNothingWhenTheTsgIsOffAlready) {
  leave();
  EXPECT_EQ(preempt(), 0);
  EXPECT_TRUE(io.writes().empty());
}

TEST_F(Tu104Preempt, WaitsForSomebodyElsesRequest) {
  io.set(TU104_PREEMPT, kOther | 1u << 24 | TU104_PREEMPT_PENDING);
  io.at(io.nowNs() + 100'000, [&] { io.set(TU104_PREEMPT, kOther | 1u << 24); });
  obeyAfter(10'000);
  ASSERT_EQ(preempt(), 0);
  ASSERT_EQ(io.writes().size(), 1u);
  EXPECT_GE(io.writes()[0].at_ns, 1'000'100'000u);
}

TEST_F(Tu104Preempt, NeverWritesWhileSomebodyElsesRequestIsPending) {
  io.set(TU104_PREEMPT, kOther | 1u << 24 | TU104_PREEMPT_PENDING);
  EXPECT_EQ(preempt(), -EBUSY);
  EXPECT_TRUE(io.writes().empty());
}

TEST_F(Tu104Preempt, TakesUpItsOwnRequestOfAnEarlierCall) {
  io.set(TU104_PREEMPT, kRequest | TU104_PREEMPT_PENDING);
  io.at(io.nowNs() + 30'000, [&] { leave(); });
  EXPECT_EQ(preempt(), 0);
  EXPECT_TRUE(io.writes().empty());
}

TEST_F(Tu104Preempt, GivesUpAtItsDeadlineNotLater) {
  io.onWrite(TU104_PREEMPT,
             [&](u32 value) { io.set(TU104_PREEMPT, value | TU104_PREEMPT_PENDING); });
  const u64 before = io.nowNs();
  EXPECT_EQ(preempt(5'000'000), -EBUSY);
  EXPECT_GE(io.nowNs() - before, 5'000'000u);
  EXPECT_LE(io.nowNs() - before, 5'300'000u);
  EXPECT_EQ(io.writes().size(), 1u);
}

TEST_F(Tu104Preempt, LooksOnceMoreAfterADeadlineThatHasPassed) {
  obeyAfter(1'000);
  EXPECT_EQ(tu104_ops.preempt(&hw, kGraphics, kTsg, 0), 0);
}

TEST_F(Tu104Preempt, BelievesTheStatusRegistersNotPending) {
  io.onWrite(TU104_PREEMPT, [&](u32) {});  // PENDING reads 0 at once
  EXPECT_EQ(preempt(), -EBUSY);
}

TEST_F(Tu104Preempt, LooksAtEveryPbdmaOfTheRunlistAndAtNoOther) {
  leave();
  onPbdma(2, status(kValid, kTsg));  // serves runlist 1
  EXPECT_EQ(preempt(), 0);
  onPbdma(1, status(kValid, kTsg));  // serves runlist 0
  EXPECT_EQ(preempt(), -EBUSY);
}

// Table 4.1 of the hardware page, row by row.
TEST_F(Tu104Preempt, KnowsWhatOffMeans) {
  struct Row {
    u32 value;
    bool off_pbdma, off_engine;
  };
  const Row rows[] = {
      {status(kInvalid, kTsg, kTsg), true, true},    {status(kValid, kTsg, kOther), false, false},
      {status(kValid, kOther, kTsg), true, true},    {status(kLoad, kTsg, kOther), true, true},
      {status(kLoad, kOther, kTsg), false, false},   {status(kSave, kTsg, kOther), false, false},
      {status(kSave, kOther, kTsg), true, true},     {status(kSwitch, kTsg, kOther), false, false},
      {status(kSwitch, kOther, kTsg), false, false}, {status(kSwitch, kOther, kOther), true, false},
  };
  for (const Row &row : rows) {
    leave();
    onPbdma(0, row.value);
    EXPECT_EQ(preempt(), row.off_pbdma ? 0 : -EBUSY) << "PBDMA row " << &row - rows;
    leave();
    onEngine(row.value);
    EXPECT_EQ(preempt(), row.off_engine ? 0 : -EBUSY) << "engine row " << &row - rows;
  }
}

TEST_F(Tu104Preempt, RefusesUnknownEnginesAndIds) {
  EXPECT_EQ(tu104_ops.preempt(&hw, 9, kTsg, 0), -EINVAL);
  EXPECT_EQ(tu104_ops.preempt(&hw, kGraphics, 4096, 0), -EINVAL);
  EXPECT_TRUE(io.writes().empty());
}

TEST_F(Tu104Preempt, TellsALostCardFromARefusedRegister) {
  io.refuse(0x2634, 0x2634);
  EXPECT_EQ(preempt(), -EIO);
  io.refuse(0x3080, 0x30ff);
  EXPECT_EQ(preempt(), -EIO);
  io.heal();
  io.onWrite(TU104_PREEMPT, [&](u32) { io.loseCard(); });
  EXPECT_EQ(preempt(), -ENODEV);
}

}  // namespace tu104_preempt_test
