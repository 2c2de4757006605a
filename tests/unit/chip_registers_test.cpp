// SPDX-License-Identifier: GPL-2.0
// Identity, topology, clocks, windows and interrupt bits of the chip model. Addresses are written
// out here, from the manual, so that a slip in the model's register header shows.
#include <gtest/gtest.h>

#include <set>

#include "fakes/sim_card.hpp"

namespace qgpu::fakes {
namespace chip_registers_test {

bool isPriError(uint32_t value) { return (value & 0xfff00000u) == 0xbad00000u; }

TEST(ChipRegisters, SayWhoTheChipIs) {
  SimCard card;
  EXPECT_EQ((card.read32(0x0) >> 20) & 0x1ff, 0x164u);
  EXPECT_EQ((card.read32(0xa00) >> 20) & 0x1ff, 0x164u);
  EXPECT_EQ(card.read32(0x2004), 12u | 32u << 16);
  EXPECT_EQ(card.read32(0x2008), 4096u);
  EXPECT_EQ(card.read32(0x200c), 0xc46fu);
}

TEST(ChipRegisters, SayWhetherFirmwareRunsTheChip) {
  SimCard card;
  EXPECT_EQ(card.read32(0x111240), 0u);
  chip_identity_set(card.model(), 0x162000a1u, true);
  EXPECT_EQ(card.read32(0x111240), 1u);
  EXPECT_EQ((card.read32(0x0) >> 20) & 0x1ff, 0x162u);
  EXPECT_EQ((card.read32(0xa00) >> 20) & 0x1ff, 0x162u);
}

struct Reset {
  const char *what;
  uint32_t offset, value;
};

TEST(ChipRegisters, ComeUpAsTheManualSays) {
  const Reset rows[] = {
      {"SCHED_DISABLE", 0x2630, 0},
      {"PREEMPT", 0x2634, 0},
      {"RUNLIST_PREEMPT", 0x2638, 0},
      {"SCHED_STATUS", 0x263c, 0},
      {"RUNLIST_BASE_LO", 0x2b00, 0},
      {"RUNLIST_SUBMIT_INFO", 0x2b0c, 0},
      {"last runlist's SUBMIT_INFO", 0x2b0c + 16 * 10, 0},
      {"RUNLIST_INFO, all idle", 0x3400, 1u << 8 | 1u << 9},
      {"PBDMA_STATUS", 0x3080, 0},
      {"ENG_CTXSW_TIMEOUT", 0x2a0c, 0x803fffffu},
      {"INTR_0", 0x2100, 0},
      {"PCCSR_CHANNEL of an unused channel", 0x800004 + 8 * 4095, 0},
      {"PBDMA 0 INTR_0", 0x40108, 0},
      {"PBDMA 11 INTR_1", 0x40148 + 11 * 0x2000, 0},
  };
  SimCard card;
  for (const Reset &row : rows) EXPECT_EQ(card.read32(row.offset), row.value) << row.what;
  for (uint32_t engine = 0; engine < 13; engine++)
    EXPECT_EQ((card.read32(0x2640 + 8 * engine) >> 13) & 7, 0u) << "engine " << engine;
}

TEST(ChipRegisters, AnswerAPriErrorWhereThereIsNothing) {
  SimCard card;
  for (uint32_t offset : {0x8u, 0x2270u, 0x2274u, 0x2284u, 0x2b00u + 16 * 11, 0x2640u + 8 * 13,
                          0x3080u + 4 * 12, 0x3400u + 4 * 11, 0x22800u, 0x40004u, 0x400000u,
                          0x808000u, 0xb65004u, 0xfffffcu, 0x1u, 0x2631u, 0xfffffffcu}) {
    card.write32(offset, 0xffffffff);
    EXPECT_TRUE(isPriError(card.read32(offset))) << std::hex << offset;
  }
}

TEST(ChipRegisters, ReadZeroForUndefinedWordsOfTheUsermodePage) {
  SimCard card;
  for (uint32_t offset : {0xbb0000u, 0xbb0090u, 0xbbfffcu, 0x810000u, 0x810090u, 0x81fffcu}) {
    card.write32(offset, 0xffffffff);
    EXPECT_EQ(card.read32(offset), 0u) << std::hex << offset;
  }
}

struct Device {
  int engine = -1, runlist = -1, type = -1, instance = -1;
};

std::vector<Device> readTopology(SimCard &card) {
  std::vector<Device> devices;
  Device device;
  for (uint32_t i = 0; i < 64; i++) {
    const uint32_t word = card.read32(0x22700 + 4 * i);
    if ((word & 3) == 0) continue;
    if ((word & 3) == 1) device.instance = (word >> 26) & 0xf;
    if ((word & 3) == 2 && word & 1u << 5) device.engine = (word >> 26) & 0xf;
    if ((word & 3) == 2 && word & 1u << 4) device.runlist = (word >> 21) & 0xf;
    if ((word & 3) == 3) device.type = (word & 0x7ffffffc) >> 2;
    if (word & 1u << 31) continue;
    devices.push_back(device);
    device = {};
  }
  return devices;
}

TEST(ChipRegisters, ListEveryEngineOnceWithARunlistThatAPbdmaServes) {
  SimCard card;
  const auto devices = readTopology(card);
  uint32_t served = 0;
  for (uint32_t p = 0; p < 12; p++) served |= card.read32(0x2390 + 4 * p);
  std::set<int> engines, runlists;
  for (const Device &d : devices) {
    if (d.engine < 0) continue;
    EXPECT_TRUE(engines.insert(d.engine).second) << "engine " << d.engine << " listed twice";
    EXPECT_LT(d.engine, 13);
    EXPECT_TRUE(served & 1u << d.runlist) << "runlist " << d.runlist;
    runlists.insert(d.runlist);
  }
  EXPECT_EQ(engines.size(), 11u);
  EXPECT_EQ(*runlists.rbegin(), static_cast<int>(runlists.size()) - 1) << "runlist ids have a gap";
  EXPECT_EQ(devices[0].type, 0);
  EXPECT_EQ(devices[0].engine, 0);
  EXPECT_EQ(devices[0].runlist, 0);
}

TEST(ChipRegisters, FeedTheGraphicsCopyEnginesFromTheGraphicsRunlist) {
  SimCard card;
  int copies = 0, graphics_copies = 0;
  for (const Device &d : readTopology(card)) {
    if (d.type != 19) continue;
    copies++;
    if (d.runlist == 0) graphics_copies++;
  }
  EXPECT_EQ(copies, 5);
  EXPECT_EQ(graphics_copies, 2);
}

TEST(ChipRegisters, CountTimeInStepsOf32ns) {
  SimOptions options;
  options.config.ptimer_offset_ns = 0x1'ffff'fff0ull;
  SimCard card(options);
  card.advanceTo(95);
  const uint64_t want = (0x1'ffff'fff0ull + 95) & ~31ull;
  for (auto [low, high] :
       {std::pair{0x9400u, 0x9410u}, {0xbb0080u, 0xbb0084u}, {0x810080u, 0x810084u}}) {
    EXPECT_EQ(card.read32(low), static_cast<uint32_t>(want)) << std::hex << low;
    EXPECT_EQ(card.read32(high), static_cast<uint32_t>(want >> 32)) << std::hex << high;
  }
}

TEST(ChipRegisters, CostWhatTheMachineCharges) {
  SimOptions options;
  options.mmio_read_ns = 1000;
  SimCard card(options);
  const hw_io io = card.io();
  hw_read(&io, 0x0);
  hw_write(&io, 0x2630, 0);
  EXPECT_EQ(hw_now_ns(&io), 1000u);
  hw_wait_ns(&io, 500);
  EXPECT_EQ(card.nowNs(), 1500u);
}

TEST(ChipRegisters, ReadAllOnesWhenTheCardIsLost) {
  SimCard card;
  card.setLost(true);
  EXPECT_EQ(card.read32(0x0), 0xffffffffu);
  card.write32(0x2630, 1);
  card.setLost(false);
  EXPECT_EQ(card.read32(0x2630), 0u);
}

TEST(ChipRegisters, KeepSchedDisableToItsElevenBits) {
  SimCard card;
  card.write32(0x2630, 0xffffffff);
  EXPECT_EQ(card.read32(0x2630), 0x7ffu);
}

TEST(ChipRegisters, ClearInterruptBitsOnlyByWritingOnes) {
  SimCard card;
  card.submit({&card.createTsg()});
  EXPECT_EQ(card.read32(0x2a00), 1u);
  EXPECT_EQ(card.read32(0x2100), 1u << 30);
  card.write32(0x2100, 0xffffffff);  // a summary bit cannot be cleared
  EXPECT_EQ(card.read32(0x2100), 1u << 30);
  card.write32(0x2a00, 0);
  EXPECT_EQ(card.read32(0x2a00), 1u);
  card.write32(0x2a00, 1);
  EXPECT_EQ(card.read32(0x2100), 0u);
}

TEST(ChipRegisters, ShowPfifoInPmcIntrOnlyWhenUnmasked) {
  SimCard card;
  card.submit({&card.createTsg()});
  EXPECT_EQ(card.read32(0x100), 0u);
  card.write32(0x2140, 1u << 30);
  EXPECT_EQ(card.read32(0x100), 1u << 8);
}

}  // namespace chip_registers_test
}  // namespace qgpu::fakes
