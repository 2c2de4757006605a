// SPDX-License-Identifier: GPL-2.0
// The messages themselves: the fake kernel behind the wire decodes with libnl alone.
#include "kernel_card.hpp"

#include <gtest/gtest.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>

#include <cerrno>
#include <cstring>

#include "fakes/fake_kernel.hpp"
#include "fakes/seed.hpp"
#include "netlink/attribute_path.hpp"
#include "snapshot_json.hpp"

namespace qgpu {
namespace kernel_card_test {

class KernelCardTest : public ::testing::Test {
 protected:
  KernelCardTest() {
    kernel.addCard("GPU-0");
    auto request_wire = std::make_unique<fakes::FakeWire>(kernel);
    auto event_wire = std::make_unique<fakes::FakeWire>(kernel);
    requests = request_wire.get();
    events = event_wire.get();
    card = std::make_unique<KernelCard>(std::move(request_wire), std::move(event_wire));
  }

  PlanChange plan(uint64_t generation, const std::string &name) {
    PlanChange change;
    change.generation = generation;
    change.tenants.push_back({});
    change.tenants[0].name = name;
    return change;
  }

  fakes::FakeKernel kernel;
  fakes::FakeWire *requests = nullptr;
  fakes::FakeWire *events = nullptr;
  std::unique_ptr<KernelCard> card;
};

TEST_F(KernelCardTest, ReadsEveryFieldOfCardsAndTenants) {
  CardInfo &info = kernel.card(0).info;
  info.state = QGPU_CARD_DEGRADED;
  info.reason = "preempt refused";
  info.cycle_ns = 40'000'000;
  info.slice_max_ns = 268'000'000;
  TenantStatus &tenant = *kernel.findTenant(0, "default");
  tenant.asked.weight = 5;
  tenant.asked.guarantee_ppm = 123'000;
  tenant.asked.cgroups = {3, 9'000'000'000};
  tenant.share_ppm = 666'667;
  tenant.slice_ns = 26'000'000;
  tenant.awake = true;
  tenant.tsgs = 2;
  auto inventory = card->inventory();
  ASSERT_TRUE(inventory) << inventory.error().text();
  ASSERT_EQ(inventory->size(), 1u);
  const CardInfo &got = inventory->at(0).info;
  EXPECT_EQ(got.uuid, "GPU-0");
  EXPECT_EQ(got.chip_id, 0x164u);
  EXPECT_TRUE(got.simulated);
  EXPECT_EQ(got.method, uint32_t{QGPU_METHOD_IMAGES});
  EXPECT_EQ(got.state, uint32_t{QGPU_CARD_DEGRADED});
  EXPECT_EQ(got.reason, "preempt refused");
  EXPECT_EQ(got.generation, 1u);
  EXPECT_EQ(got.cycle_ns, 40'000'000u);
  EXPECT_EQ(got.slice_max_ns, 268'000'000u);
  ASSERT_EQ(inventory->at(0).tenants.size(), 1u);
  const TenantStatus &read = inventory->at(0).tenants[0];
  EXPECT_EQ(read.asked, tenant.asked);
  EXPECT_EQ(read.share_ppm, 666'667u);
  EXPECT_EQ(read.slice_ns, 26'000'000u);
  EXPECT_TRUE(read.awake);
  EXPECT_EQ(read.tsgs, 2u);
}

TEST_F(KernelCardTest, PlanArrivesAsSentAndTheReplyIsWhatWasSet) {
  PlanChange change = plan(1, "a");
  change.policy = QGPU_POLICY_BURST_SHARE;
  change.cycle_ns = 7'000'000;
  change.tenants[0].weight = 200;
  change.tenants[0].guarantee_ppm = 300'000;
  change.tenants[0].cgroups = std::vector<uint64_t>{1, 2, 3};
  auto reply = card->apply(change);
  ASSERT_TRUE(reply) << reply.error().text();
  EXPECT_EQ(reply->generation, 2u);
  ASSERT_EQ(reply->tenants.size(), 1u);
  EXPECT_EQ(reply->tenants[0].name, "a");
  EXPECT_EQ(reply->tenants[0].asked.weight, 200u);
  EXPECT_EQ(reply->tenants[0].slice_ns, 204'800u);
  EXPECT_EQ(kernel.findTenant(0, "a")->asked.cgroups, (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(kernel.cycle_overrides[0], 7'000'000u);
}

TEST_F(KernelCardTest, RefusalBringsErrnoSentenceAndGuiltyAttribute) {
  PlanChange change = plan(1, "a");
  change.tenants.push_back({});
  change.tenants[1].name = "b";
  change.tenants[1].weight = 10'001;
  auto reply = card->apply(change);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().err, ERANGE);
  EXPECT_EQ(reply.error().sentence, "weight must be 1 to 10000");
  EXPECT_EQ(reply.error().item, "plan, tenant b, weight");
  EXPECT_FALSE(kernel.findTenant(0, "a"));
}

TEST_F(KernelCardTest, StaleGenerationPointsAtTheGeneration) {
  auto reply = card->apply(plan(99, "a"));
  EXPECT_EQ(reply.error().err, ESTALE);
  EXPECT_EQ(reply.error().item, "plan, generation");
}

TEST_F(KernelCardTest, UnprivilegedIsEpermWithASentenceOfOurOwn) {
  kernel.admin = false;
  auto reply = card->apply(plan(1, "a"));
  EXPECT_EQ(reply.error().err, EPERM);
  EXPECT_EQ(reply.error().sentence, "changing a plan needs CAP_NET_ADMIN");
}

TEST_F(KernelCardTest, PlanOverAHundredKilobytesIsOneTransaction) {
  PlanChange change = plan(1, "t0");
  change.tenants.clear();
  for (int i = 0; i < 1000; ++i) {
    TenantChange tenant;
    tenant.name = "tenant-with-a-rather-long-name-" + std::to_string(i);
    tenant.weight = 5;
    tenant.cgroups.emplace();
    for (uint64_t id = 0; id < 20; ++id)
      tenant.cgroups->push_back(1 + static_cast<uint64_t>(i) * 100 + id);
    change.tenants.push_back(std::move(tenant));
  }
  auto reply = card->apply(change);
  ASSERT_TRUE(reply) << reply.error().text();
  EXPECT_EQ(reply->generation, 2u);
  EXPECT_EQ(reply->tenants.size(), 1000u);
  EXPECT_GT(requests->last_request.size(), 150'000u);
  EXPECT_EQ(kernel.plans_committed, 1);
  EXPECT_EQ(kernel.card(0).tenants.size(), 1001u);
  EXPECT_EQ(kernel.findTenant(0, change.tenants[999].name)->asked.cgroups.back(), 99'920u);
}

TEST_F(KernelCardTest, InterruptedDumpIsReadAgain) {
  kernel.interrupt_dumps = 3;
  EXPECT_TRUE(card->inventory());
}

TEST_F(KernelCardTest, DumpThatNeverStaysStillIsAnError) {
  kernel.interrupt_dumps = 1000;
  EXPECT_EQ(card->inventory().error().err, EINTR);
}

TEST_F(KernelCardTest, AbsentModuleIsEnodev) {
  kernel.loaded = false;
  auto inventory = card->inventory();
  EXPECT_EQ(inventory.error().err, ENODEV);
}

TEST_F(KernelCardTest, ModuleInTheMiddleOfItsUnloadingIsEnodev) {
  kernel.unloading = true;
  auto inventory = card->inventory();
  EXPECT_EQ(inventory.error().err, ENODEV);
  EXPECT_EQ(inventory.error().sentence, "the module qgpu is being unloaded");
}

TEST_F(KernelCardTest, LostAnswerIsATimeoutAndTheNextCallIsNotConfused) {
  ASSERT_TRUE(card->inventory());
  kernel.lose_next_answer = true;
  EXPECT_EQ(card->samples().error().err, ETIMEDOUT);
  EXPECT_TRUE(card->inventory());
}

TEST_F(KernelCardTest, LateAnswerToAnEarlierRequestIsSkipped) {
  ASSERT_TRUE(card->inventory());
  nlmsghdr stale{};
  stale.nlmsg_len = NLMSG_HDRLEN + sizeof(int);
  stale.nlmsg_type = NLMSG_DONE;
  stale.nlmsg_seq = 1;
  netlink::Bytes bytes(stale.nlmsg_len);
  memcpy(bytes.data(), &stale, sizeof(stale));
  requests->push(bytes);
  auto inventory = card->inventory();
  ASSERT_TRUE(inventory);
  EXPECT_EQ(inventory->size(), 1u);
}

TEST_F(KernelCardTest, EventsAreReadAfterTheInventorySubscribed) {
  kernel.emit({});
  EXPECT_TRUE(card->events().events.empty());
  ASSERT_TRUE(card->inventory());
  CardEvent event;
  event.kind = QGPU_EVENT_TENANT_APPEARED;
  event.tenant_name = "a";
  event.time_ns = 5;
  kernel.emit(event);
  EventBatch batch = card->events();
  ASSERT_EQ(batch.events.size(), 1u);
  EXPECT_EQ(batch.events[0].tenant_name, "a");
  EXPECT_FALSE(batch.lost);
}

TEST_F(KernelCardTest, OverflowIsReportedAndReadingGoesOn) {
  ASSERT_TRUE(card->inventory());
  kernel.emit({});
  events->overflow();
  EventBatch batch = card->events();
  EXPECT_TRUE(batch.lost);
  EXPECT_EQ(batch.events.size(), 1u);
}

TEST_F(KernelCardTest, FollowsTheModuleThroughUnloadAndReload) {
  ASSERT_TRUE(card->inventory());
  kernel.unload();
  EXPECT_TRUE(card->events().driver_changed);
  EXPECT_EQ(card->inventory().error().err, ENODEV);
  kernel.load();
  EXPECT_TRUE(card->events().driver_changed);
  ASSERT_TRUE(card->inventory());
  kernel.emit({});
  EXPECT_EQ(card->events().events.size(), 1u);
}

TEST_F(KernelCardTest, ReloadWithoutAnyEventIsFoundByTheNextLook) {
  ASSERT_TRUE(card->inventory());
  events->groups.clear();
  kernel.unload();
  kernel.load();
  EXPECT_TRUE(card->inventory());
  auto samples = card->samples();
  EXPECT_TRUE(samples);
}

TEST_F(KernelCardTest, ReadsSamples) {
  Sample sample;
  sample.tenant_id = 5;
  sample.time_ns = 1000;
  sample.run_ns = 77;
  sample.wait_max_ns = 78;
  sample.hangs = 79;
  sample.source = QGPU_SOURCE_WINDOW;
  kernel.samples.push_back(sample);
  kernel.samples.push_back({});
  auto samples = card->samples();
  ASSERT_TRUE(samples);
  ASSERT_EQ(samples->size(), 2u);
  EXPECT_EQ(samples->at(0).tenant_id, 5u);
  EXPECT_EQ(samples->at(0).run_ns, 77u);
  EXPECT_EQ(samples->at(0).wait_max_ns, 78u);
  EXPECT_EQ(samples->at(0).hangs, 79u);
  EXPECT_EQ(samples->at(0).source, uint32_t{QGPU_SOURCE_WINDOW});
  EXPECT_FALSE(samples->at(1).tenant_id);
}

TEST_F(KernelCardTest, SurvivesMutatedMessages) {
  QGPU_TRACE_SEED();
  std::mt19937_64 random(fakes::seed());
  ASSERT_TRUE(card->inventory());
  netlink::Client client(std::make_unique<fakes::FakeWire>(kernel));
  for (int round = 0; round < 4000; ++round) {
    CardEvent event;
    event.kind = QGPU_EVENT_PLAN;
    event.generation = 5;
    event.tenant_name = "tenant";
    fakes::FakeWire source(kernel);
    ASSERT_TRUE(source.join(kernel.events_group));
    source.pushEvent(event);
    netlink::Bytes bytes = *source.receive();
    for (uint64_t flips = random() % 6 + 1; flips > 0; --flips)
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    events->push(bytes);
    card->events();
    // Requests too: an answer that is rubbish is an error, never a crash.
    (void)netlink::attributeAt(bytes, static_cast<uint32_t>(random() % 200));
    auto incoming = netlink::readIncoming(bytes);
    if (!incoming) continue;
    (void)netlink::readCard(*incoming).ok();
    (void)netlink::readTenant(*incoming).ok();
    (void)netlink::readPlan(*incoming).ok();
    (void)netlink::readSample(*incoming).ok();
    (void)netlink::readTsg(*incoming).ok();
  }
}

TEST_F(KernelCardTest, RealSocketSpeaksExtendedAcknowledgement) {
  auto wire = netlink::openWire(netlink::WireKind::kRequests);
  if (!wire) GTEST_SKIP() << wire.error().text();
  netlink::Client client(std::move(*wire));
  auto family = client.resolve();
  EXPECT_TRUE(family || family.error().err == ENODEV);
}

TEST(EventLine, HoldsWhateverBytesAReasonHas) {
  CardEvent event;
  event.kind = kRmEventProcessBlind;
  event.reason = "(\xff\x1b\n)";
  const std::string line = lineOf(toJson(event));
  EXPECT_NE(line.find("(\xef\xbf\xbd\\u001b\\n)"), std::string::npos) << line;
}

TEST(Samples, HistogramsComeFromTheKernelAsTheyAre) {
  fakes::FakeKernel kernel;
  kernel.addCard("GPU-0");
  Sample sample;
  sample.tenant_id = 2;
  sample.waits = Histogram{{5, 3, 9}, 1234};
  kernel.samples = {sample};
  netlink::Client client(std::make_unique<fakes::FakeWire>(kernel));
  auto samples = client.samples();
  ASSERT_TRUE(samples) << samples.error().text();
  ASSERT_TRUE(samples->at(0).waits);
  EXPECT_EQ(samples->at(0).waits->bins, sample.waits->bins);
  EXPECT_EQ(samples->at(0).waits->sum_ns, 1234u);
  EXPECT_FALSE(samples->at(0).tails);
}

}  // namespace kernel_card_test
}  // namespace qgpu
