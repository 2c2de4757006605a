// SPDX-License-Identifier: GPL-2.0
// qgpud without its sockets, over a fake card, a fake clock and a plain folder as the cgroup tree.
#include "daemon.hpp"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "fakes/fake_clock.hpp"
#include "fakes/fake_kernel.hpp"
#include "fakes/seed.hpp"
#include "fakes/temp_folder.hpp"
#include "kernel_card.hpp"
#include "verbs.hpp"

namespace qgpu {
namespace daemon_test {

constexpr const char *kTwoToOne =
    "[[card]]\nmatch = \"all\"\n[tenant.a]\nweight = 200\n[tenant.b]\nweight = 100\n";

class DaemonTest : public ::testing::Test {
 protected:
  DaemonTest() {
    kernel.addCard("GPU-0");
    former_log = spdlog::default_logger();
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_st>(log);
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", sink));
  }
  ~DaemonTest() override { spdlog::set_default_logger(former_log); }

  static ConfigIr parsed(const std::string &text) {
    ConfigOutcome outcome = parseConfig(text, "f");
    EXPECT_TRUE(outcome.problems.empty()) << outcome.problems[0].text();
    return outcome.ir;
  }

  void start(const std::string &text) {
    daemon = std::make_unique<Daemon>(card, cgroups, state_file, clock);
    daemon->start(parsed(text));
    daemon->tick();
  }

  void pass(uint64_t ns) {
    clock.advance(ns);
    daemon->tick();
  }

  uint32_t weightOf(const std::string &name) { return kernel.findTenant(0, name)->asked.weight; }

  int timesLogged(const std::string &text) {
    std::string all = log.str();
    int times = 0;
    for (size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + 1)) ++times;
    return times;
  }

  Result<Daemon::Outcome> setWeight(const std::string &tenant, uint32_t weight,
                                    Daemon::Mode mode = Daemon::Mode::kApply) {
    return daemon->setTenant({tenant, "", weight, std::nullopt}, mode);
  }

  std::ostringstream log;
  std::shared_ptr<spdlog::logger> former_log;
  fakes::TempFolder folder;
  fakes::TempFolder tree;
  fakes::FakeKernel kernel;
  fakes::FakeCard card{kernel};
  fakes::FakeClock clock;
  CgroupTree cgroups{tree.path()};
  StateFile state_file{folder / "state.json"};
  std::unique_ptr<Daemon> daemon;
};

TEST_F(DaemonTest, PutsTheConfigurationOnTheCard) {
  tree.makeFolder("qgpu/a");
  start(kTwoToOne);
  EXPECT_EQ(weightOf("a"), 200u);
  EXPECT_EQ(weightOf("b"), 100u);
  EXPECT_EQ(kernel.card(0).info.policy, uint32_t{QGPU_POLICY_BURST_SHARE});
  EXPECT_EQ(kernel.findTenant(0, "a")->asked.cgroups,
            std::vector<uint64_t>{cgroups.idOf("/qgpu/a")});
}

// Through the messages themselves: the fake decodes them with libnl.
TEST_F(DaemonTest, EverySettingGoesFromTheFileThroughTheMessagesToTheCard) {
  KernelCard wired(std::make_unique<fakes::FakeWire>(kernel),
                   std::make_unique<fakes::FakeWire>(kernel));
  Daemon real(wired, cgroups, state_file, clock);
  real.start(
      parsed("[[card]]\nmatch = 0\n[tenant.web]\nclass = \"online\"\nwake_within = \"2ms\"\n"
             "[tenant.lab]\nguarantee = 20\nceiling = 30\nhang_timeout = \"50ms\"\n"
             "[tenant.batch]\nclass = \"offline\"\n[tenant.batch.card.0]\nceiling = 12.5\n"));
  EXPECT_TRUE(real.refusals().empty());
  const TenantSettings &web = kernel.findTenant(0, "web")->asked;
  const TenantSettings &lab = kernel.findTenant(0, "lab")->asked;
  const TenantSettings &batch = kernel.findTenant(0, "batch")->asked;
  EXPECT_EQ(web.work_class, uint32_t{QGPU_CLASS_ONLINE});
  EXPECT_EQ(web.wake_ns, 2'000'000u);
  EXPECT_EQ(lab.ceiling_ppm, 300'000u);
  EXPECT_EQ(lab.hang_ns, 50'000'000u);
  EXPECT_EQ(batch.work_class, uint32_t{QGPU_CLASS_OFFLINE});
  EXPECT_EQ(batch.ceiling_ppm, 125'000u);
  EXPECT_EQ(kernel.plans.size(), 1u);
  auto status = statusJson(real);
  for (const auto &tenant : status["cards"][0]["tenants"]) {
    if (tenant["name"] != "web") continue;
    EXPECT_EQ(tenant["asked"]["class"], "online");
    EXPECT_EQ(tenant["asked"]["wake_ns"], 2'000'000);
  }
}

TEST_F(DaemonTest, RestartAdoptsWithoutAnyPlanSet) {
  start(kTwoToOne);
  uint64_t generation = kernel.card(0).info.generation;
  for (int restart = 0; restart < 5; ++restart) {
    daemon.reset();
    start(kTwoToOne);
  }
  EXPECT_EQ(kernel.card(0).info.generation, generation);
  EXPECT_EQ(kernel.plans.size(), 1u);
}

TEST_F(DaemonTest, GoingAwayChangesNothing) {
  start(kTwoToOne);
  size_t plans = kernel.plans.size();
  daemon.reset();
  EXPECT_EQ(kernel.plans.size(), plans);
  EXPECT_EQ(weightOf("a"), 200u);
}

TEST_F(DaemonTest, NewCgroupReachesTheCardThroughInotifyAndAlsoWithoutIt) {
  start(kTwoToOne);
  tree.makeFolder("qgpu/a");
  clock.advance(100 * kMillisecondNs);
  daemon->onCgroupEvents();
  daemon->tick();
  EXPECT_EQ(kernel.findTenant(0, "a")->asked.cgroups.size(), 1u);
  tree.makeFolder("qgpu/b");
  pass(6 * kSecondNs);
  EXPECT_EQ(kernel.findTenant(0, "b")->asked.cgroups.size(), 1u);
}

TEST_F(DaemonTest, CgroupThatWentAwayLeavesTheTenant) {
  tree.makeFolder("qgpu/a");
  start(kTwoToOne);
  std::filesystem::remove_all(tree / "qgpu/a");
  pass(6 * kSecondNs);
  EXPECT_TRUE(kernel.findTenant(0, "a")->asked.cgroups.empty());
}

TEST_F(DaemonTest, StormOfCgroupEventsCostsOneLookInFiftyMilliseconds) {
  start(kTwoToOne);
  tree.makeFolder("qgpu/a");
  daemon->onCgroupEvents();
  daemon->tick();
  EXPECT_TRUE(kernel.findTenant(0, "a")->asked.cgroups.empty());
  EXPECT_LE(daemon->deadlineNs(), clock.now_ns + 50 * kMillisecondNs);
  pass(50 * kMillisecondNs);
  EXPECT_EQ(kernel.findTenant(0, "a")->asked.cgroups.size(), 1u);
}

TEST_F(DaemonTest, AbsentDriverIsSaidOnceAndTriedWithGrowingPauses) {
  kernel.loaded = false;
  start(kTwoToOne);
  ASSERT_TRUE(daemon->driverError());
  int before = kernel.inventories;
  for (int second = 0; second < 300; ++second) pass(kSecondNs);
  EXPECT_LE(kernel.inventories - before, 16);
  EXPECT_GE(kernel.inventories - before, 9);
  EXPECT_EQ(timesLogged("not loaded"), 1);
  kernel.loaded = true;
  card.pending.driver_changed = true;
  daemon->onCardEvents();
  daemon->tick();
  EXPECT_EQ(weightOf("a"), 200u);
}

TEST_F(DaemonTest, ReloadedDriverGetsTheWholePlanAgain) {
  start(kTwoToOne);
  kernel.unload();
  card.pending.driver_changed = true;
  daemon->onCardEvents();
  daemon->tick();
  EXPECT_TRUE(daemon->driverError());
  kernel.load();
  card.pending.driver_changed = true;
  daemon->onCardEvents();
  daemon->tick();
  EXPECT_EQ(weightOf("a"), 200u);
}

TEST_F(DaemonTest, ForeignChangeIsUndoneAtItsEventOrAtTheNextFullLook) {
  start(kTwoToOne);
  kernel.foreignChange(0, "a", 1);
  CardEvent event;
  event.kind = QGPU_EVENT_PLAN;
  event.generation = kernel.card(0).info.generation;
  card.pending.events.push_back(event);
  daemon->onCardEvents();
  daemon->tick();
  EXPECT_EQ(weightOf("a"), 200u);
  kernel.foreignChange(0, "a", 1);
  pass(11 * kSecondNs);
  EXPECT_EQ(weightOf("a"), 200u);
}

TEST_F(DaemonTest, LostEventsMeanReadingEverything) {
  start(kTwoToOne);
  kernel.foreignChange(0, "a", 1);
  bool told = false;
  daemon->on_lost = [&] { told = true; };
  card.pending.lost = true;
  daemon->onCardEvents();
  daemon->tick();
  EXPECT_TRUE(told);
  EXPECT_EQ(weightOf("a"), 200u);
}

TEST_F(DaemonTest, OwnPlanEventCausesNoLook) {
  start(kTwoToOne);
  int before = kernel.inventories;
  CardEvent event;
  event.kind = QGPU_EVENT_PLAN;
  event.generation = kernel.card(0).info.generation;
  card.pending.events.push_back(event);
  daemon->onCardEvents();
  daemon->tick();
  EXPECT_EQ(kernel.inventories, before);
}

TEST_F(DaemonTest, RefusingCardIsTriedAgainWithGrowingPausesAndSaidOnce) {
  kernel.failNext("plan_set", {EIO, "the card is stuck", ""}, 5);
  start(kTwoToOne);
  EXPECT_EQ(daemon->refusals().count("GPU-0"), 1u);
  for (int second = 0; second < 60; ++second) pass(kSecondNs);
  EXPECT_EQ(timesLogged("the card is stuck"), 1);
  EXPECT_TRUE(daemon->refusals().empty());
  EXPECT_EQ(weightOf("a"), 200u);
}

TEST_F(DaemonTest, ReloadIsAllOrNothing) {
  start(kTwoToOne);
  size_t plans = kernel.plans.size();
  auto problems = daemon->reload(parseConfig(
      "[[card]]\nmatch = \"all\"\n[tenant.a]\nweight = 1\n[tenant.b]\nweight = 0\n", "f"));
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].text(), "f:6: tenant.b.weight: is 0, must be 1 to 10000");
  problems = daemon->reload(parseConfig(
      "[[card]]\nmatch = \"all\"\n[tenant.a]\nguarantee = 60\n[tenant.b]\nguarantee = 60\n", "f"));
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(kernel.plans.size(), plans);
  EXPECT_EQ(daemon->config().findTenant("a")->numbers.weight->value, 200u);
  EXPECT_TRUE(
      daemon->reload(parseConfig("[[card]]\nmatch = 0\n[tenant.c]\nweight = 7\n", "f")).empty());
  EXPECT_EQ(weightOf("c"), 7u);
  EXPECT_FALSE(kernel.findTenant(0, "a"));
}

TEST_F(DaemonTest, ReloadThatTheCardRefusesChangesNothing) {
  start(kTwoToOne);
  kernel.failNext("plan_set", {EOPNOTSUPP, "this card cannot", "plan, policy"});
  auto problems = daemon->reload(parseConfig("[[card]]\nmatch = 0\n[tenant.c]\n", "f"));
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].reason, "this card cannot");
  pass(11 * kSecondNs);
  EXPECT_EQ(weightOf("a"), 200u);
  EXPECT_FALSE(kernel.findTenant(0, "c"));
}

TEST_F(DaemonTest, EditIsLiveSurvivesARestartAndEndsWithAReset) {
  start(kTwoToOne);
  auto outcome = setWeight("a", 50);
  ASSERT_TRUE(outcome) << outcome.error().text();
  EXPECT_EQ(weightOf("a"), 50u);
  EXPECT_TRUE(daemon->isEdited("a", "GPU-0"));
  start(kTwoToOne);
  EXPECT_EQ(weightOf("a"), 50u);
  ASSERT_TRUE(daemon->resetTenant("a"));
  EXPECT_EQ(weightOf("a"), 200u);
  EXPECT_FALSE(daemon->isEdited("a", "GPU-0"));
}

TEST_F(DaemonTest, EditWinsOverAReloadUntilItsOwnEntryChanges) {
  start(kTwoToOne);
  ASSERT_TRUE(setWeight("a", 50));
  daemon->reload(parseConfig(
      "[[card]]\nmatch = \"all\"\n[tenant.a]\nweight = 200\n[tenant.b]\nweight = 7\n", "f"));
  EXPECT_EQ(weightOf("a"), 50u);
  EXPECT_EQ(weightOf("b"), 7u);
  daemon->reload(parseConfig("[[card]]\nmatch = \"all\"\n[tenant.a]\nweight = 201\n", "f"));
  EXPECT_EQ(weightOf("a"), 201u);
}

TEST_F(DaemonTest, EditsOfEverySettingSurviveARestart) {
  start(kTwoToOne);
  Daemon::TenantWish wish{"a", "", std::nullopt, std::nullopt};
  wish.ceiling_tenths = 300;
  wish.work_class = QGPU_CLASS_ONLINE;
  wish.wake_ns = 2'000'000;
  wish.hang_ns = 50'000'000;
  auto outcome = daemon->setTenant(wish, Daemon::Mode::kApply);
  ASSERT_TRUE(outcome) << outcome.error().text();
  const TenantSettings live = kernel.findTenant(0, "a")->asked;
  EXPECT_EQ(live.ceiling_ppm, 300'000u);
  EXPECT_EQ(live.work_class, uint32_t{QGPU_CLASS_ONLINE});
  EXPECT_EQ(live.wake_ns, 2'000'000u);
  EXPECT_EQ(live.hang_ns, 50'000'000u);
  size_t plans = kernel.plans.size();
  start(kTwoToOne);
  EXPECT_EQ(kernel.findTenant(0, "a")->asked, live);
  EXPECT_EQ(kernel.plans.size(), plans);
  // Only what the edit names: the weight is still the file's.
  EXPECT_EQ(weightOf("a"), 200u);
  ASSERT_TRUE(daemon->resetTenant("a"));
  EXPECT_EQ(kernel.findTenant(0, "a")->asked.ceiling_ppm, uint32_t{QGPU_PPM});
  EXPECT_EQ(kernel.findTenant(0, "a")->asked.work_class, uint32_t{QGPU_CLASS_NORMAL});
}

TEST_F(DaemonTest, HangIsLoggedOncePerEventWithTheTenantsNameAndPassedOn) {
  start(kTwoToOne);
  int told = 0;
  daemon->on_event = [&](const CardEvent &event) { told += event.kind == QGPU_EVENT_HANG; };
  int before = kernel.inventories;
  CardEvent event;
  event.kind = QGPU_EVENT_HANG;
  event.tenant_name = "a";
  card.pending.events.push_back(event);
  daemon->onCardEvents();
  daemon->tick();
  EXPECT_EQ(timesLogged("work of tenant \"a\" runs for longer than its hang_timeout"), 1);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(kernel.inventories, before);
}

TEST_F(DaemonTest, AnEventThatCannotBeToldIsLoggedAndTheNextOneIsTold) {
  start(kTwoToOne);
  std::vector<uint64_t> told;
  daemon->on_event = [&](const CardEvent &event) {
    if (event.time_ns == 1) throw std::runtime_error("no words");
    told.push_back(event.time_ns);
  };
  CardEvent event;
  event.kind = QGPU_EVENT_TSG_BOUND;
  for (event.time_ns = 1; event.time_ns <= 2; event.time_ns++) card.pending.events.push_back(event);
  daemon->onCardEvents();
  EXPECT_EQ(told, std::vector<uint64_t>{2});
  EXPECT_EQ(timesLogged("no words"), 1);
}

TEST_F(DaemonTest, PolicyThatCannotKeepASettingIsRefused) {
  start("[[card]]\nmatch = 0\n[tenant.a]\nguarantee = 30\nclass = \"online\"\n");
  auto outcome = daemon->setPolicy("0", QGPU_POLICY_FIXED_SHARE, Daemon::Mode::kApply);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().err, EOPNOTSUPP);
  ASSERT_TRUE(daemon->setPolicy("0", QGPU_POLICY_BEST_EFFORT, Daemon::Mode::kApply));
  EXPECT_EQ(kernel.findTenant(0, "a")->asked.work_class, uint32_t{QGPU_CLASS_ONLINE});
}

TEST_F(DaemonTest, OverCommittingEditIsRefusedWithTheSumAndChangesNothing) {
  start("[[card]]\nmatch = 0\n[tenant.a]\nguarantee = 60\n[tenant.b]\nguarantee = 30\n");
  size_t plans = kernel.plans.size();
  auto outcome = daemon->setTenant({"b", "", std::nullopt, 401}, Daemon::Mode::kApply);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().err, ENOSPC);
  EXPECT_NE(outcome.error().sentence.find("100.1 %"), std::string::npos);
  EXPECT_EQ(kernel.plans.size(), plans);
  EXPECT_FALSE(daemon->isEdited("b", "GPU-0"));
}

TEST_F(DaemonTest, EditThatTheCardRefusesIsTakenBack) {
  start(kTwoToOne);
  kernel.failNext("plan_set", {EIO, "the card did not take it", ""});
  auto outcome = setWeight("a", 50);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().sentence, "the card did not take it");
  EXPECT_EQ(weightOf("a"), 200u);
  EXPECT_EQ(state_file.load().state, State{});
}

TEST_F(DaemonTest, EditThatCannotBeStoredIsTakenBack) {
  start(kTwoToOne);
  std::filesystem::create_directory(folder / "state.json.new");
  auto outcome = setWeight("a", 50);
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().sentence.find("state file"), std::string::npos);
  EXPECT_EQ(weightOf("a"), 200u);
}

TEST_F(DaemonTest, DryRunTellsAndChangesNothing) {
  start(kTwoToOne);
  auto outcome = setWeight("a", 50, Daemon::Mode::kDryRun);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->cards.at("GPU-0").tenants.at(0).asked.weight, 50u);
  EXPECT_EQ(weightOf("a"), 200u);
  EXPECT_FALSE(daemon->isEdited("a", "GPU-0"));
  EXPECT_FALSE(std::filesystem::exists(state_file.path()));
}

TEST_F(DaemonTest, EditWithoutADriverIsStoredAndSaidToBe) {
  kernel.loaded = false;
  start(kTwoToOne);
  auto outcome = setWeight("a", 50);
  ASSERT_TRUE(outcome);
  EXPECT_NE(outcome->note.find("not loaded"), std::string::npos);
  kernel.loaded = true;
  card.pending.driver_changed = true;
  daemon->onCardEvents();
  daemon->tick();
  EXPECT_EQ(weightOf("a"), 50u);
}

TEST_F(DaemonTest, EditForOneCardLeavesTheOther) {
  kernel.addCard("GPU-1");
  start(kTwoToOne);
  ASSERT_TRUE(daemon->setTenant({"a", "1", 9, std::nullopt}, Daemon::Mode::kApply));
  EXPECT_EQ(kernel.findTenant(0, "a")->asked.weight, 200u);
  EXPECT_EQ(kernel.findTenant(1, "a")->asked.weight, 9u);
}

TEST_F(DaemonTest, PolicyIsLiveSurvivesARestartAndEndsWithTheFilesOwn) {
  start("[[card]]\nmatch = 0\n[tenant.a]\nguarantee = 30\n");
  ASSERT_TRUE(daemon->setPolicy("0", QGPU_POLICY_FIXED_SHARE, Daemon::Mode::kApply));
  EXPECT_EQ(kernel.card(0).info.policy, uint32_t{QGPU_POLICY_FIXED_SHARE});
  start("[[card]]\nmatch = 0\n[tenant.a]\nguarantee = 30\n");
  EXPECT_EQ(kernel.card(0).info.policy, uint32_t{QGPU_POLICY_FIXED_SHARE});
  ASSERT_TRUE(daemon->setPolicy("GPU-0", QGPU_POLICY_BURST_SHARE, Daemon::Mode::kApply));
  EXPECT_TRUE(daemon->edits().cards.empty());
  EXPECT_EQ(kernel.card(0).info.policy, uint32_t{QGPU_POLICY_BURST_SHARE});
}

TEST_F(DaemonTest, PolicyThatStarvesATenantIsRefused) {
  start(kTwoToOne);
  auto outcome = daemon->setPolicy("0", QGPU_POLICY_FIXED_SHARE, Daemon::Mode::kApply);
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().sentence.find("would never run"), std::string::npos);
}

TEST_F(DaemonTest, UnnamedCardIsObservedAndNeverTouched) {
  kernel.addCard("GPU-1");
  kernel.foreignChange(1, "default", 42);
  start("[[card]]\nmatch = \"GPU-0\"\n[tenant.a]\n");
  EXPECT_EQ(kernel.findTenant(1, "default")->asked.weight, 42u);
  EXPECT_EQ(daemon->cards().size(), 2u);
  EXPECT_EQ(daemon->setPolicy("1", QGPU_POLICY_BEST_EFFORT, Daemon::Mode::kApply).error().err,
            ENODEV);
}

TEST_F(DaemonTest, CorruptStateIsSaidKeptAsideAndNeverACrash) {
  folder.write("state.json", "{\"version\": 1, rubbish");
  start(kTwoToOne);
  EXPECT_EQ(weightOf("a"), 200u);
  EXPECT_EQ(timesLogged("state.json.bad-1"), 1);
}

TEST_F(DaemonTest, ContradictionOfFileAndEditsHoldsThePlanUntilAReset) {
  start("[[card]]\nmatch = 0\n[tenant.a]\nguarantee = 10\n[tenant.b]\nguarantee = 10\n");
  ASSERT_TRUE(daemon->setTenant({"a", "", std::nullopt, 800}, Daemon::Mode::kApply));
  size_t plans = kernel.plans.size();
  // The file was changed while the daemon was down; the entry of "a" is the same.
  start("[[card]]\nmatch = 0\n[tenant.a]\nguarantee = 10\n[tenant.b]\nguarantee = 50\n");
  ASSERT_EQ(daemon->held().size(), 1u);
  EXPECT_EQ(kernel.plans.size(), plans);
  EXPECT_EQ(kernel.findTenant(0, "a")->asked.guarantee_ppm, 800'000u);
  ASSERT_TRUE(daemon->resetTenant("a"));
  EXPECT_TRUE(daemon->held().empty());
  EXPECT_EQ(kernel.findTenant(0, "b")->asked.guarantee_ppm, 500'000u);
}

TEST_F(DaemonTest, EnsureIsClosedUnlessEveryCardEnforces) {
  tree.makeFolder("qgpu/other");
  start(kTwoToOne);
  EXPECT_EQ(daemon->ensure("x", "/qgpu/a").error().err, ENOENT);
  EXPECT_EQ(daemon->ensure("a", "/qgpu/a").error().err, ENOENT);
  EXPECT_EQ(daemon->ensure("a", "/qgpu/other").error().err, EXDEV);
  tree.makeFolder("qgpu/a");
  auto ensured = daemon->ensure("a", "/qgpu/a");
  EXPECT_TRUE(ensured) << ensured.error().text();
  EXPECT_TRUE(daemon->ensure("a", "/qgpu/a", cgroups.idOf("/qgpu/a")));
  EXPECT_EQ(daemon->ensure("a", "/qgpu/a", cgroups.idOf("/qgpu/other")).error().err, EXDEV);

  kernel.card(0).info.state = QGPU_CARD_DEGRADED;
  kernel.card(0).info.reason = "preempt refused";
  EXPECT_EQ(daemon->ensure("a", "/qgpu/a").error().sentence,
            "the card is degraded: preempt refused");
  kernel.card(0).info.state = QGPU_CARD_OK;
  kernel.card(0).info.method = QGPU_METHOD_NONE;
  EXPECT_EQ(daemon->ensure("a", "/qgpu/a").error().err, EOPNOTSUPP);
  kernel.card(0).info.method = QGPU_METHOD_IMAGES;
  kernel.obeys = false;
  kernel.findTenant(0, "a")->asked.cgroups.clear();
  EXPECT_FALSE(daemon->ensure("a", "/qgpu/a"));
  kernel.obeys = true;
  kernel.loaded = false;
  EXPECT_EQ(daemon->ensure("a", "/qgpu/a").error().err, ENODEV);
}

TEST_F(DaemonTest, EnsureIsClosedWithoutACardInTheConfiguration) {
  tree.makeFolder("qgpu/a");
  start("[tenant.a]\n");
  EXPECT_EQ(daemon->ensure("a", "/qgpu/a").error().err, ENODEV);
}

// --- verbs ---

class Verbs : public DaemonTest {
 protected:
  nlohmann::json ask(const nlohmann::json &request, uid_t uid = 0) {
    return nlohmann::json::parse(answerRequest(*daemon, request, {uid, 1}).line);
  }
  std::string errorOf(const nlohmann::json &request, uid_t uid = 0) {
    auto answer = ask(request, uid);
    return answer["ok"] ? "ok" : answer["error"]["name"].get<std::string>();
  }
};

TEST_F(Verbs, ReadersMayReadAndOnlyRootMayChange) {
  start(kTwoToOne);
  EXPECT_EQ(errorOf({{"verb", "status"}}, 1000), "ok");
  EXPECT_EQ(errorOf({{"verb", "place"}, {"tenant", "a"}}, 1000), "ok");
  EXPECT_EQ(errorOf({{"verb", "tenant-set"}, {"tenant", "a"}, {"weight", 5}}, 1000), "EPERM");
  EXPECT_EQ(errorOf({{"verb", "tenant-reset"}, {"tenant", "a"}}, 1000), "EPERM");
  EXPECT_EQ(errorOf({{"verb", "policy-set"}, {"card", "0"}, {"policy", "best-effort"}}, 1000),
            "EPERM");
  EXPECT_EQ(weightOf("a"), 200u);
}

TEST_F(Verbs, EveryMistakeHasItsErrno) {
  start(kTwoToOne);
  using nlohmann::json;
  json set = {{"verb", "tenant-set"}, {"tenant", "a"}};
  auto with = [&](const char *key, json value) {
    json request = set;
    request[key] = std::move(value);
    return errorOf(request);
  };
  EXPECT_EQ(errorOf(json::object()), "EINVAL");
  EXPECT_EQ(errorOf({{"verb", 5}}), "EINVAL");
  EXPECT_EQ(errorOf({{"verb", "format-disk"}}), "EINVAL");
  EXPECT_EQ(errorOf({{"verb", "status"}, {"extra", 1}}), "EINVAL");
  EXPECT_EQ(errorOf(set), "EINVAL");
  EXPECT_EQ(with("weight", "5"), "EINVAL");
  EXPECT_EQ(with("weight", 5.5), "EINVAL");
  EXPECT_EQ(with("weight", 0), "ERANGE");
  EXPECT_EQ(with("weight", -1), "ERANGE");
  EXPECT_EQ(with("weight", 18446744073709551615ull), "ERANGE");
  EXPECT_EQ(with("guarantee", 100.5), "ERANGE");
  EXPECT_EQ(with("guarantee", 1.25), "EINVAL");
  EXPECT_EQ(with("memory", 5), "EOPNOTSUPP");
  EXPECT_EQ(with("ceiling", 0), "ERANGE");
  EXPECT_EQ(with("ceiling", 101), "ERANGE");
  EXPECT_EQ(with("ceiling", 1.25), "EINVAL");
  EXPECT_EQ(with("ceiling", "30"), "EINVAL");
  EXPECT_EQ(with("class", 1), "EINVAL");
  EXPECT_EQ(with("class", "batch"), "EINVAL");
  EXPECT_EQ(with("wake_within", 2), "EINVAL");
  EXPECT_EQ(with("wake_within", "2"), "EINVAL");
  EXPECT_EQ(with("wake_within", "0us"), "ERANGE");
  EXPECT_EQ(with("wake_within", "100us"), "ENOSPC");
  EXPECT_EQ(with("hang_timeout", "none"), "EINVAL");
  EXPECT_EQ(with("hang_timeout", "3601s"), "ERANGE");
  EXPECT_EQ(with("dry_run", 1), "EINVAL");
  EXPECT_EQ(errorOf({{"verb", "tenant-set"}, {"tenant", "x"}, {"weight", 5}}), "ENOENT");
  EXPECT_EQ(errorOf({{"verb", "tenant-set"}, {"tenant", "a"}, {"weight", 5}, {"card", "7"}}),
            "ENODEV");
  EXPECT_EQ(errorOf({{"verb", "policy-set"}, {"card", "0"}, {"policy", "fair"}}), "EINVAL");
  EXPECT_EQ(errorOf({{"verb", "ensure"}, {"tenant", "a"}, {"cgroup", "/../etc"}}), "EINVAL");
  EXPECT_EQ(errorOf({{"verb", "ensure"}, {"tenant", "a"}, {"cgroup", "qgpu"}}), "EINVAL");
  EXPECT_EQ(errorOf({{"verb", "place"}, {"tenant", "default"}}), "ENOENT");
  EXPECT_EQ(weightOf("a"), 200u);
}

TEST_F(Verbs, StatusKeepsAskedEffectiveAndMeasuredApart) {
  start(kTwoToOne);
  TenantStatus &a = *kernel.findTenant(0, "a");
  a.share_ppm = 666'667;
  for (uint64_t second : {1, 2}) {
    kernel.samples.clear();
    for (uint32_t tenant : {a.id, kernel.findTenant(0, "b")->id}) {
      Sample sample;
      sample.tenant_id = tenant;
      sample.time_ns = second * kSecondNs;
      sample.run_ns = second * (tenant == a.id ? 600'000'000 : 400'000'000);
      kernel.samples.push_back(sample);
    }
    pass(kSecondNs);
  }
  auto status = ask({{"verb", "status"}});
  for (const auto &tenant : status["cards"][0]["tenants"]) {
    if (tenant["name"] != "a") continue;
    EXPECT_EQ(tenant["asked"]["weight"], 200);
    EXPECT_EQ(tenant["effective"]["share_ppm"], 666'667);
    EXPECT_EQ(tenant["measured"]["share_ppm"], 600'000);
    EXPECT_EQ(tenant["edited"], false);
  }
  EXPECT_EQ(status["cards"][0]["managed"], true);
  EXPECT_EQ(status["source"], "qgpud");
}

TEST_F(Verbs, SurviveRandomRequestsAndTheStateStaysSound) {
  QGPU_TRACE_SEED();
  std::mt19937_64 random(fakes::seed());
  start(kTwoToOne);
  using nlohmann::json;
  const std::vector<json> values = {"a",
                                    "b",
                                    "default",
                                    "GPU-0",
                                    "0",
                                    "burst-share",
                                    "",
                                    5,
                                    -5,
                                    0.1,
                                    33.3,
                                    true,
                                    nullptr,
                                    json::array(),
                                    json::object(),
                                    "best-effort",
                                    "online",
                                    "2ms",
                                    "none",
                                    1e300};
  const std::vector<std::string> verbs = {"status",     "place",        "ensure",    "events",
                                          "tenant-set", "tenant-reset", "policy-set"};
  const std::vector<std::string> keys = {"tenant", "card",    "weight",      "guarantee",
                                         "policy", "dry_run", "cgroup",      "memory",
                                         "class",  "ceiling", "wake_within", "hang_timeout"};
  for (int round = 0; round < 3000; ++round) {
    json request = {{"verb", verbs[random() % verbs.size()]}};
    for (uint64_t i = random() % 5; i > 0; --i)
      request[keys[random() % keys.size()]] = values[random() % values.size()];
    auto answer = ask(request);
    ASSERT_TRUE(answer["ok"].is_boolean());
    ASSERT_TRUE(answer["ok"] || !answer["error"]["sentence"].get<std::string>().empty());
  }
  State stored = state_file.load().state;
  EXPECT_EQ(stored.edits, daemon->edits());
  pass(11 * kSecondNs);
  EXPECT_TRUE(daemon->refusals().empty());
}

// A look that costs 8 ms comes once in 800 ms, however many cgroups come and go.
TEST_F(DaemonTest, LookingAtCgroupsTakesAHundredthOfACoreAtTheMost) {
  start(kTwoToOne);
  clock.advance(10 * kSecondNs);
  clock.cpu_step_ns = 8 * kMillisecondNs;
  daemon->tick();
  uint64_t looks = 0;
  const uint64_t begin_ns = clock.nowNs(), begin_cpu_ns = clock.cpu_ns;
  while (clock.nowNs() < begin_ns + 10 * kSecondNs) {
    clock.advance(kMillisecondNs);
    const uint64_t cpu_ns = clock.cpu_ns;
    daemon->onCgroupEvents();
    daemon->tick();
    looks += clock.cpu_ns != cpu_ns;
  }
  EXPECT_GE(looks, 11u);
  EXPECT_LE(looks, 13u);
  EXPECT_LE((clock.cpu_ns - begin_cpu_ns) / 2,
            (clock.nowNs() - begin_ns) / 100 + 8 * kMillisecondNs);
}

}  // namespace daemon_test
}  // namespace qgpu
