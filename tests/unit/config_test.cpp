// SPDX-License-Identifier: GPL-2.0
#include "config.hpp"

#include <gtest/gtest.h>
#include <linux/qgpu.h>
#include <sys/stat.h>

#include "fakes/seed.hpp"
#include "fakes/temp_folder.hpp"
#include "names.hpp"

namespace qgpu {
namespace config_test {

std::string problemsOf(const std::string &text) {
  std::string all;
  for (const ConfigProblem &problem : parseConfig(text, "f").problems) all += problem.text() + "\n";
  return all;
}

constexpr const char *kTwoTenants = R"([[card]]
match = "all"
[tenant.a]
cgroup = "/qgpu/a"
weight = 200
[tenant.b]
cgroup = ["/qgpu/b", "/kubepods/*/b"]
guarantee = 33.3
[tenant.b.card.0]
guarantee = 50
)";

TEST(Config, ReadsCardsTenantsAndOverrides) {
  ConfigOutcome outcome = parseConfig(kTwoTenants, "f");
  ASSERT_TRUE(outcome.problems.empty()) << outcome.problems[0].text();
  ASSERT_EQ(outcome.ir.cards.size(), 1u);
  EXPECT_EQ(outcome.ir.cards[0].match, "all");
  EXPECT_EQ(outcome.ir.cards[0].policy.value, QGPU_POLICY_BURST_SHARE);
  const TenantEntry *a = outcome.ir.findTenant("a");
  const TenantEntry *b = outcome.ir.findTenant("b");
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->numbers.weight->value, 200u);
  EXPECT_EQ(b->numbers.guarantee_tenths->value, 333u);
  EXPECT_EQ(b->numbers.guarantee_tenths->line, 8);
  ASSERT_EQ(b->cards.size(), 1u);
  EXPECT_EQ(b->cards[0].selector, "0");
  EXPECT_EQ(b->cards[0].numbers.guarantee_tenths->value, 500u);
  EXPECT_TRUE(b->cgroups[1].glob);
}

TEST(Config, ReadsClassesAndTimesForAllCardsAndForOne) {
  ConfigOutcome outcome = parseConfig(
      "[tenant.a]\nclass = \"online\"\nwake_within = \"500us\"\nhang_timeout = \"1.5s\"\n"
      "[tenant.a.card.0]\nclass = \"normal\"\nwake_within = \"none\"\nhang_timeout = \"off\"\n"
      "ceiling = 40\n",
      "f");
  ASSERT_TRUE(outcome.problems.empty()) << outcome.problems[0].text();
  const TenantEntry &a = *outcome.ir.findTenant("a");
  EXPECT_EQ(a.numbers.work_class->value, uint32_t{QGPU_CLASS_ONLINE});
  EXPECT_EQ(a.numbers.work_class->line, 2);
  EXPECT_EQ(a.numbers.wake_ns->value, 500'000u);
  EXPECT_EQ(a.numbers.hang_ns->value, 1'500'000'000u);
  EXPECT_FALSE(a.numbers.ceiling_tenths);
  const TenantNumbers &on_card = a.cards.at(0).numbers;
  EXPECT_EQ(on_card.work_class->value, uint32_t{QGPU_CLASS_NORMAL});
  EXPECT_EQ(on_card.wake_ns->value, 0u);
  EXPECT_EQ(on_card.hang_ns->value, 0u);
  EXPECT_EQ(on_card.ceiling_tenths->value, 400u);
}

TEST(Config, TimesHaveAUnitAndAreWholeNanoseconds) {
  for (const auto &[text, ns] :
       std::vector<std::pair<const char *, uint64_t>>{{"2ms", 2'000'000},
                                                      {"500us", 500'000},
                                                      {"1.5s", 1'500'000'000},
                                                      {"7ns", 7},
                                                      {"0.25us", 250},
                                                      {"000.001us", 1},
                                                      {"999999999s", 999'999'999'000'000'000}})
    EXPECT_EQ(durationFromText(text), ns) << text;
  for (const char *text : {"", "2", "ms", ".5ms", "2.ms", "1.2.3ms", "2 ms", "-2ms", "2MS", "2m",
                           "0.5ns", "0.0001us", "1000000000s", "99999999999999999999ns", "1e3us"})
    EXPECT_FALSE(durationFromText(text)) << text;
  EXPECT_EQ(durationText(500'000), "500us");
  EXPECT_EQ(durationText(1'500'000), "1.5ms");
  EXPECT_EQ(durationText(1'000'050'000), "1.00005s");
  EXPECT_EQ(durationText(0), "0ns");
}

TEST(Config, TimesReadAsTheyAreWritten) {
  QGPU_TRACE_SEED();
  std::mt19937_64 random(fakes::seed());
  for (int round = 0; round < 5000; ++round) {
    uint64_t ns = random() % (uint64_t{1} << (1 + random() % 59));
    ASSERT_EQ(durationFromText(durationText(ns)), ns) << durationText(ns);
  }
}

TEST(Config, SelectorsThatCouldMatchNoCardAreRefused) {
  for (const char *match : {"\"00\"", "\"007\"", "\"99999999999\"", "99999999999", "-1", "\"\"",
                            "\"GPU-\"", "\"GPU 1\"", "\"tesla\"", "\"gpu0\"", "\"0000:01:00.0\""})
    EXPECT_NE(problemsOf(std::string("[[card]]\nmatch = ") + match + "\n"), "") << match;
  for (const char *card : {"all", "00", "\"GPU 1\"", "\"\"", "99999999999"})
    EXPECT_NE(problemsOf(std::string("[tenant.a.card.") + card + "]\nweight = 5\n"), "") << card;
  for (const char *card : {"0", "12", "\"GPU-1\"", "GPU-1"})
    EXPECT_EQ(problemsOf(std::string("[tenant.a.card.") + card + "]\nweight = 5\n"), "") << card;
}

TEST(Config, CgroupsWithTheMountBeforeThemAreRefused) {
  EXPECT_EQ(problemsOf("[tenant.a]\ncgroup = \"/sys/fs/cgroup/lab/a\"\n"),
            "f:2: tenant.a.cgroup: \"/sys/fs/cgroup/lab/a\" begins with where cgroup2 is mounted: "
            "paths are below the mount, \"/lab/a\" is meant\n");
  EXPECT_EQ(problemsOf("[tenant.a]\ncgroup = \"/sys/fs/a\"\n"), "");
}

TEST(Config, CgroupsDeeperThanTheKernelLooksAreRefused) {
  std::string path;
  for (int i = 0; i < 31; ++i) path += "/d";
  EXPECT_EQ(problemsOf("[tenant.a]\ncgroup = \"" + path + "\"\n"), "");
  EXPECT_NE(problemsOf("[tenant.a]\ncgroup = \"" + path + "/d\"\n"), "");
}

TEST(Config, ShippedExamplesAreRight) {
  for (const char *name :
       {"two-tenants.toml", "three-classes.toml", "real-card.toml", "qgpud.toml"}) {
    ConfigOutcome outcome = loadConfig(std::string(QGPU_SOURCE_DIR "/examples/") + name);
    EXPECT_TRUE(outcome.problems.empty()) << outcome.problems[0].text();
  }
}

TEST(Config, TenantWithoutExactPathGetsAHome) {
  ConfigOutcome outcome =
      parseConfig("[tenant.a]\n[tenant.b]\ncgroup=\"/x/*\"\n[tenant.c]\ncgroup=\"/y\"\n", "f");
  ASSERT_TRUE(outcome.problems.empty());
  EXPECT_EQ(outcome.ir.findTenant("a")->homeCgroup(), "/qgpu/a");
  EXPECT_EQ(outcome.ir.findTenant("b")->homeCgroup(), "/qgpu/b");
  EXPECT_EQ(outcome.ir.findTenant("c")->homeCgroup(), "/y");
}

struct Refusal {
  const char *text;
  const char *problem;
};

class ConfigRefuses : public ::testing::TestWithParam<Refusal> {};

TEST_P(ConfigRefuses, NamingFileLineKeyAndReason) {
  EXPECT_EQ(problemsOf(GetParam().text), std::string(GetParam().problem) + "\n");
}

INSTANTIATE_TEST_SUITE_P(
    Mistakes, ConfigRefuses,
    ::testing::Values(
        Refusal{"x = 1\n", "f:1: x: unknown key; known here: daemon, card, tenant"},
        Refusal{"[daemon]\nsocket = \"run/x\"\n", "f:2: daemon.socket: must be an absolute path"},
        Refusal{"[daemon]\nlog = \"loud\"\n",
                "f:2: daemon.log: is \"loud\", must be debug, info, warning or error"},
        Refusal{"[card]\nmatch = \"all\"\n",
                "f:1: card: must be written as [[card]], once for each card"},
        Refusal{"[[card]]\npolicy = \"burst-share\"\n", "f:1: card: has no \"match\""},
        Refusal{"[[card]]\nmatch = 0\nmethod = \"gates\"\n",
                "f:3: card.method: is \"gates\", must be module or rm"},
        Refusal{"[[card]]\nmatch = -1\n",
                "f:2: card.match: must be a card's uuid (\"GPU-...\"), its index (0) or \"all\""},
        Refusal{"[[card]]\nmatch = 0\n[[card]]\nmatch = \"0\"\n",
                "f:3: card.match: \"0\" stands already in line 1"},
        Refusal{"[[card]]\nmatch = 0\npolicy = \"fair\"\n",
                "f:3: card.policy: is \"fair\", must be best-effort, equal-share, fixed-share or "
                "burst-share"},
        Refusal{"[[card]]\nmatch = 0\ncycle_ms = 0\n",
                "f:3: card.cycle_ms: is 0, must be 1 to 1000"},
        Refusal{"[tenant]\na = 1\n", "f:2: tenant.a: must be a table, is an integer"},
        Refusal{"[tenant.\"a b\"]\n",
                "f:1: tenant.a b: a tenant's name has 1 to 63 of A-Z a-z 0-9 . _ -"},
        Refusal{"[tenant.\".\"]\n",
                "f:1: tenant..: a tenant's name is not . or ..: names become folders"},
        Refusal{"[tenant.\"..\"]\n",
                "f:1: tenant...: a tenant's name is not . or ..: names become folders"},
        Refusal{"[tenant.nobody]\n",
                "f:1: tenant.nobody: this name is taken: nobody owns the kernel's own channels"},
        Refusal{"[tenant.a]\nweight = 10001\n",
                "f:2: tenant.a.weight: is 10001, must be 1 to 10000"},
        Refusal{"[tenant.a]\nweight = \"x\"\n",
                "f:2: tenant.a.weight: must be an integer, 1 to 10000 without quotes, is a string"},
        Refusal{"[tenant.a]\nguarantee = 1e-9\n",
                "f:2: tenant.a.guarantee: is less than 0.1 percent and not 0"},
        Refusal{"[tenant.a]\nceiling = 1e-300\n",
                "f:2: tenant.a.ceiling: is less than 0.1 percent and not 0"},
        Refusal{"[tenant.a]\nguarantee = 100.1\n",
                "f:2: tenant.a.guarantee: must be 0 to 100 percent"},
        Refusal{"[tenant.a]\nguarantee = nan\n",
                "f:2: tenant.a.guarantee: must be 0 to 100 percent"},
        Refusal{"[tenant.a]\nguarantee = 30.05\n",
                "f:2: tenant.a.guarantee: must be in steps of 0.1 percent"},
        Refusal{"[tenant.a]\nceiling = 0\n",
                "f:2: tenant.a.ceiling: is 0: such a tenant could never run"},
        Refusal{"[tenant.a]\nmemory = \"8GiB\"\n",
                "f:2: tenant.a.memory: memory is not enforced in this version and is therefore "
                "refused"},
        Refusal{"[tenant.a]\nwake_within = \"soon\"\n",
                "f:2: tenant.a.wake_within: is \"soon\", must be a time such as \"2ms\" or "
                "\"500us\", or \"none\""},
        Refusal{"[tenant.a]\nwake_within = 2\n",
                "f:2: tenant.a.wake_within: must be a time such as \"2ms\", or \"none\", is an "
                "integer"},
        Refusal{"[tenant.a]\nwake_within = \"0ms\"\n",
                "f:2: tenant.a.wake_within: is \"0ms\", must be more than 0 and at most \"10s\", "
                "or \"none\""},
        Refusal{"[tenant.a]\nwake_within = \"10.001s\"\n",
                "f:2: tenant.a.wake_within: is \"10.001s\", must be more than 0 and at most "
                "\"10s\", or \"none\""},
        Refusal{"[tenant.a.card.0]\nwake_within = \"off\"\n",
                "f:2: tenant.a.card.0.wake_within: is \"off\", must be a time such as \"2ms\" or "
                "\"500us\", or \"none\""},
        Refusal{"[tenant.a]\nclass = \"batch\"\n",
                "f:2: tenant.a.class: is \"batch\", must be normal, online or offline"},
        Refusal{"[tenant.a]\nhang_timeout = \"3601s\"\n",
                "f:2: tenant.a.hang_timeout: is \"3601s\", must be more than 0 and at most "
                "\"3600s\", or \"off\""},
        Refusal{"[tenant.a]\nhang_timeout = \"1m\"\n",
                "f:2: tenant.a.hang_timeout: is \"1m\", must be a time such as \"2ms\" or "
                "\"500us\", or \"off\""},
        Refusal{"[tenant.a]\nlimit = 5\n",
                "f:2: tenant.a.limit: unknown key; known here: cgroup, weight, guarantee, ceiling, "
                "wake_within, class, hang_timeout, memory, card"},
        Refusal{"[tenant.a]\ncgroup = \"x\"\n",
                "f:2: tenant.a.cgroup: \"x\" must begin with / (the cgroup2 mount is meant)"},
        Refusal{"[tenant.a]\ncgroup = \"/\"\n",
                "f:2: tenant.a.cgroup: \"/\" is every process: that is the tenant \"default\""},
        Refusal{"[tenant.a]\ncgroup = \"/x/../y\"\n",
                "f:2: tenant.a.cgroup: \"/x/../y\" must not have . or .. as a component"},
        Refusal{"[tenant.a]\ncgroup = \"/x/\"\n",
                "f:2: tenant.a.cgroup: \"/x/\" has an empty component (no final / and no //)"},
        Refusal{"[tenant.a]\ncgroup = []\n",
                "f:2: tenant.a.cgroup: is empty; leave it out for /qgpu/NAME"},
        Refusal{"[tenant.a]\n[tenant.b]\ncgroup = \"/qgpu/a\"\n",
                "f:3: tenant.b.cgroup: \"/qgpu/a\" belongs to tenant \"a\" already"},
        Refusal{"[tenant.default]\ncgroup = \"/x\"\n",
                "f:2: tenant.default.cgroup: the tenant \"default\" is whoever no other tenant "
                "claims: it has no cgroup of its own"}));

TEST(Config, ReportsAllProblemsInTheOrderOfTheirLines) {
  std::string all = problemsOf("[tenant.b]\nweight = 0\n[tenant.a]\nweight = 0\nclass = 3\n");
  EXPECT_EQ(all,
            "f:2: tenant.b.weight: is 0, must be 1 to 10000\n"
            "f:4: tenant.a.weight: is 0, must be 1 to 10000\n"
            "f:5: tenant.a.class: must be a string, is an integer\n");
}

TEST(Config, TenantsKeepTheFilesOrder) {
  ConfigOutcome outcome = parseConfig("[tenant.z]\n[tenant.a]\n[tenant.m]\n", "f");
  ASSERT_EQ(outcome.ir.tenants.size(), 3u);
  EXPECT_EQ(outcome.ir.tenants[0].name, "z");
  EXPECT_EQ(outcome.ir.tenants[2].name, "m");
}

TEST(Config, SyntaxErrorNamesItsLine) {
  ConfigOutcome outcome = parseConfig("[tenant.a]\nweight = = 3\n", "f");
  ASSERT_EQ(outcome.problems.size(), 1u);
  EXPECT_EQ(outcome.problems[0].line, 2);
}

TEST(Config, SameTableTwiceIsRefused) {
  EXPECT_FALSE(parseConfig("[tenant.a]\n[tenant.a]\n", "f").problems.empty());
}

TEST(Config, FingerprintFollowsEveryWordOfTheEntryAndNothingElse) {
  auto print = [](const std::string &text) {
    return parseConfig(text, "f").ir.findTenant("a")->fingerprint();
  };
  std::string base = print("[tenant.a]\nweight = 5\n");
  EXPECT_EQ(base, print("# moved\n\n[tenant.b]\n[tenant.a]\nweight = 5\n"));
  EXPECT_NE(base, print("[tenant.a]\nweight = 6\n"));
  EXPECT_NE(base, print("[tenant.a]\nweight = 5\nguarantee = 1\n"));
  EXPECT_NE(base, print("[tenant.a]\nweight = 5\ncgroup = \"/x\"\n"));
  for (const char *more :
       {"class = \"online\"", "wake_within = \"2ms\"", "ceiling = 50", "hang_timeout = \"2ms\""})
    EXPECT_NE(base, print("[tenant.a]\nweight = 5\n" + std::string(more) + "\n")) << more;
  EXPECT_NE(base, print("[tenant.a]\nweight = 5\n[tenant.a.card.0]\nweight = 5\n"));
}

TEST(Config, UnreadableFilesAreProblemsNotCrashes) {
  fakes::TempFolder folder;
  EXPECT_NE(loadConfig(folder / "absent").problems[0].reason.find("No such file"),
            std::string::npos);
  EXPECT_EQ(loadConfig(folder.path()).problems[0].reason, "is not a regular file");
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(loadConfig(folder / "pipe").problems[0].reason, "is not a regular file");
  folder.write("long", std::string(1100 * 1024, '#'));
  EXPECT_EQ(loadConfig(folder / "long").problems[0].reason, "is longer than 1 MiB");
}

TEST(Config, SurvivesMutatedFiles) {
  QGPU_TRACE_SEED();
  std::mt19937_64 random(fakes::seed());
  const std::string base = kTwoTenants;
  const std::string alphabet = "[]{}=.\"'\\\n#,0123456789abcxyz-_ \t\0\xff\xc3";
  for (int round = 0; round < 3000; ++round) {
    std::string text = base;
    for (uint64_t edits = random() % 8 + 1; edits > 0; --edits) {
      size_t at = random() % (text.size() + 1);
      switch (random() % 3) {
        case 0:
          text.insert(at, 1, alphabet[random() % alphabet.size()]);
          break;
        case 1:
          text.erase(at, random() % 12);
          break;
        case 2:
          text.insert(at, text.substr(random() % (text.size() + 1), random() % 30));
          break;
      }
    }
    ConfigOutcome outcome = parseConfig(text, "f");
    for (const ConfigProblem &problem : outcome.problems) {
      EXPECT_FALSE(problem.reason.empty());
      EXPECT_GE(problem.line, 0);
    }
  }
}

TEST(Config, KeyOfManyPartsIsRefused) {
  std::string key = "a";
  for (int i = 0; i < 50'000; i++) key += ".a";
  for (const std::string &text : {"[tenant." + key + "]", key + " = 1"}) {
    const ConfigOutcome outcome = parseConfig("[daemon]\n" + text + "\n", "qgpud.toml");
    ASSERT_EQ(outcome.problems.size(), 1u);
    EXPECT_EQ(outcome.problems[0].line, 2);
  }
}

}  // namespace config_test
}  // namespace qgpu
