// SPDX-License-Identifier: GPL-2.0
#include "policy.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <numeric>

#include "fakes/seed.hpp"

namespace qgpu {
namespace {

CardInfo cardNamed(uint32_t index, const std::string &uuid) {
  CardInfo card;
  card.index = index;
  card.uuid = uuid;
  return card;
}

ConfigIr parsed(const std::string &text) {
  ConfigOutcome outcome = parseConfig(text, "f");
  EXPECT_TRUE(outcome.problems.empty()) << outcome.problems[0].text();
  return outcome.ir;
}

PolicyOutcome computed(const std::string &text, const Edits &edits = {}) {
  return compute(parsed(text), edits, {cardNamed(0, "GPU-0"), cardNamed(1, "GPU-1")}, {});
}

std::string problemOf(const std::string &text) {
  PolicyOutcome outcome = computed(text);
  return outcome.problems.size() == 1 ? outcome.problems[0].text()
                                      : std::to_string(outcome.problems.size()) + " problems";
}

const TenantSettings &settingsOf(const DesiredCard &card, const std::string &name) {
  for (const DesiredTenant &tenant : card.tenants)
    if (tenant.name == name) return tenant.settings;
  throw std::runtime_error("no tenant " + name);
}

TEST(Policy, EveryTenthOfAPercentIsExactlyAThousandPpm) {
  for (int tenths = 0; tenths <= 1000; ++tenths) {
    std::string percent = std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
    PolicyOutcome outcome =
        computed("[[card]]\nmatch = 0\n[tenant.a]\nguarantee = " + percent + "\n");
    ASSERT_TRUE(outcome.problems.empty()) << percent;
    ASSERT_EQ(settingsOf(outcome.state.cards[0], "a").guarantee_ppm,
              static_cast<uint32_t>(tenths) * 1000)
        << percent;
  }
}

TEST(Policy, OnlyNamedCardsAreTouched) {
  PolicyOutcome outcome = computed("[[card]]\nmatch = \"GPU-1\"\n[tenant.a]\n");
  ASSERT_EQ(outcome.state.cards.size(), 1u);
  EXPECT_EQ(outcome.state.cards[0].uuid, "GPU-1");
  EXPECT_TRUE(computed("[tenant.a]\n").state.cards.empty());
}

TEST(Policy, UuidWinsOverIndexOverAll) {
  PolicyOutcome outcome = computed(
      "[[card]]\nmatch = \"all\"\npolicy = \"best-effort\"\n"
      "[[card]]\nmatch = 1\ncycle_ms = 7\n"
      "[[card]]\nmatch = \"GPU-1\"\ncycle_ms = 9\n");
  ASSERT_EQ(outcome.state.cards.size(), 2u);
  EXPECT_EQ(outcome.state.cards[0].policy, uint32_t{QGPU_POLICY_BEST_EFFORT});
  EXPECT_EQ(outcome.state.cards[1].policy, uint32_t{QGPU_POLICY_BURST_SHARE});
  EXPECT_EQ(outcome.state.cards[1].cycle_ns, 9'000'000u);
}

TEST(Policy, OverrideForOneCardChangesOnlyThatCard) {
  PolicyOutcome outcome = computed(
      "[[card]]\nmatch = \"all\"\n[tenant.a]\nguarantee = 10\nweight = 7\n"
      "[tenant.a.card.\"GPU-1\"]\nguarantee = 60\n");
  EXPECT_EQ(settingsOf(outcome.state.cards[0], "a").guarantee_ppm, 100'000u);
  EXPECT_EQ(settingsOf(outcome.state.cards[1], "a").guarantee_ppm, 600'000u);
  EXPECT_EQ(settingsOf(outcome.state.cards[1], "a").weight, 7u);
}

TEST(Policy, DefaultTenantIsAlwaysDesired) {
  PolicyOutcome outcome = computed("[[card]]\nmatch = 0\n[tenant.a]\n");
  EXPECT_EQ(settingsOf(outcome.state.cards[0], "default"), TenantSettings{});
  outcome = computed("[[card]]\nmatch = 0\n[tenant.default]\nweight = 10\n");
  EXPECT_EQ(settingsOf(outcome.state.cards[0], "default").weight, 10u);
  EXPECT_EQ(outcome.state.cards[0].tenants.size(), 1u);
}

TEST(Policy, RefusesGuaranteesOverAWholeCardWithSumAndNames) {
  std::string config =
      "[[card]]\nmatch = 1\n[tenant.a]\nguarantee = 60\n[tenant.b]\nguarantee = 40.1\n";
  EXPECT_EQ(problemOf(config),
            "f:6: tenant: guarantees on card GPU-1 are 100.1 % together, over 100 %: "
            "\"a\" 60.0 %, \"b\" 40.1 %");
  EXPECT_EQ(computed(config).problems[0].err, ENOSPC);
}

TEST(Policy, ExactlyAWholeCardIsNotOverCommitted) {
  EXPECT_TRUE(computed("[[card]]\nmatch = 0\n[tenant.a]\nguarantee = 66.6\n[tenant.b]\n"
                       "guarantee = 33.4\n")
                  .problems.empty());
}

TEST(Policy, OverCommitmentByAnOverrideIsFoundWithoutTheCard) {
  ConfigIr config = parsed(
      "[[card]]\nmatch = \"all\"\n[tenant.a]\nguarantee = 60\n[tenant.b]\nguarantee = 30\n"
      "[tenant.b.card.\"GPU-far\"]\nguarantee = 50\n");
  PolicyOutcome outcome = compute(config, {}, placeholderInventory(config), {});
  ASSERT_EQ(outcome.problems.size(), 1u);
  EXPECT_NE(outcome.problems[0].text().find("GPU-far are 110.0 %"), std::string::npos);
}

TEST(Policy, CeilingBelowGuaranteeIsRefused) {
  EXPECT_EQ(problemOf("[[card]]\nmatch = 0\n[tenant.a]\nguarantee = 50\nceiling = 40\n"),
            "f:5: tenant.a.ceiling: the ceiling 40.0 % is below the guarantee 50.0 %");
}

TEST(Policy, CeilingIsRefusedWhereItIsNotEnforced) {
  EXPECT_EQ(problemOf("[[card]]\nmatch = 0\n[tenant.a]\nceiling = 40\n"),
            "f:4: tenant.a.ceiling: a ceiling below 100 % under burst-share is not enforced in "
            "this version and is therefore refused");
  EXPECT_TRUE(computed("[[card]]\nmatch = 0\n[tenant.a]\nceiling = 100\n").problems.empty());
}

TEST(Policy, AnExecutorEnforcesCeilingsUnderBurstShare) {
  const std::string rm = "[[card]]\nmatch = 0\nmethod = \"rm\"\n";
  const std::string tenant = "[tenant.a]\nguarantee = 10\nceiling = 30\n";
  PolicyOutcome outcome = computed(rm + tenant);
  ASSERT_TRUE(outcome.problems.empty()) << outcome.problems[0].text();
  EXPECT_EQ(outcome.state.cards[0].method, CardMethod::kRm);
  EXPECT_EQ(settingsOf(outcome.state.cards[0], "a").ceiling_ppm, 300'000u);
  EXPECT_EQ(settingsOf(outcome.state.cards[0], "default").ceiling_ppm, uint32_t{QGPU_PPM});
  EXPECT_EQ(computed(rm + "policy = \"best-effort\"\n" + tenant).problems.size(), 1u);
  EXPECT_EQ(computed("[[card]]\nmatch = 0\nmethod = \"module\"\n" + tenant).problems.size(), 1u);
  EXPECT_EQ(computed(rm + "[tenant.a]\nguarantee = 40\nceiling = 30\n").problems.size(), 1u);
}

TEST(Policy, FixedShareNeedsAGuaranteeAndItsCeilingIsTheGuarantee) {
  std::string fixed = "[[card]]\nmatch = 0\npolicy = \"fixed-share\"\n[tenant.a]\n";
  EXPECT_EQ(problemOf(fixed),
            "f:4: tenant.a.guarantee: has no guarantee: under fixed-share on card GPU-0 it would "
            "never run");
  EXPECT_TRUE(computed(fixed + "guarantee = 30\nceiling = 30\n").problems.empty());
  EXPECT_EQ(problemOf(fixed + "guarantee = 30\nceiling = 40\n"),
            "f:6: tenant.a.ceiling: under fixed-share the ceiling is the guarantee (30.0 %): leave "
            "it out");
}

TEST(Policy, EditsWinOverTheFileAndTheNarrowerEditWins) {
  Edits edits;
  edits.of("a", "").weight = 5;
  edits.of("a", "").guarantee_tenths = 100;
  edits.of("a", "GPU-1").weight = 6;
  edits.cards.push_back({"GPU-0", QGPU_POLICY_BEST_EFFORT, ""});
  PolicyOutcome outcome = computed("[[card]]\nmatch = \"all\"\n[tenant.a]\nweight = 1\n", edits);
  const auto &cards = outcome.state.cards;
  EXPECT_EQ(settingsOf(cards[0], "a").weight, 5u);
  EXPECT_EQ(settingsOf(cards[1], "a").weight, 6u);
  EXPECT_EQ(settingsOf(cards[1], "a").guarantee_ppm, 100'000u);
  EXPECT_EQ(cards[0].policy, uint32_t{QGPU_POLICY_BEST_EFFORT});
  EXPECT_EQ(cards[1].policy, uint32_t{QGPU_POLICY_BURST_SHARE});
}

TEST(Policy, TwoToOneIsTwoThirdsAndOneThird) {
  PolicyOutcome outcome =
      computed("[[card]]\nmatch = 0\n[tenant.a]\nweight = 200\n[tenant.b]\nweight = 100\n");
  auto shares = sharesWhenAllBusy(outcome.state.cards[0]);
  EXPECT_EQ(shares[0].share_ppm, 666'667u);
  EXPECT_EQ(shares[1].share_ppm, 333'333u);
}

TEST(Policy, UnderEqualShareAllAreAlike) {
  PolicyOutcome outcome = computed(
      "[[card]]\nmatch = 0\npolicy = \"equal-share\"\n[tenant.a]\nweight = 200\n"
      "[tenant.b]\nguarantee = 40\n");
  ASSERT_TRUE(outcome.problems.empty());
  EXPECT_EQ(outcome.state.cards[0].policy, uint32_t{QGPU_POLICY_EQUAL_SHARE});
  auto shares = sharesWhenAllBusy(outcome.state.cards[0]);
  EXPECT_EQ(shares[0].share_ppm, 500'000u);
  EXPECT_EQ(shares[1].share_ppm, 500'000u);
  EXPECT_NE(problemOf("[[card]]\nmatch = 0\npolicy = \"equal-share\"\n[tenant.a]\n"
                      "ceiling = 40\n")
                .find("a ceiling below 100 % under equal-share is not enforced"),
            std::string::npos);
}

TEST(Policy, ComputedSharesAddUpExactlyAndKeepGuarantees) {
  QGPU_TRACE_SEED();
  std::mt19937_64 random(fakes::seed());
  for (int round = 0; round < 2000; ++round) {
    DesiredCard card;
    uint32_t left = 1000;
    for (uint64_t i = random() % 60 + 1; i > 0; --i) {
      uint32_t tenths = random() % 3 ? 0 : static_cast<uint32_t>(random() % (left + 1));
      left -= tenths;
      TenantSettings settings;
      settings.weight = static_cast<uint32_t>(random() % QGPU_WEIGHT_MAX + 1);
      settings.guarantee_ppm = tenths * 1000;
      card.tenants.push_back({"t" + std::to_string(i), settings});
    }
    card.tenants.push_back({"default", {}});
    uint64_t sum = 0;
    auto shares = sharesWhenAllBusy(card);
    for (size_t i = 0; i < shares.size(); ++i) {
      sum += shares[i].share_ppm;
      ASSERT_GE(shares[i].share_ppm, card.tenants[i].settings.guarantee_ppm);
    }
    ASSERT_EQ(sum, uint64_t{QGPU_PPM});
  }
}

TEST(Policy, PercentTextHasOneDecimal) {
  EXPECT_EQ(percentText(333'333), "33.3 %");
  EXPECT_EQ(percentText(999'999), "100.0 %");
  EXPECT_EQ(percentText(0), "0.0 %");
}

}  // namespace
}  // namespace qgpu
