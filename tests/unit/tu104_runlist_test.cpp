// SPDX-License-Identifier: GPL-2.0
// Submit: order of the three writes, waiting before and after, and what happens when nobody
// answers.
#include "unit/tu104_card.hpp"

namespace tu104_runlist_test {

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
  // A fetch that nobody saw: the registers are asked whether they took it.
  const std::vector<Access> after(io.log().end() - 3, io.log().end());
  EXPECT_EQ(after, (std::vector<Access>{{Access::Read, 0x2b3c, 0},
                                        {Access::Read, 0x2b38, 17},
                                        {Access::Read, 0x2b30, 0x12345003}}));
}

TEST_F(Tu104Submit, AsksNoMoreWhenTheFetchWasSeen) {
  io.onWrite(0x2b38, [&](u32) {
    io.set(0x2b3c, kPending);
    io.at(io.nowNs() + 50'000, [&] { io.set(0x2b3c, 0); });
  });
  ASSERT_EQ(tu104_ops.submit(&hw, 3, &mem, 17), 0);
  EXPECT_EQ(io.reads(0x2b30) + io.reads(0x2b38), 0u);
}

TEST_F(Tu104Submit, FailsWhenTheCardDropsItsWrites) {
  for (const u32 dropped : {0x2b00u, 0x2b08u}) {
    io.onWrite(dropped, [&, dropped](u32) { io.set(dropped, 0x700d); });
    EXPECT_EQ(tu104_ops.submit(&hw, 0, &mem, 1), -EIO) << std::hex << dropped;
    io.onWrite(dropped, [](u32) {});
  }
  EXPECT_EQ(tu104_ops.submit(&hw, 0, &mem, 1), 0);
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

TEST_F(Tu104Submit, TakesThePlaceOfOneThatIsMalformed) {
  io.set(0x2b0c, kPending);
  io.set(0x254c, 0x20);
  io.onWrite(0x2b08, [&](u32) { io.set(0x2b0c, 0); });
  const u64 before = io.nowNs();
  EXPECT_EQ(tu104_ops.submit(&hw, 0, &mem, 1), 0);
  EXPECT_GE(io.nowNs() - before, 2'000'000u) << "a fetch may still be under way";
  EXPECT_LE(io.nowNs() - before, 3'000'000u) << "nobody is scheduled meanwhile";
  io.set(0x2b0c, kPending);
  io.set(0x254c, 0x8);
  EXPECT_EQ(tu104_ops.submit(&hw, 0, &mem, 1), -EBUSY) << "failed for another reason";
  io.set(0x254c, 0x20);
  io.set(0x263c, 1u << 2);
  EXPECT_EQ(tu104_ops.submit(&hw, 0, &mem, 1), -EBUSY) << "it is still being fetched";
}

TEST_F(Tu104Submit, IsNotWaitedForWhenItMakesNoSense) {
  io.onWrite(0x2b08, [&](u32) {
    io.set(0x2b0c, kPending);
    io.set(0x254c, 0x20);
  });
  const u64 before = io.nowNs();
  EXPECT_EQ(tu104_ops.submit(&hw, 0, &mem, 1), -ETIMEDOUT);
  EXPECT_LE(io.nowNs() - before, 3'000'000u);
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

// --- whose list is it ---

class Tu104SlotCheck : public Tu104Submit {
 protected:
  void SetUp() override {
    Tu104Submit::SetUp();
    ASSERT_EQ(tu104_ops.submit(&hw, 3, &mem, 17), 0);
    io.clearLog();
  }
  int check() { return tu104_ops.slot_check(&hw, 3, &mem, 17); }
};

TEST_F(Tu104SlotCheck, FindsWhatWasSubmittedWithThreeReads) {
  EXPECT_EQ(check(), 0);
  EXPECT_EQ(io.log().size(), 3u);
  EXPECT_TRUE(io.writes().empty());
}

TEST_F(Tu104SlotCheck, AnyRegisterOfAnotherListTells) {
  for (const u32 offset : {0x2b30u, 0x2b34u, 0x2b38u}) {
    const u32 ours = io.get(offset);
    io.set(offset, ours + 0x10);
    EXPECT_EQ(check(), -ESTALE) << std::hex << offset;
    io.set(offset, ours);
  }
  EXPECT_EQ(check(), 0);
}

TEST_F(Tu104SlotCheck, RegistersOfACardThatWasResetTell) {
  for (const u32 offset : {0x2b30u, 0x2b34u, 0x2b38u}) io.set(offset, 0);
  EXPECT_EQ(check(), -ENODEV);
}

TEST_F(Tu104SlotCheck, OfAnEmptyListTheBaseIsNotAsked) {
  ASSERT_EQ(tu104_ops.submit(&hw, 3, &mem, 0), 0);
  io.set(0x2b30, 0x5000);
  EXPECT_EQ(tu104_ops.slot_check(&hw, 3, &mem, 0), 0);
  io.set(0x2b38, 5);
  EXPECT_EQ(tu104_ops.slot_check(&hw, 3, &mem, 0), -ESTALE);
}

TEST_F(Tu104SlotCheck, AnAddressThatLooksLikeARefusalIsOurs) {
  mem = {nullptr, 0xbad0'5000, 4096, HW_TARGET_SYSMEM_COHERENT};
  ASSERT_EQ(tu104_ops.submit(&hw, 3, &mem, 17), 0);
  EXPECT_EQ(check(), 0);
}

TEST_F(Tu104SlotCheck, RefusalAndAbsenceAreNoSubmit) {
  io.refuse(0x2b00, 0x2bff);
  EXPECT_EQ(check(), -EIO);
  io.heal();
  io.loseCard();
  EXPECT_EQ(check(), -ENODEV);
}

}  // namespace tu104_runlist_test
