// SPDX-License-Identifier: GPL-2.0
// qgpuctl explain: promised, got and why, from the status of a daemon over a fake card.
#include <gtest/gtest.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "daemon.hpp"
#include "explanation.hpp"
#include "fakes/fake_clock.hpp"
#include "fakes/fake_kernel.hpp"
#include "fakes/temp_folder.hpp"
#include "starved.hpp"
#include "verbs.hpp"

namespace qgpu::ctl {
namespace explain_test {

using Json = nlohmann::json;

constexpr const char *kThree =
    "[[card]]\nmatch = \"all\"\n[tenant.a]\nweight = 200\n[tenant.b]\nweight = 100\n"
    "[tenant.capped]\nweight = 100\nceiling = 20\n";

class Explain : public ::testing::Test {
 protected:
  Explain() {
    kernel.addCard("GPU-0");
    kernel.card(0).info.switch_ns = 100'000;
    for (const char *folder : {"qgpu/a", "qgpu/b", "qgpu/capped"}) tree.makeFolder(folder);
    daemon.start(parseConfig(kThree, "f").ir);
    for (const char *name : {"a", "b", "capped"}) {
      TenantStatus &tenant = *kernel.findTenant(0, name);
      tenant.tsgs = 1;
      tenant.awake = true;
      tenant.place = QGPU_PLACE_ROTATES;
    }
    kernel.findTenant(0, "a")->share_ppm = 500'000;
    kernel.findTenant(0, "b")->share_ppm = 250'000;
    kernel.findTenant(0, "capped")->share_ppm = 200'000;
  }

  // One second in which it ran and waited for so many milliseconds.
  struct Second {
    const char *tenant;
    uint64_t run_ms, wait_ms, throttled_ms = 0, wait_max_ms = 0, hangs = 0;
  };
  // samples: 1: it goes on from what was counted last.
  void pass(const std::vector<Second> &seconds, int samples = 2) {
    if (samples == 2) sample({});
    sample(seconds);
  }

  Result<Json> explain(const std::string &tenant, const std::string &card = "") {
    clock.advance(kSecondNs);
    daemon.refresh();
    return explanationOf(statusJson(daemon), tenant, card);
  }
  Json cardOf(const std::string &tenant) {
    auto explanation = explain(tenant);
    EXPECT_TRUE(explanation);
    return explanation->at("cards").at(0);
  }
  void setClass(const std::string &tenant, uint32_t work_class) {
    Daemon::TenantWish wish;
    wish.tenant = tenant;
    wish.work_class = work_class;
    ASSERT_TRUE(daemon.setTenant(wish, Daemon::Mode::kApply));
  }
  std::string reasonOf(const std::string &tenant) { return cardOf(tenant)["why"]["reason"]; }
  std::string sentenceOf(const std::string &tenant) { return cardOf(tenant)["why"]["sentence"]; }

  fakes::TempFolder folder, tree;
  fakes::FakeKernel kernel;
  fakes::FakeCard card{kernel};
  fakes::FakeClock clock;
  CgroupTree cgroups{tree.path()};
  StateFile state_file{folder / "state.json"};
  Daemon daemon{card, cgroups, state_file, clock};

 private:
  void sample(const std::vector<Second> &seconds) {
    kernel.samples.clear();
    for (const char *name : {"a", "b", "capped"}) {
      Sample &total = totals_[name];
      total.tenant_id = kernel.findTenant(0, name)->id;
      total.source = QGPU_SOURCE_SAMPLED;
      total.since_ns = 1;
      total.time_ns += kSecondNs;
      for (const Second &second : seconds) {
        if (second.tenant != std::string(name)) continue;
        total.run_ns += second.run_ms * kMillisecondNs;
        total.wait_ns += second.wait_ms * kMillisecondNs;
        total.throttled_ns += second.throttled_ms * kMillisecondNs;
        total.wait_max_ns = second.wait_max_ms * kMillisecondNs;
        total.hangs = second.hangs;
      }
      kernel.samples.push_back(total);
    }
    clock.advance(kSecondNs);
    daemon.tick();
  }

  std::map<std::string, Sample> totals_;
};

TEST_F(Explain, ShowsWhatWasAskedComputedAndMeasured) {
  pass({{"a", 500, 500, 0, 9}, {"b", 250, 750}, {"capped", 200, 0}});
  const Json card = cardOf("a");
  EXPECT_EQ(card["index"], 0);
  EXPECT_EQ(card["asked"]["weight"], 200);
  EXPECT_EQ(card["asked"]["class"], "normal");
  EXPECT_EQ(card["now"]["share_ppm"], 500'000);
  // The ceiling takes nothing from what the others' weights give: 2 of 4 parts, or all but 20 %.
  EXPECT_EQ(card["computed"]["all_busy"]["share_ppm"], 533'333);
  EXPECT_GT(card["computed"]["worst"]["wait_ns"], 0);
  EXPECT_GE(card["computed"]["worst"]["wait_ns"], card["computed"]["all_busy"]["wait_ns"]);
  EXPECT_GT(card["computed"]["worst"]["off_ppm"], 0);
  EXPECT_GT(card["computed"]["worst"]["loss_ppm"], 0);
  EXPECT_FALSE(card["computed"]["worst_wait_active"].empty());
  EXPECT_NEAR(card["measured"]["share_ppm"].get<double>(), 526'316, 1);
  EXPECT_EQ(card["measured"]["use_ppm"], 500'000);
  EXPECT_EQ(card["measured"]["wait_max_ns"], 9'000'000);
  EXPECT_EQ(card["place"], "rotates");
  EXPECT_EQ(card["why"]["reason"], "as-promised");
  EXPECT_EQ(card["wait_passed_promise"], false);
}

TEST_F(Explain, TheTextHasTheSameForPeople) {
  pass({{"a", 500, 500, 0, 9}, {"b", 250, 750}, {"capped", 200, 0}});
  const std::string text = explanationText(*explain("a"));
  for (const char *part :
       {"tenant a\ncard 0  GPU-0", "asked: weight 200, guarantee 0.0 %, ceiling 100.0 %",
        "hang timeout off", "now  all busy", "53.3 %", "52.6 %", "9.0 ms", "rotates",
        "why: it has what is promised"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST_F(Explain, OneWithoutWorkHasNone) {
  pass({{"a", 0, 0}, {"b", 900, 0}});
  EXPECT_EQ(reasonOf("a"), "no-work");
}

TEST_F(Explain, OneThatIsPartlyIdleSaysForHowLongItHadWork) {
  pass({{"a", 200, 100}, {"b", 600, 100}});
  EXPECT_EQ(reasonOf("a"), "partly-idle");
  EXPECT_NE(sentenceOf("a").find("30.0 %"), std::string::npos) << sentenceOf("a");
}

TEST_F(Explain, OneThatWaitsSaysForWhom) {
  pass({{"a", 200, 800}, {"b", 500, 500}, {"capped", 200, 0}});
  EXPECT_EQ(reasonOf("a"), "waits");
  EXPECT_EQ(sentenceOf("a"), "it waited for b (50.0 %), capped (20.0 %)");
  EXPECT_EQ(cardOf("a")["others"][0]["tenant"], "b");
}

TEST_F(Explain, ACeilingIsNamed) {
  kernel.findTenant(0, "capped")->share_ppm = 333'333;
  pass({{"capped", 200, 800, 700}, {"a", 700, 300}});
  EXPECT_EQ(reasonOf("capped"), "ceiling");
  EXPECT_NE(sentenceOf("capped").find("20.0 % held it back for 70.0 %"), std::string::npos)
      << sentenceOf("capped");
}

TEST_F(Explain, WhoHasNoContextIsNotAttached) {
  kernel.findTenant(0, "a")->tsgs = 0;
  EXPECT_EQ(reasonOf("a"), "not-attached");
}

TEST_F(Explain, WhoHasNoCgroupIsToldThat) {
  kernel.findTenant(0, "a")->tsgs = 0;
  std::filesystem::remove_all(tree.path() + "/qgpu/a");
  clock.advance(10 * kSecondNs);
  daemon.tick();
  EXPECT_EQ(reasonOf("a"), "no-cgroup");
}

TEST_F(Explain, BeforeTwoSamplesNothingIsMeasured) { EXPECT_EQ(reasonOf("a"), "not-measured"); }

TEST_F(Explain, ADegradedCardSaysWhy) {
  kernel.card(0).info.state = QGPU_CARD_DEGRADED;
  kernel.card(0).info.reason = "the engine does not answer";
  EXPECT_EQ(reasonOf("a"), "card-degraded");
  EXPECT_EQ(sentenceOf("a"), "the card is degraded: the engine does not answer");
}

TEST_F(Explain, BestEffortPromisesNothing) {
  ASSERT_TRUE(daemon.setPolicy("0", QGPU_POLICY_BEST_EFFORT, Daemon::Mode::kApply));
  EXPECT_EQ(reasonOf("a"), "best-effort");
  EXPECT_EQ(cardOf("a")["computed"]["worst"]["wait_ns"], 0);
}

TEST_F(Explain, AWaitOverThePromiseIsTold) {
  pass({{"a", 500, 500, 0, 900}});
  EXPECT_EQ(cardOf("a")["wait_passed_promise"], true);
  EXPECT_NE(explanationText(*explain("a")).find("it waited longer than that"), std::string::npos);
}

TEST_F(Explain, WhatTheCauseWasIsSaidOnlyWhereItIsKnown) {
  pass({{"a", 500, 500, 0, 900}});
  EXPECT_NE(explanationText(*explain("a")).find("which it was is not known"), std::string::npos);
  pass({{"a", 500, 500, 0, 900}, {"b", 500, 500, 0, 0, 1}});
  EXPECT_NE(explanationText(*explain("a")).find("kernels outran a hang timeout"),
            std::string::npos);
}

TEST_F(Explain, OneThatTheOthersLeaveNothingIsToldWhoRuns) {
  TenantStatus &a = *kernel.findTenant(0, "a");
  a.asked.work_class = QGPU_CLASS_OFFLINE;
  a.share_ppm = 0;
  setClass("a", QGPU_CLASS_OFFLINE);
  pass({{"a", 0, 1000}, {"b", 800, 200}, {"capped", 200, 0}});
  EXPECT_EQ(reasonOf("a"), "nothing-left");
  EXPECT_EQ(sentenceOf("a"),
            "online and normal tenants leave it nothing: b (80.0 %), capped (20.0 %)");
}

// However much one interval may be off by: two views of one status do not contradict each other.
TEST_F(Explain, WhoIsStarvedIsNotSaidToHaveWhatIsPromised) {
  for (uint64_t run_ms = 0; run_ms <= 500; run_ms += 10) {
    pass({{"a", run_ms, 1000 - run_ms}, {"b", 600, 400}, {"capped", 100, 0}});
    const Json card = cardOf("a");
    const Json status = statusJson(daemon);
    for (const Json &tenant : status["cards"][0]["tenants"])
      if (tenant["name"] == "a" && isStarved(tenant)) {
        EXPECT_NE(card["why"]["reason"], "as-promised") << run_ms;
      }
  }
}

TEST_F(Explain, RightAfterAChangeNobodyJudges) {
  pass({{"a", 500, 500}, {"b", 250, 750}, {"capped", 200, 0}});
  Daemon::TenantWish wish;
  wish.tenant = "a";
  wish.weight = 201;
  ASSERT_TRUE(daemon.setTenant(wish, Daemon::Mode::kApply));
  pass({{"a", 0, 1000}, {"b", 900, 100}}, 1);
  EXPECT_EQ(reasonOf("a"), "new-plan");
  EXPECT_EQ(whysText(statusJson(daemon), "")->find("STARVED"), std::string::npos);
  pass({{"a", 0, 1000}, {"b", 900, 100}}, 1);
  EXPECT_EQ(reasonOf("a"), "waits");
  EXPECT_NE(whysText(statusJson(daemon), "")->find("STARVED"), std::string::npos);
}

TEST_F(Explain, TheWaitThatIsOnIsTheLongest) {
  pass({{"a", 0, 1000, 0, 9}, {"b", 900, 100}});
  EXPECT_EQ(cardOf("a")["measured"]["wait_max_ns"], 9'000'000);
  EXPECT_EQ(cardOf("a")["measured"]["wait_longest_ns"], 1'000'000'000);
  EXPECT_EQ(cardOf("a")["wait_passed_promise"], true);
  EXPECT_NE(explanationText(*explain("a")).find("1.0 s"), std::string::npos);
}

// Each reason comes with what an admin would type.
TEST_F(Explain, EachReasonNamesItsRemedy) {
  const auto remedy = [&](const std::string &tenant) -> std::string {
    return cardOf(tenant)["why"]["remedy"];
  };
  EXPECT_EQ(remedy("a"), "qgpuctl doctor");  // not measured
  pass({{"a", 500, 500}, {"b", 250, 750}, {"capped", 200, 0}});
  EXPECT_EQ(remedy("a"), "qgpuctl tenant set a --weight 400");
  EXPECT_NE(
      explanationText(*explain("a")).find("to give it more: qgpuctl tenant set a --weight 400\n"),
      std::string::npos);
  pass({{"a", 200, 800}, {"b", 500, 500}, {"capped", 200, 0}});
  EXPECT_EQ(remedy("a"), "qgpuctl log --card 0");
  EXPECT_NE(whysText(statusJson(daemon), "")->find("to change it for a: qgpuctl log --card 0\n"),
            std::string::npos);
  pass({{"a", 200, 100}, {"b", 600, 100}});
  EXPECT_EQ(remedy("a"), "qgpuctl tenant set a --class online");
  kernel.findTenant(0, "capped")->share_ppm = 333'333;
  pass({{"capped", 200, 800, 700}, {"a", 700, 300}});
  EXPECT_EQ(remedy("capped"), "qgpuctl tenant set capped --ceiling 100");
  setClass("b", QGPU_CLASS_OFFLINE);
  kernel.findTenant(0, "b")->share_ppm = 0;
  pass({{"b", 0, 1000}, {"a", 800, 200}}, 1);
  pass({{"b", 0, 1000}, {"a", 800, 200}}, 1);
  EXPECT_EQ(remedy("b"), "qgpuctl tenant set b --class normal");
  kernel.findTenant(0, "a")->tsgs = 0;
  EXPECT_EQ(remedy("a"), "qgpuctl run --tenant a -- COMMAND");
  EXPECT_EQ(remedy("default"), "qgpuctl log --card 0");
  ASSERT_TRUE(daemon.setPolicy("0", QGPU_POLICY_BEST_EFFORT, Daemon::Mode::kApply));
  EXPECT_EQ(remedy("a"), "qgpuctl policy 0 burst-share");
  kernel.card(0).info.state = QGPU_CARD_DEGRADED;
  EXPECT_EQ(remedy("a"), "qgpuctl doctor");
}

// A line each, with who is starved and the same reason that the tenant's own explanation has.
TEST_F(Explain, OfAllThereIsALineEach) {
  pass({{"a", 600, 400}, {"b", 100, 900}, {"capped", 200, 0}});
  clock.advance(kSecondNs);
  daemon.refresh();
  const auto whys = whysText(statusJson(daemon), "");
  ASSERT_TRUE(whys);
  const auto lineOf = [&](const std::string &name) {
    const size_t at = whys->find("\n  " + name + " ");
    EXPECT_NE(at, std::string::npos) << *whys;
    return whys->substr(at + 1, whys->find('\n', at + 1) - at - 1);
  };
  EXPECT_NE(lineOf("b").find("STARVED"), std::string::npos) << *whys;
  EXPECT_NE(lineOf("b").find(sentenceOf("b")), std::string::npos) << *whys;
  EXPECT_EQ(lineOf("a").find("STARVED"), std::string::npos) << *whys;
  EXPECT_EQ(whysText(statusJson(daemon), "9").error().err, ENODEV);
}

TEST_F(Explain, BesideOnlineNoWaitIsPromisedAndItsLossNotSaidToBeNone) {
  setClass("a", QGPU_CLASS_ONLINE);
  EXPECT_EQ(cardOf("b")["computed"]["worst"]["wait_ns"], 0);
  EXPECT_NE(explanationText(*explain("b")).find("no wait is promised"), std::string::npos);
  EXPECT_GT(cardOf("a")["computed"]["worst"]["wait_ns"], 0);
  const std::string text = explanationText(*explain("a"));
  EXPECT_NE(text.find("while it is within its share"), std::string::npos) << text;
  EXPECT_NE(text.find("the coming and going of online tenants"), std::string::npos) << text;
}

TEST_F(Explain, OneThatIsIdleHasNoCycleToName) {
  kernel.findTenant(0, "a")->awake = false;
  kernel.card(0).info.cycle_ns = 0;
  EXPECT_EQ(cardOf("a")["place_sentence"], "rotates: once in each cycle, when it has work");
}

TEST_F(Explain, HangsAndPlacesAreWords) {
  kernel.findTenant(0, "b")->place = QGPU_PLACE_RANKED;
  kernel.findTenant(0, "b")->window_ns = 7'000'000;
  pass({{"b", 500, 500, 0, 0, 2}});
  const std::string place = cardOf("b")["place_sentence"];
  EXPECT_NE(place.find("windows of its own of 7.0 ms"), std::string::npos) << place;
  EXPECT_EQ(cardOf("a")["windows_by_lag"], true);
  EXPECT_NE(place.find("2 of its kernels outran its hang timeout"), std::string::npos) << place;
}

TEST_F(Explain, ThoseOfNoTenantAreCountedOnceTheyHaveContexts) {
  const uint32_t before = cardOf("a")["computed"]["all_busy"]["share_ppm"];
  kernel.findTenant(0, "default")->tsgs = 1;
  const uint32_t now = cardOf("a")["computed"]["all_busy"]["share_ppm"];
  EXPECT_LT(now, before);
  EXPECT_GT(cardOf("default")["computed"]["all_busy"]["share_ppm"], 0);
}

TEST_F(Explain, RefusesWhoAndWhatDoesNotExist) {
  EXPECT_EQ(explain("x").error().err, ENOENT);
  EXPECT_EQ(explain("x").error().sentence, "no such tenant; there are: a, b, capped, default");
  EXPECT_EQ(explain("a", "7").error().err, ENODEV);
  EXPECT_EQ(explain("a", "7").error().sentence, "no such card");
  EXPECT_TRUE(explain("a", "GPU-0"));
  EXPECT_TRUE(explain("a", "0"));
}

TEST_F(Explain, WithoutADriverSaysThat) {
  kernel.unload();
  clock.advance(60 * kSecondNs);
  daemon.tick();
  EXPECT_EQ(explain("a").error().err, ENODEV);
}

}  // namespace explain_test
}  // namespace qgpu::ctl
