// SPDX-License-Identifier: GPL-2.0
// tu104_card.hpp - the scripted card of the tu104 tests: a TU104 with graphics and two graphics
// copy engines on runlist 0, one copy engine on runlist 1, a decoder on runlist 2, and no work.
#pragma once

#include <gtest/gtest.h>

#include "fakes/recording_io.hpp"

extern "C" {
#include "hw/tu104/tu104.h"
}

namespace qgpu::fakes {

constexpr u32 kGraphics = 0;  // engine index
constexpr u32 kBoot0 = 0x164000a1;

class Tu104Card : public ::testing::Test {
 protected:
  Tu104Card() {
    io.set(TU104_PMC_BOOT_0, kBoot0);
    io.set(TU104_PMC_BOOT_42, 0x164u << 20);
    io.set(TU104_PFIFO_CFG0, 0x00200000u | 12);
    io.set(TU104_PFIFO_CFG1, 4096);
    io.set(TU104_PBDMA_MAP(0), 0x1);
    io.set(TU104_PBDMA_MAP(1), 0x1);
    io.set(TU104_PBDMA_MAP(2), 0x2);
    io.set(TU104_PBDMA_MAP(3), 0x4);
    addDevice(TU104_ENGINE_TYPE_GRAPHICS, 0, kGraphics, 0);
    addDevice(TU104_ENGINE_TYPE_LCE, 0, 1, 0);
    slot_ += 2;  // slots that are not valid lie between devices
    addDevice(TU104_ENGINE_TYPE_LCE, 1, 2, 0);
    addDevice(TU104_ENGINE_TYPE_LCE, 2, 3, 1);
    addDevice(TU104_ENGINE_TYPE_NVDEC, 0, 4, 2);
    hw.ops = &tu104_ops;
    hw.io = io.io();
  }

  // A device of three words, with a hole in the middle of its chain.
  void addDevice(u32 type, u32 instance, u32 engine, u32 runlist) {
    io.set(TU104_DEVICE_INFO(slot_++), 0x80000000u | instance << 26 | 1);
    slot_++;
    io.set(TU104_DEVICE_INFO(slot_++),
           0x80000000u | engine << 26 | runlist << 21 | 0x20 | 0x10 | 2);
    io.set(TU104_DEVICE_INFO(slot_++), type << 2 | 3);
  }

  void probe() {
    ASSERT_EQ(tu104_ops.probe(&hw), 0);
    io.clearLog();
  }

  static u32 status(u32 ctx, u32 id, u32 next_id = 0, bool busy = false) {
    return id | 1u << 12 | ctx << 13 | next_id << 16 | 1u << 28 | (busy ? 1u << 31 : 0);
  }

  RecordingIo io;
  struct hw hw {};

 private:
  u32 slot_ = 0;
};

}  // namespace qgpu::fakes
