// SPDX-License-Identifier: GPL-2.0
// WFI, CTA and CILP: where work is cut, how long that takes, what a context image has to say about
// it and what it counts.
#include <gtest/gtest.h>

#include <random>

#include "fakes/seed.hpp"
#include "unit/chip_driver.hpp"

namespace qgpu::fakes {
namespace chip_context_test {

constexpr uint64_t kMs = 1000000, kLoads = 50000, kSaves = 50000, kGrSave = 45000;

// The TSG's channel gets a context image behind its ring, of preemption type @type.
class Image {
 public:
  Image(SimTsg &tsg, uint32_t type) : tsg_(tsg), va_(tsg.channel().ringVa() + 4096) {
    auto *words = static_cast<uint32_t *>(tsg.channel().instMemory().cpu);
    words[CHIP_RAMIN_CONTEXT] = static_cast<uint32_t>(va_) | CHIP_RAMIN_CONTEXT_VIRTUAL;
    words[CHIP_RAMIN_CONTEXT + 1] = static_cast<uint32_t>(va_ >> 32);
    write(CHIP_CTX_MAGIC, CHIP_CTX_MAGIC_VALUE);
    setType(type);
  }
  void setType(uint32_t type) { write(CHIP_CTX_COMPUTE_PREEMPTION, type); }
  void write(uint32_t offset, uint32_t value) {
    tsg_.channel().writeVa(va_ + offset, &value, sizeof(value));
  }
  uint32_t count(uint32_t offset) const {
    uint32_t value;
    tsg_.channel().readVa(va_ + offset, &value, sizeof(value));
    return value;
  }

 private:
  SimTsg &tsg_;
  uint64_t va_;
};

constexpr unsigned kBigRing = 12;  // 32 KiB of entries: room for an image that is never an entry

struct CutRow {
  const char *name;
  Kernel kernel;
  uint64_t waits_ns;  // from the preempt, 3.3 ms into the kernel, to the last instruction
};

class Cut : public ::testing::TestWithParam<CutRow> {};

TEST_P(Cut, ComesWhereTheTypeSays) {
  const CutRow &row = GetParam();
  SimCard card;
  SimTsg &a = card.createTsg();
  a.channel().launch(row.kernel);
  card.submit({&a});
  card.advanceUntil([&] { return card.runNs(a) > 0; }, 10 * kMs);
  card.advanceBy(3300000 - card.runNs(a));
  a.channel().disable();
  const uint64_t asked = card.nowNs();
  card.preempt(a);
  // The PBDMA saves while the work goes on.
  card.advanceTo(asked + std::max(row.waits_ns, kSaves - kGrSave) + kGrSave - 1);
  EXPECT_EQ(card.read32(CHIP_PREEMPT) >> 20 & 1, 1u);
  card.advanceBy(1);
  EXPECT_EQ(card.read32(CHIP_PREEMPT) >> 20 & 1, 0u);
  EXPECT_EQ(card.runNs(a), 3300000 + row.waits_ns);
  a.channel().enable();
  a.channel().ring();
  card.advanceBy(100 * kMs);
  EXPECT_EQ(card.runNs(a), row.kernel.duration_ns) << "nothing runs twice, nothing is lost";
  EXPECT_EQ(a.channel().completed(), 1u);
}

INSTANTIATE_TEST_SUITE_P(
    Each, Cut,
    ::testing::Values(CutRow{"Cilp", {.duration_ns = 10 * kMs}, 0},
                      CutRow{"Copy", {.duration_ns = 10 * kMs, .preemption = CHIP_COPY}, 0},
                      CutRow{"Wfi", {.duration_ns = 10 * kMs, .preemption = CHIP_WFI}, 6700000},
                      CutRow{"CtaOfAMillisecond", {10 * kMs, CHIP_CTA, 1000000}, 700000},
                      CutRow{"CtaAtItsEdge", {10 * kMs, CHIP_CTA, 1100000}, 0},
                      CutRow{"CtaOfOneBlock", {10 * kMs, CHIP_CTA, 0}, 6700000},
                      CutRow{"CtaInItsLastBlock", {4 * kMs, CHIP_CTA, 3000000}, 700000},
                      CutRow{"CtaWithLongerBlocks", {4 * kMs, CHIP_CTA, 50000000}, 700000},
                      CutRow{"NoSuchType", {10 * kMs, 77, 1000000}, 6700000}),
    [](const auto &info) { return info.param.name; });

// Cut again and again, a kernel runs each of its nanoseconds once; a slice is over by a block at
// most.
TEST(ChipCta, OverrunsASliceByLessThanABlock) {
  QGPU_TRACE_SEED();
  std::mt19937_64 random(seed());
  for (int round = 0; round < 30; round++) {
    SimCard card;
    SimTsg &a = card.createTsg(), &b = card.createTsg();
    const auto block = static_cast<uint32_t>(1 + random() % (2 * kMs));
    const uint64_t duration = 5 * kMs + random() % (20 * kMs);
    a.channel().launch({duration, CHIP_CTA, block});
    b.channel().saturate(Kernel{kMs / 2});
    card.submit({&a, &b});
    card.advanceBy(200 * kMs);
    EXPECT_EQ(a.channel().completed(), 1u);
    EXPECT_EQ(card.runNs(a), duration);
    for (const Ran &r : card.records()) {
      if (r.tsg != a.id()) continue;
      EXPECT_LT(r.to_ns - r.from_ns, a.sliceNs() + block);
    }
    const chip_totals t = card.totals();
    EXPECT_EQ(t.run_ns + t.switch_ns + t.idle_ns, card.nowNs());
  }
}

// Once blocks are told not to start, they are not started again because nobody wants the engine
// any more; the kernel comes back to the PBDMA and goes on.
TEST(ChipCta, GoesOnWhenTheSwitchIsNotWantedAnyMore) {
  SimCard card;
  SimTsg &a = card.createTsg(), &b = card.createTsg();
  a.channel().launch({10 * kMs, CHIP_CTA, 3000000});
  b.channel().launch({.duration_ns = kMs});
  card.submit({&a, &b});
  card.advanceBy(kLoads + a.sliceNs() + 100000);
  EXPECT_EQ(statusCode(card.engineStatus()), CHIP_STATUS_SWITCH);
  card.submit({&a});
  card.advanceBy(20 * kMs);
  EXPECT_EQ(a.channel().completed(), 1u);
  EXPECT_EQ(card.runNs(a), 10 * kMs);
  EXPECT_EQ(card.runNs(b), 0u);
}

struct LimitRow {
  uint32_t type;
  uint64_t waits_ns;
};

TEST(ChipContext, CutsNoBetterThanItsImageSays) {
  for (const auto &[type, waits_ns] :
       {LimitRow{CHIP_WFI, 6700000}, {CHIP_CTA, 700000}, {CHIP_CILP, 0}, {3, 6700000}}) {
    SimCard card;
    SimTsg &a = card.createTsg({.ring_log2 = kBigRing});
    Image image(a, type);
    a.channel().launch({10 * kMs, CHIP_CILP, 1000000});
    card.submit({&a});
    card.advanceBy(kLoads + 3300000);
    a.channel().disable();
    card.preempt(a);
    card.advanceBy(100 * kMs);
    EXPECT_EQ(card.runNs(a), 3300000 + waits_ns) << type;
  }
}

TEST(ChipContext, CountsSavesByTypeAndRestores) {
  struct Row {
    uint32_t type, counter;
  };
  for (const auto &[type, counter] : {Row{CHIP_WFI, 0xd0}, {CHIP_CTA, 0xd4}, {CHIP_CILP, 0xdc}}) {
    SimCard card;
    SimTsg &a = card.createTsg({.ring_log2 = kBigRing}), &b = card.createTsg();
    Image image(a, type);
    a.channel().saturate(Kernel{kMs / 2});
    b.channel().saturate(Kernel{kMs / 2});
    card.submit({&a, &b});
    card.advanceBy(100 * kMs);
    EXPECT_GT(image.count(0xf4), 30u);
    EXPECT_LE(image.count(0xf8) - image.count(0xf4), 1u) << "on the engine or not";
    EXPECT_EQ(image.count(counter), image.count(0xf4));
    EXPECT_EQ(image.count(0xd0) + image.count(0xd4) + image.count(0xd8) + image.count(0xdc),
              image.count(0xf4));
  }
}

// A word written while the context is on the engine acts when it is loaded again.
TEST(ChipContext, ReadsItsTypeWhenItIsLoaded) {
  SimCard card;
  SimTsg &a = card.createTsg({.ring_log2 = kBigRing});
  Image image(a, CHIP_CILP);
  a.channel().launch({.duration_ns = 20 * kMs});
  card.submit({&a});
  card.advanceBy(kLoads + kMs);
  image.setType(CHIP_WFI);
  card.preempt(a);
  card.advanceBy(kSaves);
  EXPECT_EQ(card.runNs(a), kMs) << "cut as it was loaded";
  card.advanceBy(kLoads + kMs);
  a.channel().disable();
  card.preempt(a);
  card.advanceBy(100 * kMs);
  EXPECT_EQ(card.runNs(a), 20 * kMs) << "to the end of the kernel";
}

TEST(ChipContext, IgnoresAnImageWithoutItsMagicAndOneThatIsNotThere) {
  for (const bool there : {true, false}) {
    SimCard card;
    SimTsg &a = card.createTsg({.ring_log2 = kBigRing});
    Image image(a, CHIP_WFI);
    if (there)
      image.write(CHIP_CTX_MAGIC, 0);
    else
      static_cast<uint32_t *>(a.channel().instMemory().cpu)[CHIP_RAMIN_CONTEXT + 1] = 0xff;
    a.channel().launch({.duration_ns = 20 * kMs});
    card.submit({&a});
    card.advanceBy(kLoads + kMs);
    a.channel().disable();
    card.preempt(a);
    card.advanceBy(100 * kMs);
    EXPECT_EQ(card.runNs(a), kMs);
    EXPECT_EQ(image.count(0xf4), 0u);
  }
}

}  // namespace chip_context_test
}  // namespace qgpu::fakes
