// SPDX-License-Identifier: GPL-2.0
// Prints documents that programs read, one a line after the name of its schema, for schema_test.py:
// as full as they can be, as empty as they can be, and read from the kernel.
#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "connection.hpp"
#include "daemon.hpp"
#include "diagnosis.hpp"
#include "explanation.hpp"
#include "fakes/fake_clock.hpp"
#include "fakes/fake_kernel.hpp"
#include "fakes/temp_folder.hpp"
#include "snapshot_json.hpp"
#include "timeline.hpp"
#include "verbs.hpp"

namespace qgpu {
namespace schema_test {

void print(const char *schema, const nlohmann::json &document) {
  std::printf("%s %s\n", schema, lineOf(document).c_str());
}

void count(fakes::FakeKernel &kernel, uint64_t time_ns) {
  kernel.samples.clear();
  Sample sample;
  sample.since_ns = 1;
  sample.time_ns = time_ns;
  sample.run_ns = time_ns / 2;
  sample.idle_ns = time_ns / 4;
  kernel.samples.push_back(sample);
  sample.waits.emplace();
  sample.tails.emplace();
  for (const TenantStatus &tenant : kernel.card(0).tenants) {
    sample.tenant_id = tenant.id;
    kernel.samples.push_back(sample);
  }
}

TEST(Schema, DocumentsForPrograms) {
  fakes::TempFolder folder, tree;
  fakes::FakeKernel kernel;
  fakes::FakeCard card(kernel);
  fakes::FakeClock clock;
  CgroupTree cgroups(tree.path());
  StateFile state_file(folder / "state.json");
  Daemon daemon(card, cgroups, state_file, clock);
  print("status", statusJson(daemon));
  kernel.addCard("GPU-0");
  daemon.start(parseConfig("[[card]]\nmatch = \"all\"\n[tenant.a]\nguarantee = 50\n", "f").ir);
  for (uint64_t second = 1; second < 4; ++second) {
    count(kernel, second * kSecondNs);
    clock.advance(kSecondNs);
    daemon.tick();
  }
  kernel.card(0).tenants.back().place = QGPU_PLACE_ROTATES;
  kernel.card(0).tenants.back().copy_tsgs = 1;
  kernel.card(0).tenants.back().pids = {7};
  daemon.refresh();
  print("status", statusJson(daemon));
  kernel.card(0).info.executor.emplace();
  clock.advance(kSecondNs);
  daemon.refresh();
  print("status", statusJson(daemon));
  print("explain", *ctl::explanationOf(statusJson(daemon), "a", ""));
  print("explain", *ctl::explanationOf(statusJson(daemon), "default", "0"));
  CardEvent event;
  event.kind = QGPU_EVENT_HANG;
  print("event", toJson(event));
  event = {QGPU_EVENT_CARD_STATE, 0, 5, 2, "a", 3, 4, 5, QGPU_CARD_DEGRADED, "why"};
  print("event", toJson(event));
  netlink::LogOfCard entry;
  const ctl::TenantNames names(statusJson(daemon));
  print("log", ctl::logJson(entry, names));
  entry.record = {1, 2, 3, QGPU_SEEN_TENANT, 1, QGPU_END_SLICE, QGPU_WINDOW_ONLINE, 1};
  print("log", ctl::logJson(entry, names));
  entry.record.end.reset();
  entry.record.ongoing = true;
  print("log", ctl::logJson(entry, names));
  print("doctor", ctl::findingsJson(ctl::findingsOf(ctl::gatherFacts("/nowhere"))));
  netlink::Client client(std::make_unique<fakes::FakeWire>(kernel));
  print("status", *ctl::statusFromKernel(client));
}

}  // namespace schema_test
}  // namespace qgpu
