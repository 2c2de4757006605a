// SPDX-License-Identifier: GPL-2.0
// A reader of the simulated driver's context-switch trace: full, empty, dropped, who sees what.
#include <gtest/gtest.h>

#include <cerrno>
#include <deque>
#include <random>

#include "fakes/seed.hpp"

extern "C" {
#include "sim/front/event_ring.h"
}

namespace front_trace_test {

event_switch switchOf(uint32_t uid, bool on, uint16_t seq = 0) {
  return {.time_ns = 1'000'000'031, .context = 7, .pid = 42, .uid = uid, .seq = seq, .on = on};
}

event_ring ringOf(uint32_t slots) {
  event_ring ring;
  event_ring_init(&ring, slots);
  ring.enabled = true;
  return ring;
}

constexpr event_reader kRoot{.privileged = true, .all_users = true, .uid = 0};
constexpr event_reader kNobody{.privileged = false, .all_users = true, .uid = 65534};

TEST(FrontTrace, OneSlotStaysFree) {
  event_ring ring = ringOf(4);
  EXPECT_EQ(event_ring_room(&ring), 3u);
  for (int slot = 0; slot < 3; ++slot) EXPECT_EQ(event_ring_put(&ring), slot);
  EXPECT_EQ(event_ring_put(&ring), -ENOSPC);
  EXPECT_EQ(ring.dropped, 1u);
}

TEST(FrontTrace, WhatIsDroppedLeavesTheOldest) {
  event_ring ring = ringOf(4);
  for (int i = 0; i < 10; ++i) (void)event_ring_put(&ring);
  EXPECT_EQ(ring.put, 3u);
  EXPECT_EQ(ring.dropped, 7u);
  EXPECT_EQ(event_ring_set_get(&ring, 3), 0);
  EXPECT_EQ(event_ring_put(&ring), 3);
}

TEST(FrontTrace, AReaderCannotPointOutsideItsBuffer) {
  event_ring ring = ringOf(4);
  EXPECT_EQ(event_ring_set_get(&ring, 4), -EINVAL);
  EXPECT_EQ(event_ring_set_get(&ring, UINT32_MAX), -EINVAL);
  EXPECT_EQ(ring.get, 0u);
}

// Against a queue that cannot be wrong, with a reader that also lies about how far it is.
TEST(FrontTrace, EverySlotIsInsideWhateverTheReaderSays) {
  QGPU_TRACE_SEED();
  std::mt19937_64 random(qgpu::fakes::seed());
  for (int round = 0; round < 2000; ++round) {
    uint32_t slots = 2 + random() % 30;
    event_ring ring = ringOf(slots);
    std::deque<int> queue;
    bool lied = false;
    for (int step = 0; step < 100; ++step) {
      if (random() % 2) {
        int slot = event_ring_put(&ring);
        ASSERT_LT(slot, static_cast<int>(slots));
        if (lied) continue;
        ASSERT_EQ(slot < 0, queue.size() == slots - 1);
        if (slot >= 0) queue.push_back(slot);
      } else if (!lied && !queue.empty()) {
        uint32_t next = (static_cast<uint32_t>(queue.front()) + 1) % slots;
        queue.pop_front();
        ASSERT_EQ(event_ring_set_get(&ring, next), 0);
      } else if (random() % 20 == 0) {
        (void)event_ring_set_get(&ring, static_cast<uint32_t>(random() % slots));
        lied = true;
      }
      ASSERT_LT(ring.put, slots);
      ASSERT_LT(event_ring_room(&ring), slots);
    }
  }
}

TEST(FrontTrace, TheFirstRecordIsAStart) {
  event_ring ring = ringOf(8);
  event_switch off = switchOf(0, false), on = switchOf(0, true);
  EXPECT_FALSE(event_ring_wants(&ring, &kRoot, &off));
  EXPECT_TRUE(event_ring_wants(&ring, &kRoot, &on));
  EXPECT_TRUE(event_ring_wants(&ring, &kRoot, &off));
}

TEST(FrontTrace, NothingIsKeptUntilEnabled) {
  event_ring ring;
  event_ring_init(&ring, 8);
  event_switch on = switchOf(0, true);
  EXPECT_FALSE(event_ring_wants(&ring, &kRoot, &on));
}

TEST(FrontTrace, WithoutAllUsersOnlyOnesOwn) {
  event_ring ring = ringOf(8);
  event_reader reader = kRoot;
  reader.all_users = false;
  event_switch other = switchOf(1000, true), own = switchOf(0, true);
  EXPECT_FALSE(event_ring_wants(&ring, &reader, &other));
  EXPECT_TRUE(event_ring_wants(&ring, &reader, &own));
}

TEST(FrontTrace, RootSeesPidContextAndTimeInStepsOf32) {
  rm_trace_record record;
  event_switch what = switchOf(1000, false, 65535);
  event_record_fill(&record, &kRoot, &what, 5, 77777);
  EXPECT_EQ(record.type, 2);
  EXPECT_EQ(record.tag, RM_TRACE_END);
  EXPECT_EQ(record.seq, 65535);
  EXPECT_EQ(record.context, 7u);
  EXPECT_EQ(record.pid, 5u);
  EXPECT_EQ(record.time_ns, 1'000'000'000u);
  EXPECT_EQ(record.gpu_instance, 0xff);
}

TEST(FrontTrace, AnotherUserSeesNeitherPidNorContextNorTheTime) {
  rm_trace_record record;
  event_switch what = switchOf(1000, true);
  event_record_fill(&record, &kNobody, &what, 5, 64000);
  EXPECT_EQ(record.tag, RM_TRACE_START);
  EXPECT_EQ(record.context, 0u);
  EXPECT_EQ(record.pid, 0u);
  EXPECT_EQ(record.time_ns, 999'936'000u);
}

TEST(FrontTrace, TheSameUserSeesItsOwn) {
  rm_trace_record record;
  event_switch what = switchOf(65534, true);
  event_record_fill(&record, &kNobody, &what, 5, 64000);
  EXPECT_EQ(record.pid, 5u);
  EXPECT_EQ(record.time_ns, 1'000'000'000u);
}

TEST(FrontTrace, TheHeaderSaysWhatTheRingIs) {
  event_ring ring = ringOf(3);
  for (int i = 0; i < 5; ++i) (void)event_ring_put(&ring);
  (void)event_ring_set_get(&ring, 1);
  rm_event_header header{};
  event_header_fill(&header, &ring);
  EXPECT_EQ(header.get, 1u);
  EXPECT_EQ(header.put, 2u);
  EXPECT_EQ(header.dropped, 3u);
}

}  // namespace front_trace_test
