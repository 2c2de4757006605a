// SPDX-License-Identifier: GPL-2.0
// Who runs for how long: shares, dropped slices, repeated visits, channels of one TSG.
#include <gtest/gtest.h>

#include "fakes/sim_card.hpp"

namespace qgpu::fakes {
namespace chip_rotation_test {

constexpr uint64_t kMs = 1000000, kSecond = 1000 * kMs, kSwitch = 100000;

struct Shares {
  const char *what;
  std::vector<std::pair<uint8_t, uint8_t>> slices;  // timeout, scale
  uint64_t kernel_ns;
};

TEST(ChipRotation, SharesAreSlicesOverSlicesAndSwitches) {
  const Shares rows[] = {
      {"two equal", {{128, 3}, {128, 3}}, kMs},
      {"short kernels", {{128, 3}, {128, 3}}, 10000},
      {"long kernels", {{128, 3}, {128, 3}}, kSecond},
      {"odd kernels", {{128, 3}, {200, 4}}, 777777},
      {"one to ninety-nine", {{125, 2}, {193, 8}}, 3 * kMs},
      {"five", {{128, 3}, {250, 3}, {100, 5}, {128, 3}, {255, 6}}, 2 * kMs},
      {"one unit", {{1, 0}, {128, 3}}, kMs},
      {"zero is one unit", {{0, 15}, {128, 3}}, kMs},
  };
  for (const Shares &row : rows) {
    SimCard card;
    std::vector<SimTsg *> tsgs;
    for (auto [timeout, scale] : row.slices) {
      tsgs.push_back(&card.createTsg({.timeout = timeout, .scale = scale}));
      tsgs.back()->channel().saturate(Kernel{row.kernel_ns}, 200);
    }
    card.submit(tsgs);
    uint64_t round = 0;
    for (SimTsg *tsg : tsgs) round += std::max<uint64_t>(tsg->sliceNs(), 1024) + kSwitch;
    // The first load ends 50 us after the fetch; from there on whole rounds.
    card.advanceBy(50000);
    std::vector<uint64_t> before;
    for (SimTsg *tsg : tsgs) before.push_back(card.runNs(*tsg));
    card.advanceBy(7 * round);
    for (size_t i = 0; i < tsgs.size(); i++)
      EXPECT_EQ(card.runNs(*tsgs[i]) - before[i], 7 * std::max<uint64_t>(tsgs[i]->sliceNs(), 1024))
          << row.what << ", tenant " << i;
  }
}

TEST(ChipRotation, GivesEachVisitOneUnbrokenSlice) {
  SimCard card;
  SimTsg &a = card.createTsg({.timeout = 125, .scale = 4}), &b = card.createTsg();
  a.channel().saturate(Kernel{150000}, 50);
  b.channel().saturate(Kernel{30 * kMs});
  card.submit({&a, &b});
  card.advanceBy(100 * kMs);
  ASSERT_GT(card.records().size(), 20u);
  for (size_t i = 0; i < card.records().size(); i++) {
    const Ran &r = card.records()[i];
    EXPECT_EQ(r.tsg, (i % 2 ? b : a).id());
    EXPECT_EQ(r.to_ns - r.from_ns, (i % 2 ? b : a).sliceNs());
    if (i) {
      EXPECT_EQ(r.from_ns - card.records()[i - 1].to_ns, kSwitch);
    }
  }
}

TEST(ChipRotation, SkipsIdleTenantsForNothing) {
  SimCard card;
  SimTsg &a = card.createTsg(), &idle = card.createTsg(), &b = card.createTsg();
  a.channel().saturate(Kernel{kMs});
  b.channel().saturate(Kernel{kMs});
  card.submit({&a, &idle, &b});
  card.advanceBy(50000 + 10 * (a.sliceNs() + b.sliceNs() + 2 * kSwitch));
  EXPECT_EQ(card.runNs(a), 10 * a.sliceNs());
  EXPECT_EQ(card.runNs(b), 10 * b.sliceNs());
}

TEST(ChipRotation, DropsTheRestOfASliceWhenWorkEnds) {
  SimCard card;
  SimTsg &a = card.createTsg({.timeout = 250, .scale = 6}), &b = card.createTsg();
  a.channel().launch({.duration_ns = 3 * kMs});
  b.channel().saturate(Kernel{kMs});
  card.submit({&a, &b});
  card.advanceBy(50000 + 3 * kMs + kSwitch + 7 * kMs);
  EXPECT_EQ(card.runNs(a), 3 * kMs);
  EXPECT_EQ(card.runNs(b), 7 * kMs);
  EXPECT_EQ(card.totals().switches, 2u);
}

TEST(ChipRotation, LetsALoneTenantGoOnWithoutASave) {
  SimCard card;
  SimTsg &a = card.createTsg(), &b = card.createTsg();
  a.channel().saturate(Kernel{kMs});
  card.submit({&a, &b});
  card.advanceBy(50000 + kSecond);
  EXPECT_EQ(card.runNs(a), kSecond);
  EXPECT_EQ(card.totals().switches, 1u);
}

TEST(ChipRotation, LetsALoneTenantFinishItsSliceWhenAnotherWakes) {
  SimCard card;
  SimTsg &a = card.createTsg(), &b = card.createTsg();
  a.channel().saturate(Kernel{kMs});
  card.submit({&a, &b});
  card.advanceBy(50000 + 10 * a.sliceNs() + a.sliceNs() / 3);
  b.channel().launch({.duration_ns = kMs});
  card.advanceBy(5 * kMs);
  EXPECT_EQ(b.channel().lastCompletionNs(),
            10100 + 50000 + 50 * 2 + 11 * a.sliceNs() + kSwitch + kMs);
}

TEST(ChipRotation, GivesATenantListedTwiceTwoVisitsARound) {
  SimCard card;
  SimTsg &a = card.createTsg(), &b = card.createTsg(), &c = card.createTsg();
  for (SimTsg *tsg : {&a, &b, &c}) tsg->channel().saturate(Kernel{kMs});
  card.submit({&a, &b, &a, &c});
  card.advanceBy(50000 + 10 * 4 * (a.sliceNs() + kSwitch));
  EXPECT_EQ(card.runNs(a), 20 * a.sliceNs());
  EXPECT_EQ(card.runNs(b), 10 * a.sliceNs());
  EXPECT_EQ(card.runNs(c), 10 * a.sliceNs());
}

TEST(ChipRotation, RunsTwoVisitsInARowWithoutASwitch) {
  SimCard card;
  SimTsg &a = card.createTsg(), &b = card.createTsg();
  a.channel().saturate(Kernel{kMs});
  b.channel().saturate(Kernel{kMs});
  card.submit({&a, &a, &b});
  card.advanceBy(50000 + 10 * (3 * a.sliceNs() + 2 * kSwitch));
  EXPECT_EQ(card.runNs(a), 20 * a.sliceNs());
  EXPECT_EQ(card.runNs(b), 10 * a.sliceNs());
}

TEST(ChipRotation, TakesTheChannelsOfATsgInTurns) {
  SimCard card;
  SimTsg &a = card.createTsg({.channels = 3}), &b = card.createTsg();
  a.channel(0).saturate(Kernel{100000}, 50);
  a.channel(1).saturate(Kernel{100000}, 50);
  a.channel(2).saturate(Kernel{100000}, 50);
  b.channel().saturate(Kernel{kMs});
  card.submit({&a, &b});
  card.advanceBy(50000 + 30 * (a.sliceNs() + b.sliceNs() + 2 * kSwitch));
  EXPECT_EQ(card.runNs(a), 30 * a.sliceNs()) << "turns within a TSG cost nothing";
  const uint64_t most =
      std::max({a.channel(0).completed(), a.channel(1).completed(), a.channel(2).completed()});
  const uint64_t least =
      std::min({a.channel(0).completed(), a.channel(1).completed(), a.channel(2).completed()});
  EXPECT_LE(most - least, 1u);
}

TEST(ChipRotation, NoticesAnotherChannelOfTheRunningTsg) {
  SimCard card;
  SimTsg &a = card.createTsg({.channels = 2});
  a.channel(0).launch({.duration_ns = kMs});
  card.submit({&a});
  card.advanceBy(500000);
  a.channel(1).launch({.duration_ns = kMs});
  card.advanceBy(5 * kMs);
  EXPECT_EQ(a.channel(1).lastCompletionNs() - a.channel(0).lastCompletionNs(), kMs);
}

TEST(ChipRotation, KeepsACutKernelsRemainingTimeExact) {
  SimCard card;
  SimTsg &a = card.createTsg({.timeout = 97, .scale = 1}), &b = card.createTsg();
  a.channel().launch({.duration_ns = 123456789});
  b.channel().saturate(Kernel{kMs});
  card.submit({&a, &b});
  card.advanceBy(3 * kSecond);
  ASSERT_EQ(a.channel().completed(), 1u);
  EXPECT_EQ(card.runNs(a), 123456789u);
}

TEST(ChipRotation, PaysForSmallLaunchesWithTheirLoads) {
  SimCard card;
  SimTsg &a = card.createTsg();
  a.channel().syncLaunch({.duration_ns = 50000}, 200000);
  card.submit({&a});
  card.advanceBy(kSecond);
  // kernel, gap, then only the PBDMA to load: the context stayed on the engine
  EXPECT_NEAR(static_cast<double>(a.channel().completed()), 1e9 / 255000, 2);
  EXPECT_EQ(card.totals().switches, 1u);
}

TEST(ChipRotation, ReloadsBothWhenAnotherTenantWasThereInBetween) {
  SimCard card;
  SimTsg &a = card.createTsg(), &b = card.createTsg();
  card.submit({&a, &b});
  a.channel().launch({.duration_ns = kMs});
  card.advanceBy(10 * kMs);
  const uint64_t rung = card.nowNs();
  b.channel().launch({.duration_ns = kMs});
  card.advanceBy(10 * kMs);
  EXPECT_EQ(b.channel().lastCompletionNs(), rung + 45000 + 45000 + 5000 + kMs)
      << "save of the idle context, load, PBDMA";
}

TEST(ChipRotation, TotalsAddUpToElapsedTime) {
  SimOptions options;
  options.start_ns = 12345;
  SimCard card(options);
  SimTsg &a = card.createTsg(), &b = card.createTsg();
  a.channel().saturate(Kernel{333333});
  b.channel().syncLaunch({.duration_ns = 77777}, 555555);
  card.submit({&a, &b});
  for (int i = 0; i < 1000; i++) {
    card.advanceBy(123457);
    const chip_totals t = card.totals();
    ASSERT_EQ(t.run_ns + t.switch_ns + t.idle_ns, card.nowNs() - 12345);
    ASSERT_EQ(t.run_ns, card.runNs(a) + card.runNs(b));
  }
  for (uint32_t engine = 1; engine < CHIP_ENGINES; engine++)
    EXPECT_EQ(card.totals(engine).idle_ns, card.nowNs() - 12345) << engine;
}

TEST(ChipRotation, ServesOtherRunlistsAtTheSameTime) {
  SimCard card;
  SimTsg &gr = card.createTsg(), &copy = card.createTsg({.runlist = 1});
  gr.channel().saturate(Kernel{kMs});
  copy.channel().saturate(Kernel{kMs});
  card.submit({&gr});
  card.submit({&copy}, 1);
  card.advanceBy(10 * kMs);
  EXPECT_GT(card.runNs(gr), 9 * kMs);
  EXPECT_GT(card.runNs(copy), 9 * kMs);
  EXPECT_EQ(card.totals(3).run_ns, card.runNs(copy));
}

TEST(ChipRotation, ForgetsATsgOnRequest) {
  SimCard card;
  SimTsg &a = card.createTsg();
  a.channel().saturate(Kernel{kMs});
  card.submit({&a});
  card.advanceBy(10 * kMs);
  chip_tsg_forget(card.model(), a.id());
  EXPECT_EQ(card.runNs(a), 0u);
  card.advanceBy(kMs);
  EXPECT_EQ(card.runNs(a), kMs);
}

}  // namespace chip_rotation_test
}  // namespace qgpu::fakes
