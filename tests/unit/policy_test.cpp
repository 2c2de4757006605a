// SPDX-License-Identifier: GPL-2.0
#include "policy.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "fakes/seed.hpp"
#include "promise.hpp"

namespace qgpu {
namespace policy_test {

constexpr uint64_t kSwitchNs = 100'000;

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

TEST(Policy, EverySettingReachesTheCard) {
  PolicyOutcome outcome = computed(
      "[[card]]\nmatch = \"all\"\n[tenant.web]\nclass = \"online\"\nwake_within = \"2ms\"\n"
      "[tenant.lab]\nceiling = 33.3\nhang_timeout = \"1.5s\"\n"
      "[tenant.batch]\nclass = \"offline\"\n[tenant.default]\nceiling = 20\n");
  ASSERT_TRUE(outcome.problems.empty()) << outcome.problems[0].text();
  const DesiredCard &card = outcome.state.cards[1];
  EXPECT_EQ(settingsOf(card, "web").work_class, uint32_t{QGPU_CLASS_ONLINE});
  EXPECT_EQ(settingsOf(card, "web").wake_ns, 2'000'000u);
  EXPECT_EQ(settingsOf(card, "lab").ceiling_ppm, 333'000u);
  EXPECT_EQ(settingsOf(card, "lab").hang_ns, 1'500'000'000u);
  EXPECT_EQ(settingsOf(card, "batch").work_class, uint32_t{QGPU_CLASS_OFFLINE});
  EXPECT_EQ(settingsOf(card, "default").ceiling_ppm, 200'000u);
}

TEST(Policy, OneCardsOwnSettingsReplaceThoseForAll) {
  PolicyOutcome outcome = computed(
      "[[card]]\nmatch = \"all\"\n[tenant.a]\nclass = \"online\"\nwake_within = \"2ms\"\n"
      "hang_timeout = \"1s\"\nceiling = 50\n"
      "[tenant.a.card.1]\nclass = \"normal\"\nwake_within = \"none\"\nhang_timeout = \"off\"\n"
      "ceiling = 100\n");
  ASSERT_TRUE(outcome.problems.empty()) << outcome.problems[0].text();
  TenantSettings plain;
  EXPECT_EQ(settingsOf(outcome.state.cards[1], "a"), plain);
  EXPECT_EQ(settingsOf(outcome.state.cards[0], "a").wake_ns, 2'000'000u);
}

TEST(Policy, CeilingsAreTakenUnderEveryPolicyAndMethod) {
  for (const char *method : {"module", "rm"})
    for (const char *policy : {"best-effort", "burst-share", "fixed-share", "equal-share"}) {
      PolicyOutcome outcome =
          computed(std::string("[[card]]\nmatch = 0\nmethod = \"") + method + "\"\npolicy = \"" +
                   policy + "\"\n[tenant.a]\nguarantee = 10\nceiling = 30\n");
      ASSERT_TRUE(outcome.problems.empty()) << method << policy << outcome.problems[0].text();
      EXPECT_EQ(settingsOf(outcome.state.cards[0], "a").ceiling_ppm, 300'000u);
      EXPECT_EQ(settingsOf(outcome.state.cards[0], "default").ceiling_ppm, uint32_t{QGPU_PPM});
    }
}

struct NotEnforced {
  const char *card;
  const char *setting;
  const char *problem;  // "" = taken
};

class PolicyEnforces : public ::testing::TestWithParam<NotEnforced> {};

TEST_P(PolicyEnforces, WhatItTakesAndRefusesTheRest) {
  const auto &[card, setting, wanted] = GetParam();
  std::string text = std::string("[[card]]\nmatch = 0\n") + card +
                     "\n[tenant.a]\nguarantee = 10\n" + setting + "\n";
  PolicyOutcome outcome = computed(text);
  std::string problems;
  for (const ConfigProblem &problem : outcome.problems) {
    problems += problem.text();
    EXPECT_EQ(problem.err, EOPNOTSUPP);
  }
  EXPECT_EQ(problems, wanted) << text;
}

constexpr const char *kFixed = "policy = \"fixed-share\"";
constexpr const char *kEqual = "policy = \"equal-share\"";
constexpr const char *kNone = "policy = \"best-effort\"";
constexpr const char *kRm = "method = \"rm\"";
constexpr const char *kRmEqual = "method = \"rm\"\npolicy = \"equal-share\"";
constexpr const char *kRmNone = "method = \"rm\"\npolicy = \"best-effort\"";
INSTANTIATE_TEST_SUITE_P(
    Settings, PolicyEnforces,
    ::testing::Values(
        NotEnforced{kFixed, "class = \"online\"",
                    "f:6: tenant.a.class: class = \"online\" is not enforced under fixed-share and "
                    "is therefore refused"},
        NotEnforced{kEqual, "class = \"offline\"",
                    "f:6: tenant.a.class: class = \"offline\" is not enforced under equal-share "
                    "and is therefore refused"},
        NotEnforced{kFixed, "wake_within = \"2ms\"",
                    "f:6: tenant.a.wake_within: wake_within is not enforced under fixed-share and "
                    "is therefore refused"},
        NotEnforced{kEqual, "wake_within = \"2ms\"",
                    "f:6: tenant.a.wake_within: wake_within is not enforced under equal-share and "
                    "is therefore refused"},
        NotEnforced{kRm, "class = \"offline\"", ""}, NotEnforced{kRm, "wake_within = \"1s\"", ""},
        NotEnforced{kRmEqual, "class = \"offline\"",
                    "f:7: tenant.a.class: class = \"offline\" is not enforced under equal-share "
                    "and is therefore refused"},
        NotEnforced{kRm, "hang_timeout = \"1s\"",
                    "f:6: tenant.a.hang_timeout: hang_timeout is not enforced by method rm and is "
                    "therefore refused"},
        NotEnforced{"", "class = \"online\"", ""}, NotEnforced{"", "wake_within = \"2ms\"", ""},
        NotEnforced{"", "hang_timeout = \"2ms\"", ""},
        NotEnforced{kFixed, "hang_timeout = \"2ms\"", ""},
        NotEnforced{kEqual, "hang_timeout = \"2ms\"", ""},
        NotEnforced{kFixed, "class = \"normal\"", ""},
        NotEnforced{kNone, "class = \"online\"\nwake_within = \"1ns\"\nhang_timeout = \"1s\"", ""},
        NotEnforced{kRmNone, "class = \"online\"\nwake_within = \"1ns\"\nhang_timeout = \"1s\"",
                    ""}));

struct Wait {
  const char *tenants;  // the first of whom asks
  const char *wake;
  const char *problem;  // "" = taken
};

class PolicyWaits : public ::testing::TestWithParam<Wait> {};

TEST_P(PolicyWaits, AreTakenOrRefusedWithWhatCouldBeKept) {
  const auto &[tenants, wake, wanted] = GetParam();
  const std::string text =
      std::string("[[card]]\nmatch = 0\n[tenant.a]\nwake_within = \"") + wake + "\"\n" + tenants;
  PolicyOutcome outcome = computed(text);
  std::string problems;
  for (const ConfigProblem &problem : outcome.problems) {
    problems += problem.text();
    EXPECT_EQ(problem.err, ENOSPC);
  }
  const std::string begin =
      "f:4: tenant.a.wake_within: \"" + std::string(wake) + "\" cannot be kept on card GPU-0 (";
  EXPECT_EQ(problems, *wanted ? begin + wanted : "") << text;
}

INSTANTIATE_TEST_SUITE_P(
    Waits, PolicyWaits,
    ::testing::Values(
        Wait{"class = \"online\"\n[tenant.b]\nclass = \"online\"\n", "699us",
             "2 online tenants): must be \"700us\" at least"},
        Wait{"class = \"online\"\n[tenant.b]\nclass = \"online\"\n", "700us", ""},
        Wait{"[tenant.b]\n", "2.299ms",
             "3 tenants, \"default\" counted): must be \"2.3ms\" at least"},
        Wait{"[tenant.b]\n", "2.3ms", ""},
        Wait{"[tenant.b]\nclass = \"online\"\n", "1s",
             "online: \"b\"): no wait can be promised beside online tenants"},
        Wait{"class = \"offline\"\n", "1s",
             "2 tenants, \"default\" counted): no wait can be promised to it, since the others may "
             "leave it nothing"},
        Wait{"[tenant.b]\nguarantee = 10\nceiling = 10\n", "5ms",
             "3 tenants, \"default\" counted, windows on the clock of \"b\"): must be "
             "\"13.08ms\" at least"},
        Wait{"[tenant.b]\nguarantee = 10\nceiling = 10\n", "13.08ms", ""},
        Wait{"[tenant.b]\nguarantee = 60\nceiling = 60\n", "5ms",
             "3 tenants, \"default\" counted, windows on the clock of \"b\"): no wait can be "
             "promised beside windows that may take all the time"},
        Wait{"guarantee = 20\nceiling = 20\n", "5ms",
             "it has windows on the clock): must be \"48.15ms\" at least"},
        Wait{"guarantee = 20\nceiling = 20\n", "48.15ms", ""}));

// As the executor would refuse them; processes of no tenant are none of its.
TEST(Policy, WaitsUnderMethodRmAreHeldAgainstItsCosts) {
  const auto problemsWith = [](const std::string &wake) {
    return computed(
               "[[card]]\nmatch = 0\nmethod = \"rm\"\n[tenant.a]\nweight = 300\n[tenant.b]\n"
               "[tenant.web]\nwake_within = \"" +
               wake + "\"\n[tenant.batch]\nclass = \"offline\"\n")
        .problems;
  };
  const auto problems = problemsWith("2ms");
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].err, ENOSPC);
  // 5*n*s and two cuts of s + p + P/2.
  EXPECT_EQ(
      problems[0].text(),
      "f:8: tenant.web.wake_within: \"2ms\" cannot be kept on card GPU-0 (4 tenants): must be "
      "\"6.01ms\" at least");
  EXPECT_EQ(problemsWith("6.009ms").size(), 1u);
  EXPECT_TRUE(problemsWith("6.01ms").empty());
}

TEST(Policy, WaitsThatWeightsCouldNotFollowAreRefused) {
  const auto problemsWith = [](const std::string &of_a, const std::string &of_web) {
    return computed("[[card]]\nmatch = 0\nmethod = \"rm\"\n[tenant.a]\nweight = 1000\n" + of_a +
                    "[tenant.web]\n" + of_web)
        .problems;
  };
  const std::string wake = "wake_within = \"6ms\"\n";
  const auto problems = problemsWith("", wake);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].err, ENOSPC);
  EXPECT_EQ(
      problems[0].text(),
      "f:7: tenant.web.wake_within: \"6ms\" cannot be kept on card GPU-0 (2 tenants): must be "
      "\"6.152ms\" at least, or slices could not follow the weights");
  EXPECT_TRUE(problemsWith("", "wake_within = \"6.152ms\"\n").empty());
  // Its own slice is the long one.
  EXPECT_TRUE(problemsWith(wake, "").empty());
}

TEST(Policy, TheCardsOwnCostOfASwitchCounts) {
  ConfigIr config = parsed("[[card]]\nmatch = 0\n[tenant.a]\nwake_within = \"1.8ms\"\n");
  CardInfo card = cardNamed(0, "GPU-0");
  card.switch_ns = 200'000;
  PolicyOutcome outcome = compute(config, {}, {card}, {});
  ASSERT_EQ(outcome.problems.size(), 1u);
  EXPECT_NE(outcome.problems[0].reason.find("\"3ms\" at least"), std::string::npos)
      << outcome.problems[0].reason;
  card.switch_ns = 100'000;
  EXPECT_TRUE(compute(config, {}, {card}, {}).problems.empty());
}

TEST(Policy, AnEditThatBreaksAnothersWaitIsRefusedAtThatWait) {
  const char *text =
      "[[card]]\nmatch = 0\n[tenant.a]\nclass = \"online\"\nwake_within = \"400us\"\n[tenant.b]\n";
  EXPECT_TRUE(computed(text).problems.empty());
  Edits edits;
  edits.of("b", "").work_class = QGPU_CLASS_ONLINE;
  PolicyOutcome outcome = computed(text, edits);
  ASSERT_EQ(outcome.problems.size(), 1u);
  EXPECT_EQ(outcome.problems[0].key, "tenant.a.wake_within");
  EXPECT_EQ(outcome.problems[0].line, 5);
}

TEST(Policy, FixedShareNeedsAGuarantee) {
  std::string fixed = "[[card]]\nmatch = 0\npolicy = \"fixed-share\"\n[tenant.a]\n";
  EXPECT_EQ(
      problemOf(fixed),
      "f:4: tenant.a.guarantee: \"a\" has no guarantee: under fixed-share on card GPU-0 it would "
      "never run");
  EXPECT_TRUE(computed(fixed + "guarantee = 30\nceiling = 30\n").problems.empty());
  EXPECT_EQ(problemOf(fixed + "guarantee = 30\nceiling = 20\n"),
            "f:6: tenant.a.ceiling: the ceiling 20.0 % is below the guarantee 30.0 %");
}

TEST(Policy, EditsOfEverySettingWinOverTheFile) {
  Edits edits;
  TenantEdit &all = edits.of("a", "");
  all.ceiling_tenths = 400;
  all.work_class = QGPU_CLASS_OFFLINE;
  all.wake_ns = 0;
  all.hang_ns = 5'000'000;
  edits.of("a", "GPU-1").work_class = QGPU_CLASS_NORMAL;
  PolicyOutcome outcome = computed(
      "[[card]]\nmatch = \"all\"\n[tenant.a]\nclass = \"online\"\nwake_within = \"2ms\"\n", edits);
  ASSERT_TRUE(outcome.problems.empty()) << outcome.problems[0].text();
  const TenantSettings &a = settingsOf(outcome.state.cards[0], "a");
  EXPECT_EQ(a.ceiling_ppm, 400'000u);
  EXPECT_EQ(a.work_class, uint32_t{QGPU_CLASS_OFFLINE});
  EXPECT_EQ(a.wake_ns, 0u);
  EXPECT_EQ(a.hang_ns, 5'000'000u);
  EXPECT_EQ(settingsOf(outcome.state.cards[1], "a").work_class, uint32_t{QGPU_CLASS_NORMAL});
  EXPECT_EQ(settingsOf(outcome.state.cards[1], "a").ceiling_ppm, 400'000u);
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
  auto shares = promisesOf(outcome.state.cards[0], kSwitchNs).all.tenants;
  EXPECT_EQ(shares[0].share_ppm, 666'667u);
  EXPECT_EQ(shares[1].share_ppm, 333'333u);
}

TEST(Policy, UnderEqualShareAllAreAlike) {
  PolicyOutcome outcome = computed(
      "[[card]]\nmatch = 0\npolicy = \"equal-share\"\n[tenant.a]\nweight = 200\n"
      "[tenant.b]\nguarantee = 40\n");
  ASSERT_TRUE(outcome.problems.empty());
  EXPECT_EQ(outcome.state.cards[0].policy, uint32_t{QGPU_POLICY_EQUAL_SHARE});
  auto shares = promisesOf(outcome.state.cards[0], kSwitchNs).all.tenants;
  EXPECT_EQ(shares[0].share_ppm, 500'000u);
  EXPECT_EQ(shares[1].share_ppm, 500'000u);
}

TEST(Policy, CeilingsBoundSharesAndOfflineGetsWhatIsLeft) {
  auto shares = [](const std::string &text) {
    std::string all;
    const CardPromise promise = promisesOf(computed(text).state.cards.at(0), kSwitchNs).all;
    for (const TenantPromise &share : promise.tenants)
      all += share.name + " " + percentText(share.share_ppm) + " ";
    return all;
  };
  const std::string card = "[[card]]\nmatch = 0\n";
  EXPECT_EQ(shares(card + "[tenant.a]\nceiling = 20\n[tenant.b]\n[tenant.c]\nweight = 300\n"),
            "a 20.0 % b 20.0 % c 60.0 % ");
  // The first to be filled raises what the others get, so that a second one is filled.
  EXPECT_EQ(shares(card + "[tenant.a]\nceiling = 10\n[tenant.b]\nceiling = 35\n[tenant.c]\n"),
            "a 10.0 % b 35.0 % c 55.0 % ");
  EXPECT_EQ(shares(card + "[tenant.a]\n[tenant.b]\nclass = \"offline\"\nguarantee = 5\n"),
            "a 95.0 % b 5.0 % ");
  EXPECT_EQ(shares(card + "[tenant.a]\nceiling = 60\n[tenant.b]\nclass = \"offline\"\n"),
            "a 60.0 % b 40.0 % ");
  EXPECT_EQ(shares(card + "[tenant.a]\nguarantee = 20\nceiling = 20\n"), "a 20.0 % ");
  EXPECT_EQ(shares(card + "policy = \"equal-share\"\n[tenant.a]\nceiling = 30\n[tenant.b]\n"),
            "a 30.0 % b 70.0 % ");
  EXPECT_EQ(shares(card + "policy = \"best-effort\"\n[tenant.a]\nceiling = 30\n[tenant.b]\n"
                          "class = \"offline\"\n"),
            "a 0.0 % b 0.0 % ");  // nothing is promised
}

TEST(Policy, ComputedSharesAddUpExactlyAndKeepGuaranteesAndCeilings) {
  QGPU_TRACE_SEED();
  std::mt19937_64 random(fakes::seed());
  for (int round = 0; round < 500; ++round) {
    DesiredCard card;
    uint32_t left = 1000;
    for (uint64_t i = random() % 12 + 1; i > 0; --i) {
      uint32_t tenths = random() % 3 ? 0 : static_cast<uint32_t>(random() % (left + 1));
      left -= tenths;
      TenantSettings settings;
      settings.weight = static_cast<uint32_t>(random() % QGPU_WEIGHT_MAX + 1);
      settings.guarantee_ppm = tenths * 1000;
      if (random() % 4 == 0) settings.work_class = QGPU_CLASS_OFFLINE;
      if (random() % 3 == 0)
        settings.ceiling_ppm = static_cast<uint32_t>(
            settings.guarantee_ppm + random() % (QGPU_PPM + 1 - settings.guarantee_ppm));
      card.tenants.push_back({"t" + std::to_string(i), settings});
    }
    card.tenants.push_back({"default", {}});
    uint64_t sum = 0;
    bool all_at_ceiling = true;
    auto shares = promisesOf(card, kSwitchNs).all.tenants;
    for (size_t i = 0; i < shares.size(); ++i) {
      sum += shares[i].share_ppm;
      const TenantSettings &asked = card.tenants[i].settings;
      ASSERT_GE(shares[i].share_ppm, asked.guarantee_ppm);
      ASSERT_LE(shares[i].share_ppm, asked.ceiling_ppm);
      all_at_ceiling = all_at_ceiling && shares[i].share_ppm == asked.ceiling_ppm;
    }
    ASSERT_LE(sum, uint64_t{QGPU_PPM});
    ASSERT_TRUE(sum == QGPU_PPM || all_at_ceiling);
  }
}

TEST(Policy, PercentTextHasOneDecimal) {
  EXPECT_EQ(percentText(333'333), "33.3 %");
  EXPECT_EQ(percentText(999'999), "100.0 %");
  EXPECT_EQ(percentText(0), "0.0 %");
}

}  // namespace policy_test
}  // namespace qgpu
