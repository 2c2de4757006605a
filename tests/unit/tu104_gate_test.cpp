// SPDX-License-Identifier: GPL-2.0
// Gates of channels: which words are written, to whom never, and what each costs.
#include "unit/tu104_card.hpp"

namespace tu104_gate_test {

using qgpu::fakes::Access;

constexpr u32 kInst = 0x800000 + 8 * 5, kWord = kInst + 4, kDoorbell = 0xbb0090;
constexpr u32 kEnabled = 1, kNext = 2, kSet = 1u << 10, kClear = 1u << 11;
constexpr u32 kPbdmaFault = 1u << 22, kEngineFault = 1u << 23;

class Tu104Gate : public qgpu::fakes::Tu104Card {
 protected:
  void SetUp() override {
    probe();
    channel.id = 5;
    channel.inst_addr = 0x1234'5000;
    io.set(kInst, 1u << 31 | 0x12345);
    // ENABLE follows SET and CLR.
    io.onWrite(kWord, [this](u32 value) { io.set(kWord, value & kSet ? kEnabled : 0); });
  }
  int gate(hw_gate which) { return tu104_ops.gate(&hw, 3, &channel, which, &changed); }

  hw_channel channel{};
  bool changed = false;
};

TEST_F(Tu104Gate, ClosesWithOneStoreThatKeepsNext) {
  for (const u32 next : {0u, kNext}) {
    io.set(kWord, kEnabled | next | 6u << 24 | 1u << 28);
    io.clearLog();
    EXPECT_EQ(gate(HW_GATE_CLOSE), 0);
    EXPECT_TRUE(changed);
    EXPECT_EQ(io.writes(), (std::vector<Access>{{Access::Write, kWord, kClear | next}}));
    EXPECT_EQ(io.log().size(), 3u);
  }
}

TEST_F(Tu104Gate, OpensMakesSureAndRings) {
  io.set(kWord, 0);
  EXPECT_EQ(gate(HW_GATE_OPEN), 0);
  EXPECT_TRUE(changed);
  EXPECT_EQ(io.writes(), (std::vector<Access>{{Access::Write, kWord, kSet},
                                              {Access::Write, kDoorbell, 3u << 16 | 5}}));
  EXPECT_EQ(io.log().size(), 5u);
}

TEST_F(Tu104Gate, WhatIsOpenIsOnlyRung) {
  io.set(kWord, kEnabled);
  for (const hw_gate which : {HW_GATE_OPEN, HW_GATE_RING}) {
    io.clearLog();
    EXPECT_EQ(gate(which), 0);
    EXPECT_FALSE(changed);
    EXPECT_EQ(io.writes(), (std::vector<Access>{{Access::Write, kDoorbell, 3u << 16 | 5}}));
  }
}

TEST_F(Tu104Gate, WhatSomebodyElseDisabledIsNeitherClosedNorRung) {
  io.set(kWord, 0);
  for (const hw_gate which : {HW_GATE_CLOSE, HW_GATE_RING}) {
    EXPECT_EQ(gate(which), 0);
    EXPECT_FALSE(changed);
  }
  EXPECT_TRUE(io.writes().empty());
}

TEST_F(Tu104Gate, AFaultedChannelIsTheDriversToRecover) {
  for (const u32 fault : {kPbdmaFault, kEngineFault})
    for (const u32 enabled : {0u, kEnabled})
      for (const hw_gate which : {HW_GATE_CLOSE, HW_GATE_OPEN, HW_GATE_RING}) {
        io.set(kWord, fault | enabled);
        EXPECT_EQ(gate(which), 0);
        EXPECT_FALSE(changed);
      }
  EXPECT_TRUE(io.writes().empty());
}

TEST_F(Tu104Gate, AnotherChannelWithItsIdIsNotTouched) {
  for (const u32 inst : {1u << 31 | 0x12346u, 0x12345u, 0u}) {
    io.set(kInst, inst);
    io.set(kWord, kEnabled);
    EXPECT_EQ(gate(HW_GATE_CLOSE), -ESTALE) << std::hex << inst;
    EXPECT_EQ(gate(HW_GATE_OPEN), -ESTALE) << std::hex << inst;
  }
  EXPECT_TRUE(io.writes().empty());
}

TEST_F(Tu104Gate, AStoreThatIsDroppedIsAnErrorWhereNobodyElseWouldNotice) {
  io.onWrite(kWord, [this](u32) { io.set(kWord, 0); });
  io.set(kWord, 0);
  EXPECT_EQ(gate(HW_GATE_OPEN), -EIO);
  EXPECT_FALSE(changed);
}

TEST_F(Tu104Gate, RefusalAbsenceAndNonsenseWriteNothing) {
  io.refuse(0x800000, 0x807fff);
  EXPECT_EQ(gate(HW_GATE_CLOSE), -EIO);
  io.heal();
  io.loseCard();
  EXPECT_EQ(gate(HW_GATE_CLOSE), -ENODEV);
  io.heal();
  channel.id = 4096;
  EXPECT_EQ(gate(HW_GATE_CLOSE), -EINVAL);
  EXPECT_TRUE(io.writes().empty());
}

}  // namespace tu104_gate_test
