// SPDX-License-Identifier: GPL-2.0
// Looking changes nothing: a random history, watched or not, leaves the same record.
#include <gtest/gtest.h>

#include "fakes/seed.hpp"
#include "unit/chip_story.hpp"

namespace qgpu::fakes {
namespace chip_laziness_test {

TEST(ChipLaziness, LookingChangesNothing) {
  QGPU_TRACE_SEED();
  for (uint64_t s = seed(); s < seed() + 150; s++) {
    std::mt19937_64 random(s);
    chip_switches switches;
    for (size_t i = 0; i < sizeof(switches); i++)
      reinterpret_cast<bool *>(&switches)[i] = random() & 1;
    const Story unwatched = Actor(s, false, switches).play(120);
    const Story watched = Actor(s, true, switches).play(120);
    ASSERT_TRUE(unwatched == watched) << "QGPU_SEED=" << s;
    ASSERT_FALSE(HasFailure()) << "QGPU_SEED=" << s;
  }
}

// Without the machine around it: one big step and a million small ones end in the same place.
TEST(ChipLaziness, OneStepIsAsGoodAsMany) {
  std::vector<Ran> records[2];
  chip_totals totals[2];
  for (int many = 0; many < 2; many++) {
    SimCard card;
    SimTsg &a = card.createTsg({.timeout = 3, .scale = 5}), &b = card.createTsg({.channels = 2});
    for (int i = 0; i < 500; i++) {
      a.channel().launch({.duration_ns = 10000u + 37u * static_cast<unsigned>(i)});
      b.channel(0).launch({70001, i % 3 ? CHIP_CILP : CHIP_WFI});
      b.channel(1).launch({.duration_ns = 33333});
    }
    card.submit({&a, &b, &a});
    const uint64_t end = card.nowNs() + 100'000'000;
    if (many) {
      for (uint64_t t = card.nowNs(); t < end; t += 101) chip_advance(card.model(), t);
    }
    chip_advance(card.model(), end);
    records[many] = card.records();
    totals[many] = card.totals();
  }
  EXPECT_EQ(records[0], records[1]);
  EXPECT_EQ(std::memcmp(&totals[0], &totals[1], sizeof(totals[0])), 0);
  EXPECT_EQ(totals[0].kernels, 1500u);
}

// A host that sleeps until chip_next_event_ns() misses no completion.
TEST(ChipLaziness, NextEventIsNeverTooLate) {
  SimCard card;
  SimTsg &a = card.createTsg(), &b = card.createTsg();
  uint64_t late = 0;
  for (SimTsg *tsg : {&a, &b})
    tsg->channel().onComplete([&](SimChannel &, const chip_completion &done) {
      late = std::max<uint64_t>(late, card.nowNs() - done.time_ns);
    });
  a.channel().saturate(Kernel{123456}, 20);
  b.channel().syncLaunch({.duration_ns = 4567}, 89012);
  card.submit({&a, &b});
  card.advanceBy(1'000'000'000);
  EXPECT_EQ(late, 0u);
  EXPECT_GT(b.channel().completed(), 300u);
}

TEST(ChipLaziness, NothingHappensOnAnIdleChip) {
  SimCard card;
  SimTsg &a = card.createTsg();
  EXPECT_EQ(chip_next_event_ns(card.model()), U64_MAX);
  a.channel().launch({.duration_ns = 1000});
  card.submit({&a});
  card.advanceBy(1'000'000);
  EXPECT_EQ(chip_next_event_ns(card.model()), U64_MAX);
  chip_advance(card.model(), U64_MAX);
  EXPECT_EQ(card.totals().idle_ns + card.totals().run_ns + card.totals().switch_ns, U64_MAX);
}

}  // namespace chip_laziness_test
}  // namespace qgpu::fakes
