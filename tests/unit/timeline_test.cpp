// SPDX-License-Identifier: GPL-2.0
// The scheduler's log from the kernel's messages to lines and traces.
#include "timeline.hpp"

#include <gtest/gtest.h>

#include <set>

#include "fakes/fake_kernel.hpp"
#include "netlink/client.hpp"

namespace qgpu::ctl {
namespace timeline_test {

using Json = nlohmann::json;
using netlink::LogOfCard;

const Json kStatus = {
    {"cards",
     {{{"index", 0},
       {"tenants", {{{"id", 2}, {"name", "web"}}, {{"id", 3}, {"name", "batch"}}}}}}}};

LogOfCard entryOf(uint64_t serial, uint32_t tenant = 2, uint32_t end = QGPU_END_SLICE) {
  LogOfCard entry;
  entry.record = {serial,
                  1'000'000 * serial,
                  1'000'000 * serial + 500'000,
                  QGPU_SEEN_TENANT,
                  tenant,
                  end,
                  QGPU_WINDOW_ROTATION,
                  std::nullopt};
  return entry;
}

LogOfCard ongoingOf(uint64_t serial, uint32_t tenant = 2) {
  LogOfCard entry = entryOf(serial, tenant);
  entry.record.end.reset();
  entry.record.ongoing = true;
  return entry;
}

TEST(Timeline, EveryFieldComesFromTheKernel) {
  fakes::FakeKernel kernel;
  kernel.addCard("GPU-0");
  LogOfCard switching;
  switching.record = {7, 10, 20, QGPU_SEEN_SWITCH, std::nullopt, std::nullopt, QGPU_WINDOW_ONLINE,
                      3};
  kernel.log = {switching, entryOf(8, 2, QGPU_END_WINDOW)};
  netlink::Client client(std::make_unique<fakes::FakeWire>(kernel));
  auto log = client.log();
  ASSERT_TRUE(log) << log.error().text();
  ASSERT_EQ(log->size(), 2u);
  const TenantNames names(kStatus);
  EXPECT_EQ(logJson(log->at(0), names), (Json{{"card", 0},
                                              {"serial", 7},
                                              {"from_ns", 10},
                                              {"to_ns", 20},
                                              {"seen", "switch"},
                                              {"window", "online"},
                                              {"ongoing", false},
                                              {"due", "batch"}}));
  EXPECT_EQ(logJson(log->at(1), names), (Json{{"card", 0},
                                              {"serial", 8},
                                              {"from_ns", 8'000'000},
                                              {"to_ns", 8'500'000},
                                              {"seen", "tenant"},
                                              {"window", "rotation"},
                                              {"ongoing", false},
                                              {"tenant", "web"},
                                              {"tenant_id", 2},
                                              {"end", "window"}}));
}

TEST(Timeline, LinesSayWhoHowLongAndWhyNoLonger) {
  const TenantNames names(kStatus);
  LogOfCard entry = entryOf(1, 2, QGPU_END_WINDOW);
  entry.record.window = QGPU_WINDOW_EXCLUSIVE;
  entry.record.due_id = 3;
  EXPECT_EQ(logText(entry, names),
            "       0.001000  card 0    500.0 us  web: window, exclusive window of batch");
  EXPECT_NE(logText(entryOf(1, 9), names).find("tenant 9: slice"), std::string::npos);
}

TEST(Timeline, ReadingsOfARingBecomeOneLog) {
  LogCollector collector;
  EXPECT_EQ(collector.add({entryOf(5), entryOf(6)}).size(), 2u);
  EXPECT_EQ(collector.lost(), 0u);
  EXPECT_EQ(collector.add({entryOf(5), entryOf(6), entryOf(7)}).size(), 1u);
  EXPECT_EQ(collector.add({entryOf(10), entryOf(11)}).size(), 2u);
  EXPECT_EQ(collector.lost(), 2u);
}

TEST(Timeline, WhatIsOnComesFromTheKernelToo) {
  fakes::FakeKernel kernel;
  kernel.addCard("GPU-0");
  kernel.log = {entryOf(8), ongoingOf(9)};
  for (LogOfCard &entry : kernel.log) entry.record.since_ns = 77;
  netlink::Client client(std::make_unique<fakes::FakeWire>(kernel));
  auto log = client.log();
  ASSERT_TRUE(log) << log.error().text();
  ASSERT_EQ(log->size(), 2u);
  EXPECT_FALSE(log->at(0).record.ongoing);
  EXPECT_TRUE(log->at(1).record.ongoing);
  EXPECT_EQ(log->at(1).record.since_ns, 77u);
  const TenantNames names(kStatus);
  EXPECT_EQ(logText(log->at(1), names), "       0.009000  card 0    500.0 us  web: still on");
  const Json json = logJson(log->at(1), names);
  EXPECT_EQ(json["ongoing"], true);
  EXPECT_FALSE(json.contains("end"));
}

// Once it is over, however often it was read before.
TEST(Timeline, WhatIsOnIsToldOnceItIsOver) {
  LogCollector collector;
  EXPECT_EQ(collector.add({entryOf(5), ongoingOf(6)}).size(), 1u);
  ASSERT_EQ(collector.ongoing().size(), 1u);
  EXPECT_EQ(collector.ongoing()[0].record.serial, 6u);
  EXPECT_TRUE(collector.add({entryOf(5), ongoingOf(6)}).empty());
  const auto fresh = collector.add({entryOf(5), entryOf(6), ongoingOf(7)});
  ASSERT_EQ(fresh.size(), 1u);
  EXPECT_EQ(fresh[0].record.serial, 6u);
  EXPECT_EQ(collector.ongoing()[0].record.serial, 7u);
  EXPECT_EQ(collector.lost(), 0u);
}

TEST(Timeline, ALogThatBeganAnewIsAnother) {
  LogCollector collector;
  const auto of = [](uint64_t since_ns, LogOfCard entry) {
    entry.record.since_ns = since_ns;
    return entry;
  };
  collector.add({of(1, entryOf(500)), of(1, entryOf(501))});
  EXPECT_TRUE(collector.renewed().empty());
  EXPECT_EQ(collector.add({of(2, entryOf(0)), of(2, entryOf(1)), of(2, ongoingOf(2))}).size(), 2u);
  EXPECT_EQ(collector.renewed(), std::vector<uint32_t>{0});
  // Also where it has grown beyond the former one's serials meanwhile.
  EXPECT_EQ(collector.add({of(3, entryOf(900)), of(3, entryOf(901))}).size(), 2u);
  EXPECT_EQ(collector.lost(), 0u);
  EXPECT_TRUE(collector.add({of(3, entryOf(901))}).empty());
  EXPECT_TRUE(collector.renewed().empty());
}

TEST(Timeline, ATraceHasATrackForTheEngineAndOneForEachTenant) {
  LogOfCard idle = entryOf(3);
  idle.record.seen = QGPU_SEEN_IDLE;
  idle.record.tenant_id.reset();
  const Json trace =
      traceJson({entryOf(1, 2), entryOf(2, 3, QGPU_END_NO_WORK), idle, ongoingOf(4, 2)},
                TenantNames(kStatus), 4);
  EXPECT_EQ(trace["otherData"]["lost_records"], 4);
  std::set<std::string> tracks;
  std::map<uint32_t, int> events;
  for (const Json &event : trace["traceEvents"]) {
    if (event["ph"] == "M" && event["name"] == "thread_name")
      tracks.insert(event["args"]["name"].get<std::string>());
    if (event["ph"] != "X") continue;
    ++events[event["tid"]];
    EXPECT_EQ(event["dur"], 500.0);
    EXPECT_EQ(event["pid"], 1);
  }
  EXPECT_EQ(tracks, (std::set<std::string>{"engine", "web", "batch"}));
  EXPECT_EQ(events.size(), 3u);
  EXPECT_EQ(events[1], 3);
}

}  // namespace timeline_test
}  // namespace qgpu::ctl
