// SPDX-License-Identifier: GPL-2.0
// What the status registers show through a switch, to the nanosecond.
#include <gtest/gtest.h>

#include "fakes/sim_card.hpp"

namespace qgpu::fakes {
namespace chip_status_test {

constexpr uint64_t kMs = 1000000;
constexpr uint32_t kInvalid = 0, kValid = 1, kLoad = 5, kSave = 6, kSwitch = 7;

struct Moment {
  const char *what;
  uint64_t after_ns;  // from the end of a's slice
  uint32_t engine, pbdma;
  bool busy;
};

TEST(ChipStatus, GoesThroughSwitchSaveLoadValid) {
  SimCard card;
  SimTsg &a = card.createTsg(), &b = card.createTsg();
  a.channel().saturate(Kernel{kMs});
  b.channel().saturate(Kernel{kMs});
  card.submit({&a, &b});
  const uint64_t end = card.nowNs() + 50000 + a.sliceNs();
  card.advanceTo(end - 1);
  EXPECT_EQ(card.engineStatus(), kValid << 13 | 1u << 12 | a.id() | 1u << 31);
  const Moment moments[] = {
      {"PBDMA save begins", 0, kSwitch, kSave, true},
      {"PBDMA save ends", 4999, kSwitch, kSave, true},
      {"engine save begins", 5000, kSave, kInvalid, true},
      {"engine save ends", 49999, kSave, kInvalid, true},
      {"engine load begins", 50000, kLoad, kInvalid, true},
      {"engine load ends", 94999, kLoad, kInvalid, true},
      {"PBDMA load begins", 95000, kValid, kLoad, false},
      {"PBDMA load ends", 99999, kValid, kLoad, false},
      {"work runs", 100000, kValid, kValid, true},
  };
  for (const Moment &m : moments) {
    card.advanceTo(end + m.after_ns);
    const uint32_t engine = card.engineStatus(), pbdma = card.read32(0x3080);
    EXPECT_EQ((engine >> 13) & 7, m.engine) << m.what;
    EXPECT_EQ((pbdma >> 13) & 7, m.pbdma) << m.what;
    EXPECT_EQ(engine >> 31, m.busy) << m.what;
    if (m.engine == kSwitch || m.engine == kSave) {
      EXPECT_EQ(engine & 0xfff, a.id()) << m.what;
    }
    if (m.engine == kSwitch || m.engine == kLoad) {
      EXPECT_EQ((engine >> 16) & 0x1fff, b.id() | 1u << 12) << m.what;
    }
    if (m.engine == kLoad) {
      EXPECT_EQ(engine & 0xfff, a.id()) << "stale";
    }
    if (m.engine == kValid) {
      EXPECT_EQ(engine & 0xfff, b.id()) << m.what;
    }
    if (m.pbdma == kLoad) {
      EXPECT_EQ((pbdma >> 16) & 0xfff, b.id()) << m.what;
    }
    EXPECT_EQ(card.read32(0x263c), m.after_ns == 100000 ? 0u : 2u) << m.what;
  }
}

TEST(ChipStatus, ShowsAnIdleContextAsValidAndNotBusy) {
  SimCard card;
  SimTsg &a = card.createTsg();
  a.channel().launch({.duration_ns = kMs});
  card.submit({&a});
  card.advanceBy(50000 + kMs);
  EXPECT_EQ(card.engineStatus(), kValid << 13 | 1u << 12 | a.id());
  EXPECT_EQ((card.read32(0x3080) >> 13) & 7, kSave);
  EXPECT_EQ(card.read32(0x3400), 0u) << "not idle while the PBDMA leaves";
  card.advanceBy(5000);
  EXPECT_EQ(card.engineStatus(), kValid << 13 | 1u << 12 | a.id());
  EXPECT_EQ((card.read32(0x3080) >> 13) & 7, kInvalid);
  EXPECT_EQ(card.read32(0x3400), 1u << 8 | 1u << 9);
}

TEST(ChipStatus, TellsARunlistWithHeldWorkFromAnIdleOne) {
  SimCard card;
  SimTsg &a = card.createTsg();
  card.submit({&a});
  card.write32(0x2630, 1);
  a.channel().launch({.duration_ns = kMs});
  EXPECT_EQ(card.read32(0x3400), 1u << 8) << "engine idle, runlist not";
  card.write32(0x2630, 0);
  EXPECT_EQ(card.read32(0x3400), 0u);
}

TEST(ChipStatus, NamesTheInstanceBlocks) {
  SimCard card;
  SimTsg &a = card.createTsg(), &b = card.createTsg();
  a.channel().saturate(Kernel{kMs});
  b.channel().saturate(Kernel{kMs});
  card.submit({&a, &b});
  const uint32_t inst_a = a.channel().hwChannel().inst_addr >> 12 | 1u << 31;
  const uint32_t inst_b = b.channel().hwChannel().inst_addr >> 12 | 1u << 31;
  card.advanceBy(50000 + 1000);
  EXPECT_EQ(card.read32(0x3100), inst_a);
  EXPECT_EQ(card.read32(0x2790), inst_a);
  const uint64_t userd = a.channel().hwChannel().userd_addr;
  EXPECT_EQ(card.read32(0x2800), static_cast<uint32_t>(userd) | 2);
  EXPECT_EQ(card.read32(0x2880), static_cast<uint32_t>(userd >> 32));
  EXPECT_EQ(card.read32(0x40120), a.channel().id());
  EXPECT_EQ(card.read32(0x3000), 0u);
  card.advanceBy(a.sliceNs());
  EXPECT_EQ(card.read32(0x3000), inst_b);
}

TEST(ChipStatus, LetsUncuttableWorkRunThroughThePbdmaSave) {
  SimCard card;
  SimTsg &a = card.createTsg(), &b = card.createTsg();
  a.channel().launch({a.sliceNs() + 2000, CHIP_WFI});
  b.channel().saturate(Kernel{kMs});
  card.submit({&a, &b});
  const uint64_t end = card.nowNs() + 50000 + a.sliceNs();
  card.advanceTo(end + 2000);
  EXPECT_EQ(a.channel().completed(), 1u);
  EXPECT_EQ(a.channel().lastCompletionNs(), end + 2000);
  EXPECT_EQ((card.engineStatus() >> 13) & 7, kSwitch);
  card.advanceTo(end + 5000);
  EXPECT_EQ((card.engineStatus() >> 13) & 7, kSave);
  card.advanceTo(end + 100000 + 1000);
  EXPECT_EQ(card.runNs(b), 1000u);
}

TEST(ChipStatus, KeepsTheTailOfUncuttableWorkExact) {
  SimCard card;
  SimTsg &a = card.createTsg(), &b = card.createTsg();
  a.channel().saturate(Kernel{7 * kMs, CHIP_WFI});
  b.channel().saturate(Kernel{kMs});
  card.submit({&a, &b});
  // Each visit of a: one kernel of 7 ms, its slice being over long before; then save and loads.
  card.advanceBy(50000 + 10 * (7 * kMs + b.sliceNs() + 95000 + 100000));
  EXPECT_EQ(card.runNs(a), 70 * kMs);
  EXPECT_EQ(card.runNs(b), 10 * b.sliceNs());
}

}  // namespace chip_status_test
}  // namespace qgpu::fakes
