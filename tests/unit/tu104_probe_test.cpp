// SPDX-License-Identifier: GPL-2.0
// Probe: what is believed of the chip's own table, and what is not.
#include <cstring>

#include "unit/tu104_card.hpp"

namespace tu104_probe_test {

using qgpu::fakes::kBoot0;
using Tu104Probe = qgpu::fakes::Tu104Card;

TEST_F(Tu104Probe, FindsEnginesRunlistsAndPbdmas) {
  ASSERT_EQ(tu104_ops.probe(&hw), 0);
  EXPECT_EQ(hw.id.boot0, kBoot0);
  EXPECT_EQ(hw.id.chip_id, 0x164u);
  EXPECT_EQ(hw.id.channels, 4096u);
  ASSERT_EQ(hw.id.engine_count, 5u);
  const hw_engine wanted[] = {{HW_ENGINE_GRAPHICS, 0, 0},
                              {HW_ENGINE_COPY, 1, 0},
                              {HW_ENGINE_COPY, 2, 0},
                              {HW_ENGINE_COPY, 3, 1},
                              {HW_ENGINE_VIDEO, 4, 2}};
  for (u32 i = 0; i < 5; i++) {
    EXPECT_EQ(hw.id.engines[i].type, wanted[i].type) << i;
    EXPECT_EQ(hw.id.engines[i].index, wanted[i].index) << i;
    EXPECT_EQ(hw.id.engines[i].runlist, wanted[i].runlist) << i;
  }
  EXPECT_EQ(hw.id.pbdmas[0], 0x3);
  EXPECT_EQ(hw.id.pbdmas[1], 0x4);
  EXPECT_EQ(hw.id.pbdmas[2], 0x8);
  EXPECT_EQ(hw.id.slice_min_ns, 1024u);
  EXPECT_EQ(hw.id.slice_max_ns, 1024ull * 255 << 15);
}

TEST_F(Tu104Probe, WritesNothing) {
  ASSERT_EQ(tu104_ops.probe(&hw), 0);
  EXPECT_TRUE(io.writes().empty());
}

TEST_F(Tu104Probe, GivesTheSameWhenRepeated) {
  ASSERT_EQ(tu104_ops.probe(&hw), 0);
  const hw_identity first = hw.id;
  ASSERT_EQ(tu104_ops.probe(&hw), 0);
  EXPECT_EQ(std::memcmp(&first, &hw.id, sizeof(first)), 0);
}

TEST_F(Tu104Probe, SkipsUnitsWithoutEngineOrRunlist) {
  io.set(TU104_DEVICE_INFO(60), 0x80000000u | 9u << 26 | 0x20 | 2);  // no runlist
  io.set(TU104_DEVICE_INFO(61), 18u << 2 | 3);
  io.set(TU104_DEVICE_INFO(62), 20u << 2 | 3);  // neither
  ASSERT_EQ(tu104_ops.probe(&hw), 0);
  EXPECT_EQ(hw.id.engine_count, 5u);
}

TEST_F(Tu104Probe, RefusesAnotherChip) {
  for (u32 chip : {0x162u, 0x166u, 0x140u, 0x170u, 0u}) {
    io.set(TU104_PMC_BOOT_0, chip << 20 | 0xa1);
    EXPECT_EQ(tu104_ops.probe(&hw), -EOPNOTSUPP) << chip;
  }
  io.set(TU104_PMC_BOOT_0, kBoot0);
  io.set(TU104_PMC_BOOT_42, 0x162u << 20);
  EXPECT_EQ(tu104_ops.probe(&hw), -EOPNOTSUPP);
}

TEST_F(Tu104Probe, RefusesAChipWithoutGraphics) {
  io.set(TU104_DEVICE_INFO(3), TU104_ENGINE_TYPE_NVDEC << 2 | 3);
  EXPECT_EQ(tu104_ops.probe(&hw), -EOPNOTSUPP);
}

TEST_F(Tu104Probe, RefusesATableThatContradictsTheManual) {
  struct Row {
    const char *what;
    u32 offset, value;
  };
  const Row rows[] = {
      {"engine index 13", TU104_DEVICE_INFO(2), 0x80000000u | 13u << 26 | 0x30 | 2},
      {"runlist 11", TU104_DEVICE_INFO(2), 0x80000000u | 11u << 21 | 0x30 | 2},
      {"engine index twice", TU104_DEVICE_INFO(6), 0x80000000u | 0u << 26 | 0x30 | 2},
      {"endless chain", TU104_DEVICE_INFO(63), 0x80000000u | 1},
      {"13 PBDMAs", TU104_PFIFO_CFG0, 13},
      {"no PBDMA", TU104_PFIFO_CFG0, 0},
      {"4097 channels", TU104_PFIFO_CFG1, 4097},
      {"no channel", TU104_PFIFO_CFG1, 0},
  };
  for (const Row &row : rows) {
    const u32 former = io.get(row.offset);
    io.set(row.offset, row.value);
    EXPECT_EQ(tu104_ops.probe(&hw), -EIO) << row.what;
    io.set(row.offset, former);
    ASSERT_EQ(tu104_ops.probe(&hw), 0);
  }
  io.set(TU104_PBDMA_MAP(0), 0);
  io.set(TU104_PBDMA_MAP(1), 0);
  EXPECT_EQ(tu104_ops.probe(&hw), -EIO) << "graphics without a PBDMA";
}

TEST_F(Tu104Probe, TellsALostCardFromARefusedRegister) {
  io.refuse(TU104_DEVICE_INFO(0), TU104_DEVICE_INFO(63));
  EXPECT_EQ(tu104_ops.probe(&hw), -EIO);
  io.refuse(0, 0x1000);
  EXPECT_EQ(tu104_ops.probe(&hw), -EIO);
  io.heal();
  io.loseCard();
  EXPECT_EQ(tu104_ops.probe(&hw), -ENODEV);
}

}  // namespace tu104_probe_test
