// SPDX-License-Identifier: GPL-2.0
//
// promise_test.cpp - what --check prints: shares, longest waits and deviations as the core plans
// them, for all tenants and for the worst set of them.
#include "promise.hpp"

#include <gtest/gtest.h>

namespace qgpu {
namespace {

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
  // C = 19.8 ms: who has a third waits for two thirds of it and two switches.
  EXPECT_NEAR(static_cast<double>(promises.all.tenants[1].wait_ns), 13.4e6, 0.2e6);
  EXPECT_NEAR(promises.all.tenants[0].off_ppm, 2.0 / 9 * 20'000, 100);
  EXPECT_NEAR(promises.all.loss_ppm, 10'000, 300);
  EXPECT_EQ(promises.worst.loss_ppm, promises.all.loss_ppm);
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

// A lone one has 20 ms at a time; then come both, and the plan is replaced meanwhile.
TEST(Promise, OfTheWorstSetCoversOneThatWakes) {
  const auto promises =
      promisesOf(cardOf(QGPU_POLICY_BURST_SHARE, {weight(2000), weight(100)}), kSwitchNs);
  EXPECT_LT(promises.all.tenants[0].wait_ns, 2'000'000u);
  EXPECT_EQ(promises.worst.tenants[0].wait_ns, 20'350'000u);
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

}  // namespace
}  // namespace qgpu
