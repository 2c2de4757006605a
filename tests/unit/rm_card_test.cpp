// SPDX-License-Identifier: GPL-2.0
// Method rm in qgpud: cards from a plain folder, executors from FakeExecutor, time from FakeClock.
#include "rm_card.hpp"

#include <gtest/gtest.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <random>

#include "card_set.hpp"
#include "fakes/fake_clock.hpp"
#include "fakes/fake_executor.hpp"
#include "fakes/fake_kernel.hpp"
#include "fakes/seed.hpp"
#include "fakes/temp_folder.hpp"
#include "snapshot_json.hpp"

namespace qgpu {
namespace rm_card_test {

constexpr const char *kUuid = "GPU-11111111-2222-3333-4444-555555555555";
constexpr const char *kOther = "GPU-99999999-2222-3333-4444-555555555555";

class RmCardTest : public ::testing::Test {
 protected:
  RmCardTest() {
    former_log = spdlog::default_logger();
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_st>()));
    addCard(3, kUuid);
    places.nvidia_proc = proc.path();
    places.executors.run_dir = run.path();
    places.executors.cgroup_root = "";
  }
  ~RmCardTest() override { spdlog::set_default_logger(former_log); }

  void addCard(unsigned minor, const std::string &uuid) {
    const std::string folder = "gpus/0000:0" + std::to_string(minor) + ":00.0";
    proc.makeFolder(folder);
    proc.write(folder + "/information", "Model: \t\t NVIDIA T4\nIRQ:   \t\t 41\nGPU UUID: \t " +
                                            uuid + "\nDevice Minor: \t " + std::to_string(minor) +
                                            "\n");
  }

  RmCard &card() {
    if (!card_)
      card_ = std::make_unique<RmCard>(
          places,
          RmCard::Wishes{[this](const CardInfo &info) { return info.uuid == wanted; },
                         [this] { return !wanted.empty(); }},
          clock);
    return *card_;
  }
  fakes::FakeExecutor &executor() {
    if (!executor_) executor_ = std::make_unique<fakes::FakeExecutor>(run.path(), kUuid);
    return *executor_;
  }

  CardInfo info() {
    auto cards = card().inventory();
    EXPECT_TRUE(cards.ok());
    return cards.ok() && !cards->empty() ? cards->front().info : CardInfo{};
  }
  TenantStatus tenantOf(const std::string &name) {
    auto cards = card().inventory();
    for (const TenantStatus &tenant : cards->front().tenants)
      if (tenant.name == name) return tenant;
    ADD_FAILURE() << "no tenant " << name;
    return {};
  }
  PlanChange twoToOne() {
    PlanChange change;
    change.card_index = 3;
    change.generation = info().generation;
    change.policy = QGPU_POLICY_BURST_SHARE;
    for (uint32_t weight : {200, 100}) {
      TenantChange tenant;
      tenant.name = weight == 200 ? "a" : "b";
      tenant.weight = weight;
      change.tenants.push_back(std::move(tenant));
    }
    return change;
  }
  // Ticks, also while the executor's thread takes its time.
  template <class Predicate>
  bool until(Predicate reached) {
    for (int i = 0; i < 500; ++i) {
      for (CardEvent &event : card().events().events) events.push_back(event);
      {
        auto guard = executor().lock();
        if (reached()) return true;
      }
      clock.advance(100 * kMillisecondNs);
      usleep(2000);
    }
    return false;
  }
  bool untilState(uint32_t state) {
    for (int i = 0; i < 500; ++i) {
      for (CardEvent &event : card().events().events) events.push_back(event);
      if (info().state == state) return true;
      clock.advance(100 * kMillisecondNs);
      usleep(2000);
    }
    return false;
  }

  // Asked a second later, and again of an executor that took too long: its late answer to what was
  // asked before comes first.
  std::vector<Sample> untilSamples(size_t count) {
    for (int i = 0; i < 500; ++i) {
      clock.advance(kSecondNs);
      auto samples = card().samples();
      if (samples.ok() && samples->size() >= count) return *samples;
    }
    return {};
  }
  template <class Predicate>
  CardInfo untilInfo(Predicate reached) {
    CardInfo now;
    for (int i = 0; i < 500 && !reached(now); ++i) {
      clock.advance(kSecondNs);
      now = info();
    }
    return now;
  }

  std::shared_ptr<spdlog::logger> former_log;
  fakes::TempFolder proc, run;
  fakes::FakeClock clock;
  RmCard::Places places;
  std::string wanted = kUuid;
  std::unique_ptr<fakes::FakeExecutor> executor_;
  std::unique_ptr<RmCard> card_;
  std::vector<CardEvent> events;
};

TEST_F(RmCardTest, OnlyCardsOfTheConfigurationAreThere) {
  addCard(1, kOther);
  addCard(2, "GPU-" + std::string(8, '?') + "-" + std::string(4, '?'));
  auto cards = card().inventory();
  ASSERT_TRUE(cards.ok());
  ASSERT_EQ(cards->size(), 1u);
  EXPECT_EQ(cards->front().info.uuid, kUuid);
  EXPECT_EQ(cards->front().info.index, 3u);
  EXPECT_EQ(cards->front().info.name, "NVIDIA T4");
  EXPECT_EQ(cards->front().info.method, uint32_t{QGPU_METHOD_RM});
}

TEST_F(RmCardTest, WithoutTheDriverThereIsOneSentence) {
  places.nvidia_proc = proc / "nothing";
  auto cards = card().inventory();
  ASSERT_FALSE(cards.ok());
  EXPECT_EQ(cards.error().err, ENODEV);
  EXPECT_NE(cards.error().sentence.find("driver is not loaded"), std::string::npos);
  wanted.clear();
  EXPECT_TRUE(card().inventory().ok());
}

TEST_F(RmCardTest, WithoutAnExecutorTheCardIsDegradedAndThePlanIsKept) {
  EXPECT_EQ(info().state, uint32_t{QGPU_CARD_DEGRADED});
  EXPECT_NE(info().reason.find("no executor is running"), std::string::npos);
  auto reply = card().apply(twoToOne());
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(reply->generation, 2u);
  EXPECT_EQ(reply->tenants.size(), 2u);
  EXPECT_EQ(info().policy, uint32_t{QGPU_POLICY_BURST_SHARE});

  ASSERT_TRUE(until([&] { return executor().generation == 2; }));
  auto guard = executor().lock();
  const exec::Plan &plan = executor().plans.back();
  EXPECT_EQ(plan.head.policy, uint32_t{QGPU_POLICY_BURST_SHARE});
  ASSERT_EQ(plan.tenants.size(), 2u);  // "default" is not the executor's
  EXPECT_EQ(plan.tenants[0].weight + plan.tenants[1].weight, 300u);
  guard.unlock();
  EXPECT_TRUE(untilState(QGPU_CARD_OK));
}

TEST_F(RmCardTest, ARefusalLeavesThePlanAndNamesTheTenant) {
  executor();
  ASSERT_TRUE(card().apply(twoToOne()).ok());
  {
    auto guard = executor().lock();
    executor().refuse_plan = Error{ENOSPC, "no plan can keep this", ""};
  }
  PlanChange change = twoToOne();
  change.tenants[0].guarantee_ppm = 900'000;
  for (bool dry_run : {true, false}) {
    change.dry_run = dry_run;
    auto reply = card().apply(change);
    ASSERT_FALSE(reply.ok());
    EXPECT_EQ(reply.error().err, ENOSPC);
    EXPECT_EQ(reply.error().sentence, "no plan can keep this");
  }
  auto cards = card().inventory();
  for (const TenantStatus &tenant : cards->front().tenants)
    EXPECT_EQ(tenant.asked.guarantee_ppm, 0u) << tenant.name;
  EXPECT_EQ(cards->front().info.generation, 2u);
}

TEST_F(RmCardTest, ADryRunChangesNothing) {
  executor();
  PlanChange change = twoToOne();
  change.dry_run = true;
  auto reply = card().apply(change);
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(reply->generation, 1u);
  EXPECT_EQ(reply->tenants.size(), 2u);
  auto guard = executor().lock();
  EXPECT_EQ(executor().plans.back().head.flags, exec::kPlanDryRun);
  EXPECT_EQ(executor().generation, 0u);
}

TEST_F(RmCardTest, AStaleGenerationIsRefused) {
  executor();
  PlanChange change = twoToOne();
  ASSERT_TRUE(card().apply(change).ok());
  EXPECT_EQ(card().apply(change).error().err, ESTALE);
}

TEST_F(RmCardTest, AMemoryCapNeedsTheModule) {
  PlanChange change = twoToOne();
  change.tenants[1].memory_bytes = 1 << 30;
  auto reply = card().apply(change);
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().err, EOPNOTSUPP);
  EXPECT_EQ(reply.error().item, "b");
}

TEST_F(RmCardTest, AfterARestartWhatTheExecutorHasIsReplacedByANewerPlan) {
  executor().generation = 9;
  EXPECT_EQ(info().generation, 1u);  // whatever runs there, it is not known to be ours
  EXPECT_EQ(info().policy, UINT32_MAX);
  ASSERT_TRUE(card().apply(twoToOne()).ok());
  auto guard = executor().lock();
  EXPECT_GT(executor().generation, 9u);
}

TEST_F(RmCardTest, AnExecutorThatComesBackIsToldAgain) {
  executor();
  ASSERT_TRUE(card().apply(twoToOne()).ok());
  ASSERT_TRUE(untilState(QGPU_CARD_OK));
  executor().stop();
  ASSERT_TRUE(untilState(QGPU_CARD_DEGRADED));
  EXPECT_EQ(events.back().kind, uint32_t{QGPU_EVENT_CARD_STATE});
  EXPECT_NE(events.back().reason.find("the plan is kept"), std::string::npos);
  executor().generation = 0;  // it has forgotten
  executor().plans.clear();
  executor().start();
  ASSERT_TRUE(until([&] { return executor().plans.size() == 1; }));
  EXPECT_TRUE(untilState(QGPU_CARD_OK));
  auto guard = executor().lock();
  EXPECT_EQ(executor().plans[0].tenants.size(), 2u);
}

TEST_F(RmCardTest, AnExecutorThatStillHasThePlanIsNotToldAgain) {
  executor();
  ASSERT_TRUE(card().apply(twoToOne()).ok());
  executor().stop();
  ASSERT_TRUE(untilState(QGPU_CARD_DEGRADED));
  executor().start();
  ASSERT_TRUE(untilState(QGPU_CARD_OK));
  auto guard = executor().lock();
  EXPECT_EQ(executor().plans.size(), 1u);
}

TEST_F(RmCardTest, APlanThatIsRefusedWhenItIsToldAgainIsSaid) {
  ASSERT_TRUE(card().apply(twoToOne()).ok());
  executor().refuse_plan = Error{ERANGE, "too many", ""};
  ASSERT_TRUE(until([&] { return executor().plans.size() == 1; }));
  ASSERT_TRUE(untilState(QGPU_CARD_DEGRADED));
  for (int i = 0; i < 20; ++i) (void)until([] { return true; });
  EXPECT_NE(info().reason.find("refuses the plan: too many"), std::string::npos) << info().reason;
  auto guard = executor().lock();
  EXPECT_EQ(executor().plans.size(), 1u);  // it is not asked for ever
}

TEST_F(RmCardTest, FiveSecondsOfSilenceAreAWatchdogsBusiness) {
  executor();
  ASSERT_TRUE(card().apply(twoToOne()).ok());
  ASSERT_TRUE(untilState(QGPU_CARD_OK));
  {
    auto guard = executor().lock();
    executor().silent = true;
  }
  clock.advance(kSecondNs);
  (void)card().samples();
  EXPECT_EQ(info().state, uint32_t{QGPU_CARD_OK});
  clock.advance(5 * kSecondNs);
  EXPECT_EQ(info().state, uint32_t{QGPU_CARD_DEGRADED});
  EXPECT_NE(info().reason.find("does not answer"), std::string::npos);
  // A change is taken meanwhile without waiting for it, and told when it answers.
  PlanChange change = twoToOne();
  change.tenants[0].weight = 300;
  ASSERT_TRUE(card().apply(change).ok());
  {
    auto guard = executor().lock();
    executor().speak();
  }
  ASSERT_TRUE(until([&] { return executor().plans.size() == 2; }));
  EXPECT_TRUE(untilState(QGPU_CARD_OK));
}

TEST_F(RmCardTest, CountersComeUpAndNoneTwice) {
  executor();
  ASSERT_TRUE(card().apply(twoToOne()).ok());
  const uint32_t id = tenantOf("a").id;
  {
    auto guard = executor().lock();
    exec::TenantStats stats{};
    stats.id = id;
    stats.share_ppm = 666'667;
    stats.run_ns = 5;
    stats.wait_max_ns = 7;
    stats.hangs = 1;
    stats.place = QGPU_PLACE_CLOCKED;
    stats.source = QGPU_SOURCE_TRACE;
    stats.visits = 9;
    stats.wait_bins[2] = 8;
    stats.wait_sum_ns = 13;
    executor().tenants[id] = stats;
    stats.id = 78;
    stats.source = QGPU_SOURCE_INFERRED;
    executor().tenants[78] = stats;
    executor().nobody_ns = 20;
    executor().removed_ns = 3;
  }
  auto samples = untilSamples(4);
  ASSERT_EQ(samples.size(), 4u);
  if (samples[0].tenant_id != id) std::swap(samples[0], samples[1]);
  EXPECT_EQ(samples[0].visits, 9u);
  ASSERT_TRUE(samples[0].waits);
  EXPECT_EQ(samples[0].waits->bins[2], 8u);
  EXPECT_EQ(samples[0].waits->sum_ns, 13u);
  EXPECT_FALSE(samples[0].tails);
  EXPECT_FALSE(samples[1].waits);  // without the trace nobody knows
  EXPECT_EQ(samples[2].tenant_id, uint32_t{QGPU_TENANT_NOBODY});
  EXPECT_EQ(samples[2].run_ns, 23u);
  EXPECT_EQ(samples[3].removed_ns, 3u);
  EXPECT_EQ(samples[0].tenant_id, id);
  EXPECT_EQ(samples[0].run_ns, 5u);
  EXPECT_EQ(samples[0].wait_max_ns, 7u);
  EXPECT_EQ(samples[0].hangs, 1u);
  EXPECT_EQ(samples[0].card_index, 3u);
  EXPECT_FALSE(samples[3].tenant_id);
  EXPECT_TRUE(card().samples()->empty());
  EXPECT_EQ(tenantOf("a").share_ppm, 666'667u);
  EXPECT_EQ(tenantOf("a").place, uint32_t{QGPU_PLACE_CLOCKED});
}

TEST_F(RmCardTest, StatusSaysWhatTheExecutorCounts) {
  executor();
  ASSERT_TRUE(card().apply(twoToOne()).ok());
  EXPECT_EQ(info().executor->processes, 0u);
  {
    auto guard = executor().lock();
    exec::TenantStats stats{};
    stats.id = 77;
    stats.processes = 2;
    stats.foreign_changes = 3;
    executor().tenants[77] = stats;
  }
  const CardInfo now =
      untilInfo([](const CardInfo &info) { return info.executor && info.executor->processes; });
  ASSERT_TRUE(now.executor);
  EXPECT_EQ(now.executor->processes, 2u);
  EXPECT_EQ(now.executor->foreign_changes, 3u);
  executor().stop();
  ASSERT_TRUE(untilState(QGPU_CARD_DEGRADED));
  EXPECT_FALSE(info().executor);
}

TEST_F(RmCardTest, PidsAreThoseUnderControl) {
  executor();
  ASSERT_TRUE(card().apply(twoToOne()).ok());
  const uint32_t id = tenantOf("a").id;
  {
    auto guard = executor().lock();
    for (int32_t pid : {30, 20, 30, 10}) {
      exec::ObjectStats object{};
      object.pid = pid;
      object.tenant_id = pid == 10 ? tenantOf("b").id : id;
      executor().objects.push_back(object);
    }
  }
  untilInfo([](const CardInfo &info) { return info.tsgs == 4; });
  EXPECT_EQ(tenantOf("a").pids, (std::vector<uint32_t>{20, 30}));
  EXPECT_EQ(tenantOf("b").pids, (std::vector<uint32_t>{10}));
  const CardSnapshot shown = card().inventory()->front();
  EXPECT_EQ(toJson(shown, nullptr)["tenants"][0]["pids"], (nlohmann::json{20, 30}));
  EXPECT_FALSE(toJson(shown, nullptr)["tenants"][2].contains("pids"));
}

TEST_F(RmCardTest, TheLogIsTheExecutors) {
  executor();
  ASSERT_TRUE(card().apply(twoToOne()).ok());
  {
    auto guard = executor().lock();
    executor().log.push_back(
        {1, 2, exec::kNoTenant, exec::kNoTenant, QGPU_SEEN_SWITCH, 0, QGPU_WINDOW_ROTATION, 0, {}});
    executor().log.push_back(
        {2, 5, 77, 78, QGPU_SEEN_TENANT, QGPU_END_WINDOW, QGPU_WINDOW_EXCLUSIVE, 0, {}});
    executor().log_ongoing.from_ns = 5;
  }
  const auto all = card().log(3, 0);
  ASSERT_TRUE(all) << all.error().text();
  EXPECT_EQ(all->next_serial, 2u);
  EXPECT_EQ(all->since_ns, 9u);
  ASSERT_EQ(all->records.size(), 3u);
  const LogRecord &on = all->records[2];
  EXPECT_TRUE(on.ongoing);
  EXPECT_EQ(on.serial, 2u);
  EXPECT_EQ(on.from_ns, 5u);
  EXPECT_FALSE(on.end);
  EXPECT_TRUE(logRecordFrom(toJson(on)).ongoing);
  EXPECT_FALSE(all->records[0].tenant_id);
  EXPECT_FALSE(all->records[0].end);
  EXPECT_FALSE(all->records[0].due_id);
  const auto last = card().log(3, 1);
  ASSERT_TRUE(last);
  ASSERT_EQ(last->records.size(), 2u);
  const LogRecord &record = last->records[0];
  EXPECT_EQ(record.serial, 1u);
  EXPECT_EQ(record.from_ns, 2u);
  EXPECT_EQ(record.to_ns, 5u);
  EXPECT_EQ(record.tenant_id, 77u);
  EXPECT_EQ(record.due_id, 78u);
  EXPECT_EQ(record.end, uint32_t{QGPU_END_WINDOW});
  EXPECT_EQ(logRecordFrom(toJson(record)).due_id, 78u);
  executor().refuse_log = EOPNOTSUPP;
  EXPECT_EQ(card().log(3, 0).error().err, EOPNOTSUPP);
  EXPECT_EQ(card().log(4, 0).error().err, ENODEV);
  executor().stop();
  ASSERT_TRUE(untilState(QGPU_CARD_DEGRADED));
  EXPECT_EQ(card().log(3, 0).error().err, ENOTCONN);
}

// Where run times come from stands beside them, and what the card costs once that was measured.
TEST_F(RmCardTest, SourceAndCostsAreShown) {
  executor();
  ASSERT_TRUE(card().apply(twoToOne()).ok());
  EXPECT_EQ(info().switch_ns, 200'000u);
  exec::TenantStats stats{};
  stats.id = tenantOf("a").id;
  {
    auto guard = executor().lock();
    stats.copy_tsgs = 3;
    stats.source = exec::kSourceNvml;
    executor().tenants[stats.id] = stats;
    executor().source = exec::kSourceNvml;
    executor().constants = {60'000, 40'000, 15'000, 20'000, 1'700'000'000};
  }
  const CardInfo now = untilInfo(
      [](const CardInfo &info) { return info.executor && info.executor->costs.measured_s; });
  EXPECT_EQ(now.switch_ns, 100'000u);
  const auto cards = card().inventory();
  ASSERT_TRUE(cards.ok());
  const nlohmann::json json = toJson(cards->front(), nullptr);
  EXPECT_EQ(json["executor"]["source"], "nvml");
  EXPECT_EQ(json["executor"]["costs"]["visit_ns"], 60'000);
  for (const auto &tenant : json["tenants"])
    if (tenant["name"] == "a") {
      EXPECT_EQ(tenant["copy_tsgs"], 3);
    }
}

TEST_F(RmCardTest, EventsHaveTheTenantsName) {
  executor();
  ASSERT_TRUE(card().apply(twoToOne()).ok());
  const uint32_t id = tenantOf("b").id;
  exec::Event event{};
  event.header = exec::makeHeader(exec::Type::kEvent, sizeof(event), 0);
  event.kind = exec::EventKind::kControlRefused;
  event.tenant_id = id;
  event.pid = 42;
  exec::setText(event.sentence, "0xa06c0103 says 0x1b");
  {
    auto guard = executor().lock();
    executor().emit(event);
  }
  ASSERT_TRUE(until(
      [&] { return !events.empty() && events.back().kind == uint32_t{kRmEventControlRefused}; }));
  EXPECT_EQ(events.back().tenant_name, "b");
  EXPECT_EQ(events.back().pid, 42u);
  EXPECT_EQ(events.back().reason, "0xa06c0103 says 0x1b");
}

TEST_F(RmCardTest, WhatASentenceQuotesReachesNeitherJsonNorAScreenRaw) {
  executor();
  ASSERT_TRUE(card().apply(twoToOne()).ok());
  exec::Event event{};
  event.header = exec::makeHeader(exec::Type::kEvent, sizeof(event), 0);
  event.kind = exec::EventKind::kProcessBlind;
  event.tenant_id = tenantOf("a").id;
  exec::setText(event.sentence, "process 42 (\xff\x1b) runs uncontrolled");
  {
    auto guard = executor().lock();
    executor().emit(event);
  }
  ASSERT_TRUE(until(
      [&] { return !events.empty() && events.back().kind == uint32_t{kRmEventProcessBlind}; }));
  EXPECT_EQ(events.back().reason, "process 42 (\?\?) runs uncontrolled");
}

TEST_F(RmCardTest, WhoIsNotUnderControlIsShownWithItsTenantUntilItIs) {
  executor();
  ASSERT_TRUE(card().apply(twoToOne()).ok());
  ASSERT_TRUE(untilState(QGPU_CARD_OK));
  const uint32_t id = tenantOf("b").id;
  exec::Event event{};
  event.header = exec::makeHeader(exec::Type::kEvent, sizeof(event), 0);
  event.kind = exec::EventKind::kCardState;
  event.tenant_id = id;
  event.card_state = QGPU_CARD_DEGRADED;
  exec::setText(event.sentence, "process 42 runs uncontrolled");
  {
    auto guard = executor().lock();
    executor().card_state = QGPU_CARD_DEGRADED;
    executor().shortfall.tenant_id = id;
    exec::setText(executor().shortfall.sentence, event.sentence);
    executor().emit(event);
  }
  ASSERT_TRUE(untilState(QGPU_CARD_DEGRADED));
  EXPECT_EQ(info().reason, "tenant b: process 42 runs uncontrolled");
  clock.advance(kSecondNs);
  EXPECT_EQ(info().reason, "tenant b: process 42 runs uncontrolled");
  {
    auto guard = executor().lock();
    executor().card_state = QGPU_CARD_OK;
    executor().shortfall = exec::makeStatus(nullptr);
  }
  EXPECT_TRUE(untilState(QGPU_CARD_OK));
  EXPECT_EQ(info().reason, "");
}

TEST_F(RmCardTest, WhatAnExecutorSaysOfItselfIsShown) {
  executor().refuse_hello = Error{ENOTSUP, "driver 999.1 is not known", ""};
  EXPECT_EQ(info().state, uint32_t{QGPU_CARD_DEGRADED});
  EXPECT_EQ(info().reason, "driver 999.1 is not known");
}

TEST_F(RmCardTest, GarbageEndsTheConnectionAndNothingElse) {
  QGPU_TRACE_SEED();
  std::mt19937_64 random(fakes::seed());
  executor();
  ASSERT_TRUE(card().apply(twoToOne()).ok());
  for (int round = 0; round < 40; ++round) {
    {
      auto guard = executor().lock();
      exec::StatsReply reply{};
      reply.header =
          exec::makeHeader(exec::Type::kStatsReply, sizeof(reply), static_cast<uint32_t>(random()));
      const auto *from = reinterpret_cast<const std::byte *>(&reply);
      executor().send_instead.assign(from, from + sizeof(reply));
      // From a wrong serial to noise.
      for (uint64_t flips = random() % 20; flips > 0; --flips)
        executor().send_instead[random() % sizeof(reply)] ^= static_cast<std::byte>(random());
      if (random() % 4 == 0) executor().send_instead.resize(1 + random() % 300);
    }
    clock.advance(kSecondNs);
    (void)card().samples();
    (void)until([] { return true; });
  }
  {
    auto guard = executor().lock();
    executor().send_instead.clear();
  }
  EXPECT_TRUE(untilState(QGPU_CARD_OK));
}

TEST_F(RmCardTest, TheModulesCardsAndRmsAreOneSet) {
  fakes::FakeKernel kernel;
  kernel.addCard("GPU-0");
  fakes::FakeCard module(kernel);
  executor();
  CardSet set(module, card());
  auto all = set.inventory();
  ASSERT_TRUE(all.ok());
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ((*all)[0].info.uuid, "GPU-0");
  EXPECT_EQ((*all)[1].info.uuid, kUuid);
  ASSERT_TRUE(set.apply(twoToOne()).ok());
  EXPECT_TRUE(kernel.plans.empty());
  kernel.unload();
  all = set.inventory();
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->size(), 1u);
  wanted.clear();
  EXPECT_EQ(set.inventory().error().err, ENODEV);
}

TEST_F(RmCardTest, ACardThatTheModuleEnforcesIsLeftAlone) {
  fakes::FakeKernel kernel;
  for (int i = 0; i < 3; ++i) kernel.addCard("GPU-" + std::to_string(i));
  kernel.addCard(kUuid);  // index 3 here too
  kernel.card(3).info.policy = QGPU_POLICY_BURST_SHARE;
  fakes::FakeCard module(kernel);
  executor();
  CardSet set(module, card());
  auto all = set.inventory();
  ASSERT_EQ(all->size(), 4u);
  EXPECT_EQ(all->back().info.state, uint32_t{QGPU_CARD_DEGRADED});
  EXPECT_EQ(set.apply(twoToOne()).error().err, EBUSY);
  kernel.card(3).info.policy = QGPU_POLICY_BEST_EFFORT;
  all = set.inventory();
  EXPECT_TRUE(set.apply(twoToOne()).ok());
}

}  // namespace rm_card_test
}  // namespace qgpu
