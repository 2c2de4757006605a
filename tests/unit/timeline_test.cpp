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
                                              {"due", "batch"}}));
  EXPECT_EQ(logJson(log->at(1), names), (Json{{"card", 0},
                                              {"serial", 8},
                                              {"from_ns", 8'000'000},
                                              {"to_ns", 8'500'000},
                                              {"seen", "tenant"},
                                              {"window", "rotation"},
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

TEST(Timeline, ATraceHasATrackForTheEngineAndOneForEachTenant) {
  LogOfCard idle = entryOf(3);
  idle.record.seen = QGPU_SEEN_IDLE;
  idle.record.tenant_id.reset();
  const Json trace =
      traceJson({entryOf(1, 2), entryOf(2, 3, QGPU_END_NO_WORK), idle}, TenantNames(kStatus), 4);
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
  EXPECT_EQ(events[1], 2);
}

}  // namespace timeline_test
}  // namespace qgpu::ctl
