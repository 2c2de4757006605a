// SPDX-License-Identifier: GPL-2.0
// Packets between qgpud and qgpu-exec: what goes in comes out, and nothing malformed does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

#include "daemon/exec/protocol.hpp"
#include "fakes/seed.hpp"

namespace qgpu::exec {
namespace exec_protocol_test {

template <class T>
std::vector<std::byte> bytesOf(const T &value) {
  std::vector<std::byte> out(sizeof(value));
  std::memcpy(out.data(), &value, sizeof(value));
  return out;
}

Plan twoTenants() {
  Plan plan{};
  plan.head.header.serial = 7;
  plan.head.generation = 3;
  plan.head.policy = 3;
  plan.tenants = {{.id = 1,
                   .weight = 200,
                   .guarantee_ppm = 300'000,
                   .ceiling_ppm = 900'000,
                   .work_class = 0,
                   .reserved = 0,
                   .wake_ns = 0,
                   .hang_ns = 0},
                  {.id = 9,
                   .weight = 100,
                   .guarantee_ppm = 0,
                   .ceiling_ppm = 1'000'000,
                   .work_class = 1,
                   .reserved = 0,
                   .wake_ns = 1'000'000,
                   .hang_ns = 0}};
  return plan;
}

TEST(ExecProtocol, PlanComesBackAsItWas) {
  const auto packet = encode(twoTenants());
  const auto plan = decodePlan(packet);
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_EQ(plan->head.header.serial, 7u);
  EXPECT_EQ(plan->head.generation, 3u);
  ASSERT_EQ(plan->tenants.size(), 2u);
  EXPECT_EQ(plan->tenants[0].weight, 200u);
  EXPECT_EQ(plan->tenants[1].wake_ns, 1'000'000u);
}

TEST(ExecProtocol, StatsComeBackAsTheyWere) {
  Stats stats{};
  stats.head.header.serial = 11;
  stats.tenants.resize(3);
  stats.tenants[2].run_ns = 42;
  stats.objects.resize(2);
  stats.objects[1].slice_ns = 43;
  const auto back = decodeStats(encode(stats));
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(back->head.header.serial, 11u);
  EXPECT_EQ(back->tenants.at(2).run_ns, 42u);
  EXPECT_EQ(back->objects.at(1).slice_ns, 43u);
}

TEST(ExecProtocol, ALogComesBackAsItWas) {
  Log log{};
  log.head.header.serial = 12;
  log.head.first_serial = 40;
  log.head.next_serial = 50;
  log.entries.resize(3);
  log.entries[1].tenant_id = kNoTenant;
  log.entries[2].to_ns = 77;
  const auto back = decodeLog(encode(log));
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(back->head.header.serial, 12u);
  EXPECT_EQ(back->head.first_serial, 40u);
  ASSERT_EQ(back->entries.size(), 3u);
  EXPECT_EQ(back->entries[1].tenant_id, kNoTenant);
  EXPECT_EQ(back->entries[2].to_ns, 77u);
  log.entries.resize(kMaxLogEntries);
  EXPECT_TRUE(decodeLog(encode(log)));
  auto packet = encode(log);
  reinterpret_cast<LogReply *>(packet.data())->entry_count++;
  EXPECT_FALSE(decodeLog(packet));
}

TEST(ExecProtocol, LargestStatsFitAPacket) {
  Stats stats{};
  stats.tenants.resize(kMaxTenants);
  stats.objects.resize(kMaxObjects);
  const auto packet = encode(stats);
  EXPECT_LE(packet.size(), kMaxPacket);
  EXPECT_TRUE(decodeStats(packet));
}

TEST(ExecProtocol, EveryTruncationIsRefused) {
  const auto packet = encode(twoTenants());
  for (size_t n = 0; n < packet.size(); n++) {
    const auto plan = decodePlan(std::span(packet).first(n));
    ASSERT_FALSE(plan) << n;
    EXPECT_EQ(plan.error().err, EPROTO);
    EXPECT_FALSE(plan.error().sentence.empty());
  }
}

TEST(ExecProtocol, OtherVersionIsRefusedWithBothNumbers) {
  auto packet = encode(twoTenants());
  const uint16_t version = kVersion + 1;
  std::memcpy(packet.data() + offsetof(Header, version), &version, sizeof(version));
  const auto plan = decodePlan(packet);
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().sentence.find(std::to_string(version)), std::string::npos);
  EXPECT_NE(plan.error().sentence.find(std::to_string(kVersion)), std::string::npos);
}

TEST(ExecProtocol, CountsThatDoNotFitTheSizeAreRefused) {
  for (const uint32_t count : {0u, 1u, 3u, kMaxTenants, kMaxTenants + 1, UINT32_MAX}) {
    auto packet = encode(twoTenants());
    std::memcpy(packet.data() + offsetof(PlanRequest, tenant_count), &count, sizeof(count));
    EXPECT_FALSE(decodePlan(packet)) << count;
  }
  for (const uint32_t count : {1u, kMaxObjects + 1, UINT32_MAX}) {
    auto packet = encode(Stats{});
    std::memcpy(packet.data() + offsetof(StatsReply, object_count), &count, sizeof(count));
    EXPECT_FALSE(decodeStats(packet)) << count;
  }
}

TEST(ExecProtocol, UnknownTypesAndFlagsAreRefused) {
  Plan plan = twoTenants();
  plan.head.flags = 0x80;
  EXPECT_FALSE(decodePlan(encode(plan)));
  plan = twoTenants();
  plan.tenants[1].reserved = 1;
  EXPECT_FALSE(decodePlan(encode(plan)));
  EXPECT_FALSE(decodeHeader(bytesOf(makeHeader(static_cast<Type>(0), sizeof(Header), 1))));
  EXPECT_FALSE(decodeHeader(bytesOf(makeHeader(static_cast<Type>(999), sizeof(Header), 1))));
}

TEST(ExecProtocol, AMessageOfAnotherTypeIsRefused) {
  EXPECT_FALSE(decodePlan(bytesOf(makeHeader(Type::kHelloRequest, sizeof(Header), 1))));
  EXPECT_TRUE(decodeHelloRequest(bytesOf(makeHeader(Type::kHelloRequest, sizeof(Header), 1))));
}

TEST(ExecProtocol, TextsThatDoNotEndAreRefused) {
  Event event{};
  event.header = makeHeader(Type::kEvent, sizeof(event), 0);
  EXPECT_TRUE(decodeEvent(bytesOf(event)));
  std::memset(event.sentence, 'x', sizeof(event.sentence));
  EXPECT_FALSE(decodeEvent(bytesOf(event)));
}

TEST(ExecProtocol, AProcessNeedsAPid) {
  ProcessRequest request{};
  request.header = makeHeader(Type::kProcessAdd, sizeof(request), 1);
  EXPECT_FALSE(decodeProcess(bytesOf(request)));
  request.pid = 12;
  EXPECT_TRUE(decodeProcess(bytesOf(request)));
}

TEST(ExecProtocol, LongSentencesAreCut) {
  const Error error{EINVAL, std::string(1000, 'y'), {}};
  const Status status = makeStatus(&error);
  EXPECT_EQ(status.error, EINVAL);
  EXPECT_EQ(strnlen(status.sentence, sizeof(status.sentence)), sizeof(status.sentence) - 1);
}

TEST(ExecProtocol, TextsAreCutBetweenCharacters) {
  const std::string text = "ab\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z";  // of 1, 2, 3 and 4 bytes
  const size_t ends[] = {0, 1, 2, 4, 7, 11, 12};
  char out[16];
  for (size_t room = 1; room < text.size() + 3; room++) {
    setText({out, room}, text);
    const size_t length = strnlen(out, room);
    EXPECT_LT(length, room);
    EXPECT_EQ(text.compare(0, length, out, length), 0);
    // The last end that fits.
    const size_t *next = std::upper_bound(std::begin(ends), std::end(ends), room - 1);
    EXPECT_EQ(length, next[-1]) << room;
  }
  setText({out, 3}, "\x80\x80\x80\x80");  // no character begins
  EXPECT_EQ(out[0], 0);
}

TEST(ExecProtocol, TextsComeOutPrintable) {
  Event event{};
  event.header = makeHeader(Type::kEvent, sizeof(event), 0);
  setText(event.sentence, "a\xff\x1b[2J\xc3\xa4~");
  EXPECT_STREQ(decodeEvent(bytesOf(event))->sentence, "a\?\?[2J\?\?~");
  HelloReply hello{};
  hello.header = makeHeader(Type::kHelloReply, sizeof(hello), 0);
  setText(hello.status.sentence, "x\ny");
  setText(hello.name, "T4\x9b");
  EXPECT_STREQ(decodeHelloReply(bytesOf(hello))->status.sentence, "x?y");
  EXPECT_STREQ(decodeHelloReply(bytesOf(hello))->name, "T4?");
}

TEST(ExecProtocol, RandomBytesNeverDecodeToMoreThanTheyAre) {
  QGPU_TRACE_SEED();
  std::mt19937_64 random(fakes::seed());
  for (int i = 0; i < 20'000; i++) {
    auto packet = i % 2 ? encode(twoTenants()) : encode(Stats{});
    for (int k = 0; k < 3; k++) packet[random() % packet.size()] = static_cast<std::byte>(random());
    packet.resize(packet.size() - random() % 2 * (random() % packet.size()));
    if (const auto plan = decodePlan(packet)) {
      EXPECT_EQ(sizeof(PlanRequest) + plan->tenants.size() * sizeof(PlanTenant), packet.size());
    }
    if (const auto stats = decodeStats(packet)) {
      EXPECT_LE(stats->objects.size() * sizeof(ObjectStats), packet.size());
    }
  }
}

}  // namespace exec_protocol_test
}  // namespace qgpu::exec
