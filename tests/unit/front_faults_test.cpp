// SPDX-License-Identifier: GPL-2.0
// The rules by which the simulated driver goes wrong: what is understood, what is refused, how
// often a rule holds.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

extern "C" {
#include "sim/front/faults.h"
}

namespace front_faults_test {

int parse(fault_rules &rules, std::string line) { return fault_rules_parse(&rules, line.data()); }

TEST(FrontFaults, ARefusalHoldsAsOftenAsItSays) {
  fault_rules rules{};
  ASSERT_EQ(parse(rules, "refuse 0xa06c0103 0x1b 2"), 0);
  EXPECT_EQ(fault_rules_apply(&rules, 0xa06c0104).status, 0u);
  EXPECT_EQ(fault_rules_apply(&rules, 0xa06c0103).status, 0x1bu);
  EXPECT_EQ(fault_rules_apply(&rules, 0xa06c0103).status, 0x1bu);
  EXPECT_EQ(fault_rules_apply(&rules, 0xa06c0103).status, 0u);
  EXPECT_EQ(rules.count, 0u);
}

TEST(FrontFaults, WithoutANumberItHoldsUntilCleared) {
  fault_rules rules{};
  ASSERT_EQ(parse(rules, "  slow\t0x2080110b   30000 "), 0);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(fault_rules_apply(&rules, 0x2080110b).slow_ms, 30000u);
  ASSERT_EQ(parse(rules, "clear"), 0);
  EXPECT_EQ(fault_rules_apply(&rules, 0x2080110b).slow_ms, 0u);
}

TEST(FrontFaults, ACallCanBeSlowAndRefused) {
  fault_rules rules{};
  ASSERT_EQ(parse(rules, "slow 1 5"), 0);
  ASSERT_EQ(parse(rules, "slow 1 3 1"), 0);
  ASSERT_EQ(parse(rules, "refuse 1 0x40"), 0);
  fault first = fault_rules_apply(&rules, 1);
  EXPECT_EQ(first.slow_ms, 5u);
  EXPECT_EQ(first.status, 0x40u);
  EXPECT_EQ(rules.count, 2u);
}

TEST(FrontFaults, WhatIsLostIsNeitherRefusedNorSlow) {
  fault_rules rules{};
  ASSERT_EQ(parse(rules, "lose 0x2080110b 2"), 0);
  ASSERT_EQ(parse(rules, "refuse 0x2080110b 5 1"), 0);
  EXPECT_EQ(fault_rules_apply(&rules, 0x2080110b).status, 5u);
  EXPECT_EQ(fault_rules_apply(&rules, 0x2080110b).status, 0u);
  EXPECT_FALSE(fault_rules_lose(&rules, 0x2080110c));
  EXPECT_TRUE(fault_rules_lose(&rules, 0x2080110b));
  EXPECT_TRUE(fault_rules_lose(&rules, 0x2080110b));
  EXPECT_FALSE(fault_rules_lose(&rules, 0x2080110b));
  EXPECT_EQ(rules.count, 0u);
}

TEST(FrontFaults, WhatIsNoRuleChangesNothing) {
  for (const char *line : {"", "   ", "refuse", "refuse 1", "refuse 1 0", "refuse 1 2 0",
                           "refuse 1 2 3 4", "refuse x 1", "refuse 0x 1", "refuse 1x 1",
                           "refuse -1 1", "slow 1 60001", "slow 1 4294967296", "clear 1",
                           "Refuse 1 1", "refuse 08a 1", "lose 1", "lose 1 0", "lose 1 1 1"}) {
    fault_rules rules{};
    ASSERT_EQ(parse(rules, "refuse 7 7"), 0);
    EXPECT_LT(parse(rules, line), 0) << line;
    EXPECT_EQ(rules.count, 1u) << line;
  }
}

TEST(FrontFaults, ThereIsRoomForSixteen) {
  fault_rules rules{};
  for (uint32_t i = 0; i < FAULT_RULES_MAX; ++i) ASSERT_EQ(parse(rules, "refuse 1 1 1"), 0);
  EXPECT_EQ(parse(rules, "refuse 1 1 1"), -ENOSPC);
  EXPECT_EQ(fault_rules_apply(&rules, 1).status, 1u);
  EXPECT_EQ(rules.count, 0u);
}

}  // namespace front_faults_test
