// SPDX-License-Identifier: GPL-2.0
//
// promise_test.cpp - what --check prints: shares, longest waits and deviations as the core plans
// them, for all tenants and for the worst set of them.
#include "promise.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "fakes/seed.hpp"

namespace qgpu {
namespace promise_test {

constexpr uint64_t kSwitchNs = 100'000;

DesiredCard cardOf(uint32_t policy, std::vector<TenantSettings> settings) {
  DesiredCard card;
  card.policy = policy;
  for (size_t i = 0; i < settings.size(); ++i)
    card.tenants.push_back({std::string(1, static_cast<char>('a' + i)), settings[i]});
  card.tenants.push_back({"default", {}});
  return card;
}

TenantSettings weight(uint32_t weight) {
  TenantSettings settings;
  settings.weight = weight;
  return settings;
}

TEST(Promise, OfTwoByWeightIsTheirRotation) {
  const auto promises =
      promisesOf(cardOf(QGPU_POLICY_BURST_SHARE, {weight(200), weight(100)}), kSwitchNs);
  ASSERT_EQ(promises.all.tenants.size(), 2u);  // not "default"
  EXPECT_NEAR(promises.all.tenants[0].share_ppm, 666'667, 1);
  EXPECT_NEAR(promises.all.tenants[1].share_ppm, 333'333, 1);
  // C = 19.8 ms: who has a third waits for two thirds of it, two switches and two cuts.
  EXPECT_NEAR(static_cast<double>(promises.all.tenants[1].wait_ns), 14.2e6, 0.2e6);
  EXPECT_NEAR(promises.all.tenants[0].off_ppm, 2.0 / 9 * 20'000, 100);
  EXPECT_NEAR(promises.all.loss_ppm, 10'000, 300);
  EXPECT_EQ(promises.worst.loss_ppm, promises.all.loss_ppm);
}

// A file of 64 cards and 1,000 tenants costs as many plans as one of one card.
TEST(PromiseBook, ComputesEqualCardsOnce) {
  std::vector<TenantSettings> settings;
  for (uint32_t i = 0; i < 1000; ++i) settings.push_back(weight(1 + i % 7));
  DesiredCard card = cardOf(QGPU_POLICY_BURST_SHARE, settings);
  PromiseBook book;
  const ComputedPromises *first = &book.of(card, kSwitchNs);
  const size_t plans = book.plans();
  EXPECT_GT(plans, 0u);
  // Seven kinds: all, without one, alone, and two of them.
  EXPECT_LE(plans, 1u + 7 + 7 + 7 * 8 / 2);
  for (uint32_t index = 1; index < 64; ++index) {
    card.index = index;
    card.uuid = "GPU-" + std::to_string(index);
    EXPECT_EQ(&book.of(card, kSwitchNs), first);
  }
  EXPECT_EQ(book.plans(), plans);
  // In what is planned they differ.
  book.of(card, 2 * kSwitchNs);
  card.tenants[3].settings.weight++;
  book.of(card, kSwitchNs);
  card.cycle_ns = 1;
  book.of(card, kSwitchNs);
  EXPECT_GT(book.plans(), 3 * plans);
}

// Of however many different settings.
TEST(PromiseBook, MakesNoMorePlansThanItSays) {
  std::vector<TenantSettings> settings;
  for (uint32_t i = 0; i < 200; ++i) settings.push_back(weight(1 + i));
  PromiseBook book;
  EXPECT_FALSE(book.of(cardOf(QGPU_POLICY_BURST_SHARE, settings), kSwitchNs).every_pair);
  EXPECT_LE(book.plans(), 1u + 2 * 200 + 4096);
}

TEST(Promise, OfTheWorstSetIsNoBetterThanOfAll) {
  std::vector<TenantSettings> settings(9, weight(100));
  const auto promises = promisesOf(cardOf(QGPU_POLICY_BURST_SHARE, settings), kSwitchNs);
  for (size_t i = 0; i < settings.size(); ++i) {
    EXPECT_GE(promises.worst.tenants[i].wait_ns, promises.all.tenants[i].wait_ns);
    // A pair has half each, which any nine have not.
    EXPECT_GE(promises.worst.tenants[i].off_ppm, 4'500u);
    EXPECT_LE(promises.worst.tenants[i].off_ppm, 5'500u);
  }
  EXPECT_GE(promises.worst.loss_ppm, promises.all.loss_ppm);
}

TEST(Promise, OfAnOnlineTenantIsItsShortWait) {
  std::vector<TenantSettings> settings(3, weight(100));
  settings[0].work_class = QGPU_CLASS_ONLINE;
  settings[1].work_class = QGPU_CLASS_OFFLINE;
  settings[2].work_class = QGPU_CLASS_OFFLINE;
  const auto promises = promisesOf(cardOf(QGPU_POLICY_BURST_SHARE, settings), kSwitchNs);
  EXPECT_EQ(promises.all.tenants[0].wait_ns, 500'000u);
  EXPECT_EQ(promises.all.tenants[0].share_ppm, 1'000'000u);
  // What is left to them, whenever that is.
  EXPECT_EQ(promises.all.tenants[1].share_ppm, 0u);
  EXPECT_EQ(promises.all.tenants[1].wait_ns, 0u);
}

// They take turns of 20 ms and more and lose the engine to it: no wait of theirs is known.
TEST(Promise, BesideAnOnlineTenantNoWaitIsPromisedToTheOthers) {
  std::vector<TenantSettings> settings(4, weight(100));
  settings[0].work_class = QGPU_CLASS_ONLINE;
  settings[2].guarantee_ppm = 200'000;
  settings[3].guarantee_ppm = settings[3].ceiling_ppm = 100'000;
  const auto promises = promisesOf(cardOf(QGPU_POLICY_BURST_SHARE, settings), kSwitchNs);
  EXPECT_TRUE(promises.beside_online);
  for (size_t i : {1, 2}) {
    EXPECT_GT(promises.all.tenants[i].share_ppm, 0u);
    EXPECT_EQ(promises.all.tenants[i].wait_ns, 0u);
    EXPECT_EQ(promises.worst.tenants[i].wait_ns, 0u);
  }
  EXPECT_GT(promises.worst.tenants[0].wait_ns, 0u);
  EXPECT_GT(promises.worst.tenants[3].wait_ns, 0u);  // its windows are on the clock
  const auto best_effort = promisesOf(cardOf(QGPU_POLICY_BEST_EFFORT, settings), kSwitchNs);
  EXPECT_FALSE(best_effort.beside_online);
}

// Whoever comes last has had its pair with the largest as well.
TEST(Promise, OfManyDifferentTenantsEachHasTheWorstPartner) {
  std::vector<TenantSettings> settings;
  for (uint32_t i = 0; i < 120; ++i) settings.push_back(weight(100 + i));
  settings.push_back(weight(10'000));
  const auto promises = promisesOf(cardOf(QGPU_POLICY_BURST_SHARE, settings), kSwitchNs);
  EXPECT_FALSE(promises.every_pair);
  for (size_t i = 0; i < 120; ++i) {
    const auto pair =
        promisesOf(cardOf(QGPU_POLICY_BURST_SHARE, {settings[i], settings.back()}), kSwitchNs);
    EXPECT_GE(promises.worst.tenants[i].off_ppm, pair.all.tenants[0].off_ppm) << i;
    EXPECT_GE(promises.worst.tenants[i].wait_ns, pair.all.tenants[0].wait_ns) << i;
  }
}

TEST(Promise, OfTenantsOfTheSameSettingsIsTheSame) {
  std::vector<TenantSettings> settings(120, weight(100));
  settings[60] = weight(3'000);
  const auto promises = promisesOf(cardOf(QGPU_POLICY_BURST_SHARE, settings), kSwitchNs);
  EXPECT_TRUE(promises.every_pair);
  for (size_t i : {1, 59, 61, 119}) {
    EXPECT_EQ(promises.worst.tenants[i].wait_ns, promises.worst.tenants[0].wait_ns);
    EXPECT_EQ(promises.worst.tenants[i].off_ppm, promises.worst.tenants[0].off_ppm);
    EXPECT_EQ(promises.longest_wait[i].has(i), promises.longest_wait[0].has(0));
    EXPECT_EQ(promises.longest_wait[i].has(60), promises.longest_wait[0].has(60));
  }
}

// A lone one has 20 ms at a time; then come both, and the plan is replaced meanwhile.
TEST(Promise, OfTheWorstSetCoversOneThatWakes) {
  const auto promises =
      promisesOf(cardOf(QGPU_POLICY_BURST_SHARE, {weight(2000), weight(100)}), kSwitchNs);
  EXPECT_LT(promises.all.tenants[0].wait_ns, 2'000'000u);
  EXPECT_EQ(promises.worst.tenants[0].wait_ns, 21'000'000u);
  EXPECT_FALSE(promises.longest_wait[0].has(0));
  EXPECT_TRUE(promises.longest_wait[0].has(1));
}

TEST(Promise, OfWindowsIsTheRestOfTwoPeriodsAndAWindowThatHadBegun) {
  std::vector<TenantSettings> settings(2);
  settings[0].guarantee_ppm = 300'000;
  settings[1].guarantee_ppm = 500'000;
  const auto promises = promisesOf(cardOf(QGPU_POLICY_FIXED_SHARE, settings), kSwitchNs);
  EXPECT_EQ(promises.all.tenants[0].share_ppm, 300'000u);
  EXPECT_EQ(promises.all.tenants[0].wait_ns, 2 * 14'000'000u + 2 * 10'000'000 + 150'000);
  EXPECT_EQ(promises.all.loss_ppm, 15'000u);  // two windows of 150 us in 20 ms
}

TEST(Promise, OfNobodyOrOfBestEffortIsNothing) {
  EXPECT_TRUE(promisesOf(cardOf(QGPU_POLICY_BURST_SHARE, {}), kSwitchNs).all.tenants.empty());
  const auto promises = promisesOf(cardOf(QGPU_POLICY_BEST_EFFORT, {weight(100)}), kSwitchNs);
  EXPECT_EQ(promises.all.tenants[0].wait_ns, 0u);
}

TEST(Promise, OfFourHundredTenantsIsComputedInASecond) {
  std::vector<TenantSettings> settings(400, weight(100));
  const auto promises = promisesOf(cardOf(QGPU_POLICY_BURST_SHARE, settings), kSwitchNs);
  EXPECT_EQ(promises.all.tenants.size(), 400u);
  EXPECT_EQ(promises.all.tenants[0].share_ppm, 2'500u);
}

// Random cards: whoever is promised a wait that is taken is promised no longer one.
TEST(Promise, OfAWaitThatWasAskedForIsNoLongerThanThat) {
  QGPU_TRACE_SEED();
  std::mt19937_64 random(fakes::seed());
  for (int round = 0; round < 300; ++round) {
    std::vector<TenantSettings> settings(2 + random() % 6);
    uint32_t left_ppm = 900'000;
    const bool online = random() % 4 == 0;
    for (TenantSettings &asked : settings) {
      asked.weight = static_cast<uint32_t>(100 + random() % 2000);
      asked.guarantee_ppm = random() % 3 ? 0 : std::min<uint32_t>(left_ppm, random() % 300'000);
      left_ppm -= asked.guarantee_ppm;
      if (asked.guarantee_ppm && random() % 2)
        asked.ceiling_ppm = asked.guarantee_ppm;
      else if (random() % 3 == 0)
        asked.ceiling_ppm = std::max<uint32_t>(asked.guarantee_ppm + 1, 400'000);
      asked.work_class = random() % 4 ? uint32_t{QGPU_CLASS_NORMAL} : uint32_t{QGPU_CLASS_OFFLINE};
    }
    if (online) settings[0].work_class = QGPU_CLASS_ONLINE;
    DesiredCard card = cardOf(QGPU_POLICY_BURST_SHARE, settings);
    if (random() % 2) card.cycle_ns = 1'000'000 + random() % 60'000'000;
    const auto bounds = wakeBoundsOf(card, kSwitchNs);
    for (size_t i = 0; i < settings.size(); ++i)
      if (bounds[i].ns <= kWakeMaxNs && random() % 2)
        card.tenants[i].settings.wake_ns =
            std::min(bounds[i].ns * (2 + random() % 4) / 2, kWakeMaxNs);
    const auto promises = promisesOf(card, kSwitchNs);
    for (size_t i = 0; i < settings.size(); ++i) {
      const uint64_t wake_ns = card.tenants[i].settings.wake_ns;
      if (!wake_ns) continue;
      EXPECT_LE(promises.worst.tenants[i].wait_ns, wake_ns)
          << "round " << round << ", tenant " << i;
      EXPECT_LE(promises.all.tenants[i].wait_ns, wake_ns) << "round " << round << ", tenant " << i;
    }
  }
}

// A card under either method, of tenants of all classes, with few or many of them online.
DesiredCard randomCard(std::mt19937_64 &random) {
  std::vector<TenantSettings> settings(2 + random() % 9);
  const uint64_t online_in = 1 + random() % 12;
  uint32_t left_ppm = QGPU_PPM;
  for (TenantSettings &asked : settings) {
    asked.weight = static_cast<uint32_t>(std::exp2(static_cast<double>(random() % 1329) / 100));
    if (random() % 3 == 0) asked.guarantee_ppm = std::min<uint32_t>(left_ppm, random() % 300'000);
    left_ppm -= asked.guarantee_ppm;
    if (asked.guarantee_ppm && random() % 2)
      asked.ceiling_ppm = asked.guarantee_ppm;
    else if (random() % 3 == 0)
      asked.ceiling_ppm = asked.guarantee_ppm + 1 +
                          static_cast<uint32_t>(random() % (QGPU_PPM - asked.guarantee_ppm));
    asked.work_class = random() % 4 ? uint32_t{QGPU_CLASS_NORMAL} : uint32_t{QGPU_CLASS_OFFLINE};
    if (random() % 12 >= online_in) asked.work_class = QGPU_CLASS_ONLINE;
  }
  DesiredCard card = cardOf(QGPU_POLICY_BURST_SHARE, settings);
  if (random() % 2) card.method = CardMethod::kRm;
  if (random() % 3 == 0) card.cycle_ns = 1'000'000 + random() % 60'000'000;
  return card;
}

// Random cards under both methods: whatever is taken is kept by every set of tenants that is looked
// at, from the shortest wait on.
TEST(Promise, OfAWaitThatIsTakenIsKeptUnderBothMethods) {
  QGPU_TRACE_SEED();
  std::mt19937_64 random(fakes::seed());
  for (int round = 0; round < 400; ++round) {
    DesiredCard card = randomCard(random);
    const uint64_t switch_ns =
        random() % 3 ? switchNsOf(card.method, 0) : 50'000 + random() % 400'000;
    const auto bounds = wakeBoundsOf(card, switch_ns);
    for (size_t i = 0; i + 1 < card.tenants.size(); ++i)
      if (bounds[i].ns <= kWakeMaxNs && random() % 2)
        card.tenants[i].settings.wake_ns =
            random() % 3 ? bounds[i].ns
                         : std::min(bounds[i].ns * (8 + random() % 24) / 8, kWakeMaxNs);
    const auto promises = promisesOf(card, switch_ns);
    for (size_t i = 0; i + 1 < card.tenants.size(); ++i) {
      const uint64_t wake_ns = card.tenants[i].settings.wake_ns;
      if (!wake_ns) continue;
      EXPECT_GT(promises.worst.tenants[i].wait_ns, 0u) << "round " << round << ", tenant " << i;
      EXPECT_LE(promises.worst.tenants[i].wait_ns, wake_ns)
          << "round " << round << ", tenant " << i << ", bound " << bounds[i].ns;
    }
  }
}

}  // namespace promise_test
}  // namespace qgpu
