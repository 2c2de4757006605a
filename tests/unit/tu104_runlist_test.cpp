// SPDX-License-Identifier: GPL-2.0
// Submit: order of the three writes, waiting before and after, and what happens when nobody
// answers.
#include "unit/tu104_card.hpp"

namespace {

using qgpu::fakes::Access;

constexpr u32 kPending = 1u << 15;

class Tu104Submit : public qgpu::fakes::Tu104Card {
 protected:
  void SetUp() override { probe(); }

  hw_mem mem{nullptr, 0xab'1234'5000, 4096, HW_TARGET_SYSMEM_NONCOHERENT};
};

TEST_F(Tu104Submit, FlushesThenWritesLowHighAndSubmit) {
  ASSERT_EQ(tu104_ops.submit(&hw, 3, &mem, 17), 0);
  const std::vector<Access> wanted{{Access::Flush},
                                   {Access::Write, 0x2b30, 0x12345003},
                                   {Access::Write, 0x2b34, 0xab},
                                   {Access::Write, 0x2b38, 17}};
  EXPECT_EQ(io.writes(), wanted);
  EXPECT_EQ(io.log().front(), (Access{Access::Read, 0x2b3c, 0}));
  EXPECT_EQ(io.log().back(), (Access{Access::Read, 0x2b3c, 0}));
}

TEST_F(Tu104Submit, LeavesTheBaseAloneForAnEmptyImage) {
  ASSERT_EQ(tu104_ops.submit(&hw, 0, &mem, 0), 0);
  EXPECT_EQ(io.writes(), (std::vector<Access>{{Access::Write, 0x2b08, 0}}));
}

TEST_F(Tu104Submit, WaitsForAnEarlierSubmitBeforeAnyWrite) {
  io.set(0x2b0c, kPending);
  io.at(io.nowNs() + 300'000, [&] { io.set(0x2b0c, 0); });
  ASSERT_EQ(tu104_ops.submit(&hw, 0, &mem, 1), 0);
  ASSERT_EQ(io.writes().size(), 4u);
  EXPECT_GE(io.writes().front().at_ns, 1'000'300'000u);
}

TEST_F(Tu104Submit, ReturnsOnlyWhenTheChipTookIt) {
  io.onWrite(0x2b08, [&](u32) {
    io.set(0x2b0c, kPending);
    io.at(io.nowNs() + 500'000, [&] { io.set(0x2b0c, 0x4123); });
  });
  const u64 before = io.nowNs();
  ASSERT_EQ(tu104_ops.submit(&hw, 0, &mem, 1), 0);
  EXPECT_GE(io.nowNs() - before, 500'000u);
  EXPECT_LE(io.nowNs() - before, 800'000u);
}

TEST_F(Tu104Submit, IsRefusedUntouchedWhileAnEarlierOneNeverEnds) {
  io.set(0x2b0c, kPending);
  const u64 before = io.nowNs();
  EXPECT_EQ(tu104_ops.submit(&hw, 0, &mem, 1), -EBUSY);
  EXPECT_TRUE(io.writes().empty());
  EXPECT_LE(io.nowNs() - before, 101'000'000u);
}

TEST_F(Tu104Submit, TimesOutWhenTheChipNeverTakesIt) {
  io.onWrite(0x2b08, [&](u32) { io.set(0x2b0c, kPending); });
  const u64 before = io.nowNs();
  EXPECT_EQ(tu104_ops.submit(&hw, 0, &mem, 1), -ETIMEDOUT);
  EXPECT_LE(io.nowNs() - before, 101'000'000u);
}

TEST_F(Tu104Submit, RefusesWhatDoesNotFitTheRegisters) {
  EXPECT_EQ(tu104_ops.submit(&hw, 11, &mem, 1), -EINVAL);
  EXPECT_EQ(tu104_ops.submit(&hw, 0, &mem, 257), -EINVAL);
  mem.bytes = 2 << 20;
  EXPECT_EQ(tu104_ops.submit(&hw, 0, &mem, 65536), -EINVAL);
  mem.bus_addr = 0x1800;
  EXPECT_EQ(tu104_ops.submit(&hw, 0, &mem, 1), -EINVAL);
  mem.bus_addr = 1ull << 40;
  EXPECT_EQ(tu104_ops.submit(&hw, 0, &mem, 1), -EINVAL);
  EXPECT_TRUE(io.log().empty());
}

TEST_F(Tu104Submit, TellsALostCardFromARefusedRegister) {
  io.refuse(0x2b00, 0x2bff);
  EXPECT_EQ(tu104_ops.submit(&hw, 0, &mem, 1), -EIO);
  io.heal();
  io.loseCard();
  EXPECT_EQ(tu104_ops.submit(&hw, 0, &mem, 1), -ENODEV);
  EXPECT_TRUE(io.writes().empty());
  io.heal();
  io.onWrite(0x2b08, [&](u32) { io.loseCard(); });
  EXPECT_EQ(tu104_ops.submit(&hw, 0, &mem, 1), -ENODEV);
}

}  // namespace
