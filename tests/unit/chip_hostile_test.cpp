// SPDX-License-Identifier: GPL-2.0
// A tenant writes whatever it likes into its ring, its descriptors and its USERD. The model stays
// bounded, keeps its books, and serves the neighbour its share.
#include <gtest/gtest.h>

#include <random>

#include "fakes/sim_card.hpp"

namespace qgpu::fakes {
namespace chip_hostile_test {

constexpr uint64_t kMs = 1000000, kSecond = 1000 * kMs;

// The neighbour gets at least its slice out of every round; the books balance.
void expectNeighbourServed(SimCard &card, SimTsg &bad, SimTsg &good, const std::string &what) {
  const uint64_t before = card.runNs(good);
  card.advanceBy(kSecond);
  const double round = static_cast<double>(good.sliceNs() + bad.sliceNs() + 200000);
  EXPECT_GE(static_cast<double>(card.runNs(good) - before),
            1e9 * static_cast<double>(good.sliceNs()) / round - 2e6)
      << what;
  const chip_totals t = card.totals();
  EXPECT_EQ(t.run_ns + t.switch_ns + t.idle_ns, card.nowNs()) << what;
}

struct Attack {
  const char *what;
  void (*write)(SimTsg &tsg);
};

void writeKernel(SimTsg &tsg, const chip_kernel &kernel, uint32_t put) {
  const uint64_t va = tsg.channel().ringVa() + 8192;
  tsg.channel().writeVa(va, &kernel, sizeof(kernel));
  for (uint32_t i = 0; i < 1024; i++)
    tsg.channel().writeEntry(i, static_cast<uint32_t>(va),
                             static_cast<uint32_t>(va >> 32) | CHIP_GP1_SYNC);
  tsg.channel().setGpPut(put);
}

const Attack kAttacks[] = {
    {"entries of zeros", [](SimTsg &t) { t.channel().setGpPut(1023); }},
    {"entries of ones",
     [](SimTsg &t) {
       for (uint32_t i = 0; i < 1024; i++) t.channel().writeEntry(i, ~0u, ~0u);
       t.channel().setGpPut(1023);
     }},
    {"descriptors outside the address space",
     [](SimTsg &t) {
       for (uint32_t i = 0; i < 1024; i++) t.channel().writeEntry(i, 0x1000, CHIP_GP1_SYNC);
       t.channel().setGpPut(1023);
     }},
    {"GP_PUT at the end of the ring", [](SimTsg &t) { t.channel().setGpPut(1024); }},
    {"GP_PUT of all ones", [](SimTsg &t) { t.channel().setGpPut(~0u); }},
    {"a kernel that never ends",
     [](SimTsg &t) {
       writeKernel(t, {U64_MAX, CHIP_CILP, 0, 0, 0}, 1);
     }},
    {"a kernel that almost never ends",
     [](SimTsg &t) {
       writeKernel(t, {U64_MAX - 1, CHIP_CILP, 0, 0, 0}, 1);
     }},
    {"kernels that take no time",
     [](SimTsg &t) {
       writeKernel(t, {0, CHIP_CILP, 0, 0, 0}, 1023);
     }},
    {"a preemption type that does not exist",
     [](SimTsg &t) {
       writeKernel(t, {1000, 0xffffffff, ~0u, 0, 0}, 1023);
     }},
    {"semaphores outside the address space",
     [](SimTsg &t) {
       writeKernel(t, {1000, CHIP_CILP, 0, U64_MAX - 3, 7}, 1023);
     }},
    {"semaphores over the ring itself",
     [](SimTsg &t) {
       writeKernel(t, {1000, CHIP_CILP, 0, t.channel().ringVa(), ~0ull}, 1023);
     }},
};

TEST(ChipHostile, RingsLeaveTheNeighbourItsShare) {
  for (const Attack &attack : kAttacks) {
    SimCard card;
    SimTsg &bad = card.createTsg(), &good = card.createTsg();
    good.channel().saturate(Kernel{kMs});
    card.submit({&bad, &good});
    attack.write(bad);
    bad.channel().ring();
    expectNeighbourServed(card, bad, good, attack.what);
    EXPECT_TRUE(card.protocolErrors().empty()) << attack.what;
  }
}

TEST(ChipHostile, AGpPutBeyondTheRingBringsNothing) {
  for (uint32_t put : {1024u, 1025u, 0x80000000u, ~0u}) {
    SimCard card;
    SimTsg &bad = card.createTsg();
    card.submit({&bad});
    writeKernel(bad, {1000, CHIP_CILP, 0, 0, 0}, put);
    bad.channel().ring();
    card.advanceBy(kMs);
    EXPECT_EQ(card.runNs(bad), 0u) << put;
  }
}

TEST(ChipHostile, DoorbellsWithoutEndCostTheNeighbourNoMoreThanASwitchEach) {
  SimCard card;
  SimTsg &bad = card.createTsg(), &good = card.createTsg();
  good.channel().saturate(Kernel{kMs});
  card.submit({&bad, &good});
  for (int i = 0; i < 20000; i++) {
    bad.channel().ring();
    card.advanceBy(5000);
  }
  EXPECT_GE(card.runNs(good), 100 * kMs * good.sliceNs() / (good.sliceNs() + 210000) - 2 * kMs);
}

TEST(ChipHostile, AnUncuttableKernelWithoutEndIsATailNotAHang) {
  SimCard card;
  SimTsg &bad = card.createTsg(), &good = card.createTsg();
  writeKernel(bad, {U64_MAX, CHIP_WFI, 0, 0, 0}, 1);
  bad.channel().ring();
  good.channel().saturate(Kernel{kMs});
  card.submit({&bad, &good});
  card.advanceBy(1000 * kSecond);
  EXPECT_EQ(card.runNs(good), 0u);
  EXPECT_EQ((card.engineStatus() >> 13) & 7, 7u);
  EXPECT_EQ(chip_next_event_ns(card.model()), U64_MAX);
}

TEST(ChipHostile, ARingOfTheLargestSizeIsBoundedByTheTimeItTakes) {
  SimCard card;
  SimTsg &bad = card.createTsg();
  auto *words = static_cast<uint32_t *>(bad.channel().instMemory().cpu);
  words[19] |= 0x1fu << 16;  // 2^31 entries, almost all outside the address space
  bad.channel().setGpPut(0x7fffffff);
  bad.channel().ring();
  card.submit({&bad});
  card.advanceBy(kSecond);
  EXPECT_LE(bad.channel().gpGet(), 2000000u) << "no faster than an entry in 500 ns";
  EXPECT_EQ(card.totals().kernels, 0u);
}

TEST(ChipHostile, GarbageEverywhereIsSurvived) {
  const char *text = std::getenv("QGPU_SEED");
  const uint64_t seed = text ? std::strtoull(text, nullptr, 0) : std::random_device{}();
  std::printf("QGPU_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  SimOptions options;
  options.keep_records = false;
  for (int round = 0; round < 30; round++) {
    SimCard card(options);
    SimTsg &bad = card.createTsg({.channels = 2}), &other = card.createTsg();
    other.channel().saturate(Kernel{kMs});
    const hw_mem list = card.allocate(1 << 16);
    for (int i = 0; i < 3000; i++) {
      // mostly plausible register offsets, any value; now and then the list and instance memory
      static constexpr uint32_t kBases[] = {0x2000, 0x2600,   0x2b00,   0x3000,
                                            0x1f0,  0x800000, 0xbb0080, 0x40100};
      const auto value = static_cast<uint32_t>(random());
      card.write32(kBases[random() % 8] + 4 * (random() % 64),
                   random() % 3 ? value & 0xfff : value);
      switch (random() % 8) {
        case 0:
          static_cast<uint32_t *>(list.cpu)[random() % 4096] = value;
          card.write32(0x2b00, static_cast<uint32_t>(list.bus_addr) | 2);
          card.write32(0x2b04, static_cast<uint32_t>(list.bus_addr >> 32));
          card.write32(0x2b08, value & 0x10001f);
          break;
        case 1:
          static_cast<uint32_t *>(bad.channel().instMemory().cpu)[random() % 132] = value;
          break;
        case 2:
          bad.channel(random() % 2).writeEntry(random() % 1024, value, value * 7);
          bad.channel().setGpPut(value & 0x7ff);
          bad.channel().ring();
          break;
        case 3:
          card.submitEntries(card.entriesOf({&bad, &other}));
          break;
        default:
          break;
      }
      card.advanceBy(random() % 100000);
      card.read32(0x800004 + 8 * (random() % 8));
      card.read32(0x3400);
      card.read32(0x3000);
    }
    const chip_totals t = card.totals();
    ASSERT_EQ(t.run_ns + t.switch_ns + t.idle_ns, card.nowNs()) << "QGPU_SEED=" << seed;
  }
}

}  // namespace chip_hostile_test
}  // namespace qgpu::fakes
