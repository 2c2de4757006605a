// SPDX-License-Identifier: GPL-2.0
// All mistakes of a file at once, and no more than there are.
#include "config_check.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "printable.hpp"

namespace qgpu {
namespace config_check_test {

std::vector<std::string> mistakesOf(const std::string &text) {
  const ConfigOutcome outcome = parseConfig(text, "f");
  std::vector<std::string> texts;
  for (const ConfigProblem &problem : checkConfig(outcome.ir, outcome.problems, {}, {}))
    texts.push_back(problem.text());
  return texts;
}

using Texts = std::vector<std::string>;

TEST(ConfigCheck, WhatCannotBeReadAndWhatCannotBeKeptAreToldTogether) {
  EXPECT_EQ(mistakesOf("[[card]]\nmatch = 0\n"
                       "[tenant.a]\nguarantee = 60\nweight = 0\n"
                       "[tenant.b]\nguarantee = 50\nceiling = 40\nmemory = \"8GiB\"\n"),
            (Texts{"f:5: tenant.a.weight: is 0, must be 1 to 10000",
                   "f:7: tenant: guarantees on card \"0\" are 110.0 % together, over 100 %: \"a\" "
                   "60.0 %, \"b\" 50.0 %",
                   "f:8: tenant.b.ceiling: the ceiling 40.0 % is below the guarantee 50.0 %",
                   "f:9: tenant.b.memory: memory is not enforced in this version and is therefore "
                   "refused"}));
}

// What a file says is shown on somebody's terminal.
TEST(ConfigCheck, ControlCharactersOfAFileAreNotObeyed) {
  const auto mistakes =
      mistakesOf("[[card]]\nmatch = 0\n[tenant.a]\n\"\\u001b[2J\\u009b\\u00fc\" = 1\n");
  ASSERT_EQ(mistakes.size(), 1u);
  EXPECT_NE(mistakes[0].find("\\x1b[2J\\xc2\\x9b\xc3\xbc"), std::string::npos) << mistakes[0];
  EXPECT_EQ(mistakes[0].find('\x1b'), std::string::npos);
}

TEST(Harmless, IsTheSameWithoutWhatATerminalWouldObey) {
  EXPECT_EQ(harmless("a b~"), "a b~");
  EXPECT_EQ(harmless("tab\there\n"), "tab\\x09here\\x0a");
  EXPECT_EQ(harmless("\xe2\x82\xac \xf0\x9f\x98\x80"), "\xe2\x82\xac \xf0\x9f\x98\x80");
  // No UTF-8: cut, overlong, alone.
  EXPECT_EQ(harmless("\xe2\x82"), "\\xe2\\x82");
  EXPECT_EQ(harmless("\xc0\x9b"), "\\xc0\\x9b");
  EXPECT_EQ(harmless("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(harmless("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(harmless("\xed\x9f\xbf\xf4\x8f\xbf\xbf"), "\xed\x9f\xbf\xf4\x8f\xbf\xbf");
  EXPECT_EQ(harmless("\x9b\x7f"), "\\x9b\\x7f");
  EXPECT_EQ(Error({EINVAL, "bad \x1b[1m", "k\ney"}).text(), "EINVAL: bad \\x1b[1m (k\\x0aey)");
}

// Under fixed-share a tenant without a guarantee is refused; these have one that is not readable.
TEST(ConfigCheck, WhatFollowsFromAnotherMistakeIsNotTold) {
  const std::string card = "[[card]]\nmatch = 0\npolicy = \"fixed-share\"\n";
  EXPECT_EQ(mistakesOf(card + "[tenant.a]\nguarantee = \"60\"\n[tenant.b]\nguarante = 30\n"
                              "[tenant.c]\nweight = 5\n"),
            (Texts{"f:5: tenant.a.guarantee: must be a number of percent such as 30 or 12.5, "
                   "without quotes, is a string",
                   "f:7: tenant.b.guarante: unknown key; known here: cgroup, weight, guarantee, "
                   "ceiling, wake_within, class, hang_timeout, memory, card",
                   "f:8: tenant.c.guarantee: \"c\" has no guarantee: under fixed-share on card "
                   "\"0\" it would never run"}));
}

TEST(ConfigCheck, ACardThatCannotBeReadIsNotJudged) {
  EXPECT_EQ(mistakesOf("[[card]]\nmatch = 0\npolicy = \"fixed\"\n"
                       "[[card]]\nmatch = \"all\"\npolicy = \"fixed-share\"\n"
                       "[tenant.a]\nguarantee = 10\nclass = \"online\"\n"),
            (Texts{"f:3: card.policy: is \"fixed\", must be best-effort, equal-share, fixed-share "
                   "or burst-share",
                   "f:9: tenant.a.class: class = \"online\" is not enforced under fixed-share and "
                   "is therefore refused"}));
}

// 20,000 of them took 2.9 s to be refused by each other.
TEST(ConfigCheck, TooMuchIsRefusedBeforeItIsRead) {
  std::string cards, own, tenants, cgroups = "[tenant.a]\ncgroup = [";
  for (int i = 0; i < 20'000; ++i) {
    const std::string number = std::to_string(i);
    cards += "[[card]]\nmatch = " + number + "\n";
    own += "[tenant.a.card." + number + "]\n";
    tenants += "[tenant.t" + number + "]\n";
    cgroups += "\"/" + number + "\",\n";
  }
  const std::pair<std::string, std::string> files[] = {
      {cards, "f:129: card: 20000 tables [[card]], at most 64 can be"},
      {own, "f:65: tenant: 20000 cards with settings of their own, at most 64 can be"},
      {tenants, "f:1024: tenant: 20000 tenants, at most 1023 can be"},
      {cgroups + "]\n", "f:4098: tenant: 20000 cgroups, at most 4096 can be"}};
  for (const auto &[text, mistake] : files) {
    const ConfigOutcome outcome = parseConfig(text, "f");
    EXPECT_EQ(mistakesOf(text), Texts{mistake});
    EXPECT_TRUE(outcome.ir.cards.empty() && outcome.ir.tenants.empty());
  }
}

TEST(ConfigCheck, AsMuchAsMayBeIsRead) {
  std::string text = "[tenant.default]\nweight = 5\n";
  for (int i = 0; i < 64; ++i) text += "[[card]]\nmatch = " + std::to_string(i) + "\n";
  for (int i = 0; i < 1023; ++i) text += "[tenant.t" + std::to_string(i) + "]\n";
  EXPECT_EQ(mistakesOf(text), Texts{});
}

TEST(ConfigCheck, OfManyMistakesTheFirstAreToldOneByOne) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "k" + std::to_string(i) + " = 1\n";
  const Texts texts = mistakesOf(text);
  ASSERT_EQ(texts.size(), kConfigProblemsMax + 1);
  EXPECT_EQ(texts.front(), "f:1: k0: unknown key; known here: daemon, card, tenant");
  EXPECT_EQ(texts.back(), "f: has 4900 more mistakes");
}

}  // namespace config_check_test
}  // namespace qgpu
