// SPDX-License-Identifier: GPL-2.0
#include "reconcile.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "fakes/fake_kernel.hpp"
#include "fakes/seed.hpp"

namespace qgpu {
namespace reconcile_test {

class Reconcile : public ::testing::Test {
 protected:
  Reconcile() { kernel.addCard("GPU-0"); }

  DesiredTenant tenant(const std::string &name, uint32_t weight, uint32_t guarantee_ppm = 0,
                       std::vector<uint64_t> cgroups = {}) {
    TenantSettings settings;
    settings.weight = weight;
    settings.guarantee_ppm = guarantee_ppm;
    settings.cgroups = std::move(cgroups);
    return {name, settings};
  }

  DesiredState desired(std::vector<DesiredTenant> tenants) {
    tenants.push_back({"default", {}});
    return {{{0, "GPU-0", QGPU_POLICY_BURST_SHARE, cycle_ns, std::move(tenants)}}};
  }

  // The kernel as desired, read without the reconciler.
  void expectConverged(const DesiredState &state) {
    for (const DesiredCard &card : state.cards) {
      const CardSnapshot &has = kernel.cards.at(card.index);
      EXPECT_EQ(has.info.policy, card.policy);
      EXPECT_EQ(has.tenants.size(), card.tenants.size());
      for (const DesiredTenant &wanted : card.tenants) {
        TenantStatus *found = kernel.findTenant(card.index, wanted.name);
        ASSERT_TRUE(found) << wanted.name;
        EXPECT_EQ(found->asked, wanted.settings) << wanted.name;
      }
    }
  }

  fakes::FakeKernel kernel;
  fakes::FakeCard card{kernel};
  std::map<std::string, CycleRecord> cycles;
  int remembered = 0;
  uint64_t cycle_ns = 0;
  Reconciler reconciler{card, cycles, [this] { ++remembered; }};
};

TEST_F(Reconcile, BringsAFreshCardToTheDesiredStateInOneTransaction) {
  DesiredState state = desired({tenant("a", 200, 0, {11}), tenant("b", 100, 300'000, {12, 13})});
  EXPECT_TRUE(reconciler.converge(state).empty());
  expectConverged(state);
  EXPECT_EQ(kernel.plans_committed, 1);
}

TEST_F(Reconcile, SendsNothingWhenNothingDiffers) {
  DesiredState state = desired({tenant("a", 200)});
  reconciler.converge(state);
  Reconciler restarted(card, cycles, [] {});
  EXPECT_TRUE(restarted.converge(state).empty());
  EXPECT_EQ(kernel.plans.size(), 1u);
}

TEST_F(Reconcile, SendsOnlyWhatDiffers) {
  reconciler.converge(desired({tenant("a", 200), tenant("b", 100)}));
  kernel.plans.clear();
  reconciler.converge(desired({tenant("a", 200), tenant("b", 50)}));
  ASSERT_EQ(kernel.plans.size(), 1u);
  ASSERT_EQ(kernel.plans[0].tenants.size(), 1u);
  EXPECT_EQ(kernel.plans[0].tenants[0].name, "b");
  EXPECT_EQ(kernel.plans[0].tenants[0].weight, 50u);
  EXPECT_FALSE(kernel.plans[0].tenants[0].guarantee_ppm);
  EXPECT_FALSE(kernel.plans[0].policy);
}

TEST_F(Reconcile, BringsEverySettingToTheCardAndTakesEachBack) {
  DesiredTenant full = tenant("a", 200, 100'000);
  full.settings.ceiling_ppm = 300'000;
  full.settings.work_class = QGPU_CLASS_ONLINE;
  full.settings.wake_ns = 2'000'000;
  full.settings.hang_ns = 5'000'000;
  EXPECT_TRUE(reconciler.converge(desired({full})).empty());
  expectConverged(desired({full}));
  kernel.plans.clear();
  EXPECT_TRUE(reconciler.converge(desired({tenant("a", 200, 100'000)})).empty());
  expectConverged(desired({tenant("a", 200, 100'000)}));
  ASSERT_EQ(kernel.plans.size(), 1u);
  const TenantChange &change = kernel.plans[0].tenants.at(0);
  EXPECT_EQ(change.ceiling_ppm, uint32_t{QGPU_PPM});
  EXPECT_EQ(change.work_class, uint32_t{QGPU_CLASS_NORMAL});
  EXPECT_EQ(change.wake_ns, 0u);
  EXPECT_EQ(change.hang_ns, 0u);
  EXPECT_FALSE(change.weight);
}

TEST_F(Reconcile, RemovesWhatIsNotDesiredAndResetsDefault) {
  reconciler.converge(desired({tenant("a", 200), tenant("b", 100)}));
  kernel.findTenant(0, "default")->asked.weight = 9;
  reconciler.invalidate();
  DesiredState state = desired({tenant("b", 100)});
  EXPECT_TRUE(reconciler.converge(state).empty());
  expectConverged(state);
}

TEST_F(Reconcile, StaleGenerationReadsAfreshAndTriesAgain) {
  DesiredState state = desired({tenant("a", 200)});
  reconciler.converge(state);
  kernel.before_plan_set = [this] { kernel.foreignChange(0, "a", 77); };
  state = desired({tenant("a", 50)});
  EXPECT_TRUE(reconciler.converge(state).empty());
  expectConverged(state);
}

TEST_F(Reconcile, ForeignWriterWhoNeverStopsEndsInASentenceNotInALoop) {
  reconciler.converge(desired({tenant("a", 200)}));
  kernel.failNext("plan_set", {ESTALE, "", ""}, 1000);
  auto refusals = reconciler.converge(desired({tenant("a", 50)}));
  ASSERT_EQ(refusals.count("GPU-0"), 1u);
  EXPECT_EQ(refusals.at("GPU-0").sentence, "the plan is replaced by somebody else all the time");
}

TEST_F(Reconcile, CardThatSaysYesAndDoesNothingEndsInASentenceNotInALoop) {
  kernel.obeys = false;
  auto refusals = reconciler.converge(desired({tenant("a", 200)}));
  ASSERT_EQ(refusals.count("GPU-0"), 1u);
  EXPECT_EQ(refusals.at("GPU-0").sentence,
            "the card takes the plan and is not as desired afterwards");
  EXPECT_LT(kernel.plans.size(), 10u);
}

TEST_F(Reconcile, RefusalKeepsSentenceAndLeavesTheFormerPlan) {
  DesiredState before = desired({tenant("a", 200)});
  reconciler.converge(before);
  kernel.failNext("plan_set", {EIO, "the card did not take the plan", ""});
  auto refusals = reconciler.converge(desired({tenant("a", 1)}));
  EXPECT_EQ(refusals.at("GPU-0").sentence, "the card did not take the plan");
  expectConverged(before);
}

TEST_F(Reconcile, OneRefusingCardDoesNotHoldUpTheOthers) {
  kernel.addCard("GPU-1");
  DesiredState state = desired({tenant("a", 200)});
  state.cards.push_back(state.cards[0]);
  state.cards[1].index = 1;
  state.cards[1].uuid = "GPU-1";
  kernel.failNext("plan_set", {EIO, "broken", ""});
  auto refusals = reconciler.converge(state);
  EXPECT_EQ(refusals.size(), 1u);
  EXPECT_TRUE(kernel.findTenant(1, "a"));
}

TEST_F(Reconcile, MovesACgroupBetweenTenantsInOneTransaction) {
  reconciler.converge(desired({tenant("a", 100, 0, {5}), tenant("b", 100)}));
  kernel.plans.clear();
  DesiredState state = desired({tenant("a", 100), tenant("b", 100, 0, {5})});
  EXPECT_TRUE(reconciler.converge(state).empty());
  expectConverged(state);
  EXPECT_EQ(kernel.plans.size(), 1u);
}

TEST_F(Reconcile, DryRunAsksTheCardAndChangesNothing) {
  DesiredState state = desired({tenant("a", 200)});
  auto reply = reconciler.dryRun(state.cards[0]);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->tenants.size(), 1u);
  EXPECT_TRUE(kernel.plans[0].dry_run);
  EXPECT_FALSE(kernel.findTenant(0, "a"));
}

TEST_F(Reconcile, CycleOverrideIsSentOnceAndRemembered) {
  cycle_ns = 5'000'000;
  reconciler.converge(desired({}));
  EXPECT_EQ(kernel.cycle_overrides[0], 5'000'000u);
  EXPECT_EQ(cycles["GPU-0"], (CycleRecord{5'000'000, true}));
  EXPECT_EQ(remembered, 2);
  Reconciler restarted(card, cycles, [] {});
  restarted.converge(desired({}));
  EXPECT_EQ(kernel.plans_committed, 1);
  cycle_ns = 0;
  restarted.converge(desired({}));
  EXPECT_EQ(kernel.cycle_overrides[0], 0u);
}

TEST_F(Reconcile, CycleOverrideCutOffByACrashIsSentAgain) {
  cycle_ns = 5'000'000;
  reconciler.converge(desired({}));
  cycles["GPU-0"].sure = false;
  Reconciler restarted(card, cycles, [] {});
  restarted.converge(desired({}));
  EXPECT_EQ(kernel.plans_committed, 2);
}

TEST_F(Reconcile, CycleOverrideIsSentAgainToAReloadedDriver) {
  cycle_ns = 5'000'000;
  reconciler.converge(desired({}));
  kernel.load();
  reconciler.invalidate();
  reconciler.converge(desired({}));
  EXPECT_EQ(kernel.cycle_overrides[0], 5'000'000u);
}

TEST_F(Reconcile, ConvergesFromAnyStateToAnyOtherUnderFaults) {
  QGPU_TRACE_SEED();
  std::mt19937_64 random(fakes::seed());
  for (int round = 0; round < 400; ++round) {
    std::vector<DesiredTenant> tenants;
    std::vector<uint64_t> ids;
    for (uint64_t id = 1; id < 40; ++id)
      if (random() % 2) ids.push_back(id);
    uint32_t left = QGPU_PPM;
    for (int i = 0; i < 12; ++i) {
      if (random() % 2) continue;
      uint32_t guarantee = static_cast<uint32_t>(random() % (left / 1000 + 1)) * 1000;
      left -= guarantee;
      std::vector<uint64_t> own;
      while (!ids.empty() && random() % 3) {
        own.insert(own.begin(), ids.back());
        ids.pop_back();
      }
      tenants.push_back(
          tenant("t" + std::to_string(i), static_cast<uint32_t>(random() % 5 + 1), guarantee, own));
    }
    switch (random() % 5) {
      case 0:
        kernel.failNext("plan_set", {ESTALE, "", ""}, static_cast<int>(random() % 3));
        break;
      case 1:
        reconciler.invalidate();
        break;
      case 2:
        kernel.before_plan_set = [this] { kernel.foreignChange(0, "default", 3); };
        break;
      case 3:
        kernel.load();
        reconciler.invalidate();
        break;
      default:
        break;
    }
    DesiredState state = desired(tenants);
    auto refusals = reconciler.converge(state);
    ASSERT_TRUE(refusals.empty()) << refusals.begin()->second.text();
    // A foreign change that came when nothing differed is found at the next full look.
    reconciler.invalidate();
    ASSERT_TRUE(reconciler.converge(state).empty());
    expectConverged(state);
    size_t plans = kernel.plans.size();
    ASSERT_TRUE(reconciler.converge(state).empty());
    ASSERT_EQ(kernel.plans.size(), plans);
    kernel.before_plan_set = nullptr;
  }
}

}  // namespace reconcile_test
}  // namespace qgpu
