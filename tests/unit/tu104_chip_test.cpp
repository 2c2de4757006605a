// SPDX-License-Identifier: GPL-2.0
// The TU104 layer over the chip model: what the recorded sequences achieve on something that
// behaves.
#include <gtest/gtest.h>

#include <random>

#include "fakes/sim_card.hpp"

extern "C" {
#include "hw/hw_ops.h"
}

namespace tu104_chip_test {

using qgpu::fakes::Ran;
using qgpu::fakes::SimCard;
using qgpu::fakes::SimOptions;
using qgpu::fakes::SimTsg;

constexpr u32 kGraphics = 0, kRunlist = 0;
constexpr u64 kMs = 1'000'000;

class Tu104OnChip : public testing::Test {
 protected:
  // A register access costs a microsecond, so that polling takes time.
  Tu104OnChip() : card(options()) {
    hw.ops = &tu104_ops;
    hw.io = card.io();
    EXPECT_EQ(tu104_ops.probe(&hw), 0);
    for (hw_mem &image : images) image = card.allocate(65536);
  }
  ~Tu104OnChip() override { EXPECT_TRUE(card.protocolErrors().empty()); }

  static SimOptions options() {
    SimOptions options;
    options.mmio_read_ns = 1000;
    options.mmio_write_ns = 100;
    options.start_ns = 5000 * kMs;
    return options;
  }

  // Write these TSGs into the spare buffer and submit it.
  int put(const std::vector<std::pair<SimTsg *, u64>> &tsgs) {
    std::vector<std::vector<hw_channel>> channels;
    std::vector<hw_image_tsg> list;
    for (auto &[tsg, slice_ns] : tsgs) {
      auto &of_tsg = channels.emplace_back();
      for (std::size_t i = 0; i < tsg->channelCount(); i++)
        of_tsg.push_back(tsg->channel(i).hwChannel());
    }
    for (std::size_t i = 0; i < tsgs.size(); i++)
      list.push_back({tsgs[i].first->id(), static_cast<u16>(channels[i].size()), tsgs[i].second,
                      channels[i].data()});
    u32 entries = 0;
    spare ^= 1;
    const int err =
        tu104_ops.image_write(&images[spare], list.data(), static_cast<u32>(list.size()), &entries);
    return err ? err : tu104_ops.submit(&hw, kRunlist, &images[spare], entries);
  }
  int preempt(const SimTsg &tsg, u64 within_ns) {
    return tu104_ops.preempt(&hw, kGraphics, tsg.id(), card.nowNs() + within_ns);
  }
  hw_channel_work work(SimTsg &tsg) {
    const hw_channel channel = tsg.channel().hwChannel();
    hw_channel_work out{};
    EXPECT_EQ(tu104_ops.channel_work(&hw, channel.id, channel.inst_addr, &out), 0);
    return out;
  }

  SimCard card;
  struct hw hw {};
  hw_mem images[2];
  int spare = 0;
};

TEST_F(Tu104OnChip, FindsWhatTheModelHas) {
  EXPECT_EQ(hw.id.chip_id, 0x164u);
  EXPECT_EQ(hw.id.channels, 4096u);
  EXPECT_GE(hw.id.engine_count, 2u);
  u32 graphics = 0;
  for (u32 i = 0; i < hw.id.engine_count; i++)
    graphics += hw.id.engines[i].type == HW_ENGINE_GRAPHICS;
  EXPECT_EQ(graphics, 1u);
  EXPECT_NE(hw.id.pbdmas[kRunlist], 0);
}

TEST_F(Tu104OnChip, SlicesWrittenAreSlicesRun) {
  SimTsg &a = card.createTsg(), &b = card.createTsg();
  a.channel().saturate({.duration_ns = 100'000});
  b.channel().saturate({.duration_ns = 100'000});
  ASSERT_EQ(put({{&a, 6 * kMs}, {&b, 2 * kMs}}), 0);
  card.advanceBy(100 * kMs);
  const u64 a_ns = card.runNs(a), b_ns = card.runNs(b);
  card.advanceBy(4000 * kMs);
  const double ratio =
      static_cast<double>(card.runNs(a) - a_ns) / static_cast<double>(card.runNs(b) - b_ns);
  const double wanted = static_cast<double>(tu104_ops.slice_round(6 * kMs)) /
                        static_cast<double>(tu104_ops.slice_round(2 * kMs));
  EXPECT_NEAR(ratio, wanted, 0.02);
}

TEST_F(Tu104OnChip, ManySubmitsNeverDisturbABufferInUse) {
  SimTsg &a = card.createTsg(), &b = card.createTsg();
  a.channel().saturate({.duration_ns = 50'000});
  b.channel().saturate({.duration_ns = 50'000});
  const u64 seed = 11;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  const u64 before = card.totals().submits;
  for (int i = 0; i < 2000; i++) {
    switch (random() % 4) {
      case 0:
        ASSERT_EQ(put({{&a, 1 + random() % (20 * kMs)}}), 0);
        break;
      case 1:
        ASSERT_EQ(put({{&b, 1 + random() % (20 * kMs)}}), 0);
        break;
      case 2:
        ASSERT_EQ(put({{&b, kMs}, {&a, kMs}, {&b, kMs}}), 0);
        break;
      case 3:
        ASSERT_EQ(put({}), 0);
        break;
    }
    EXPECT_FALSE(card.isPending());
    card.advanceBy(random() % 300'000);
  }
  EXPECT_EQ(card.totals().submits - before, 2000u);
}

TEST_F(Tu104OnChip, APreemptedTsgOutsideTheImageStaysAway) {
  SimTsg &a = card.createTsg(), &b = card.createTsg();
  a.channel().saturate({.duration_ns = 500 * kMs});
  b.channel().saturate({.duration_ns = 100'000});
  ASSERT_EQ(put({{&a, 50 * kMs}}), 0);
  card.advanceBy(3 * kMs);
  ASSERT_EQ(put({{&b, 50 * kMs}}), 0);
  const u64 start_ns = card.nowNs();
  ASSERT_EQ(preempt(a, 2 * kMs), 0);
  EXPECT_LE(card.nowNs() - start_ns, 200'000u);
  const u64 a_ns = card.runNs(a);
  card.advanceBy(20 * kMs);
  EXPECT_EQ(card.runNs(a), a_ns);
  EXPECT_GE(card.runNs(b), 19 * kMs);
}

TEST_F(Tu104OnChip, AnEmptyImageAndAPreemptLeaveTheEngineEmpty) {
  SimTsg &a = card.createTsg();
  a.channel().saturate({.duration_ns = 10 * kMs});
  ASSERT_EQ(put({{&a, kMs}}), 0);
  card.advanceBy(kMs);
  ASSERT_EQ(put({}), 0);
  ASSERT_EQ(preempt(a, 2 * kMs), 0);
  const u64 a_ns = card.runNs(a);
  card.advanceBy(50 * kMs);
  EXPECT_EQ(card.runNs(a), a_ns);
  hw_status status{};
  ASSERT_EQ(tu104_ops.status(&hw, kGraphics, &status), 0);
  EXPECT_EQ(status.state, HW_ENGINE_EMPTY);
}

TEST_F(Tu104OnChip, WorkThatCannotBeCutIsReportedAndLeavesLater) {
  SimTsg &a = card.createTsg();
  a.channel().launch({.duration_ns = 30 * kMs, .preemption = CHIP_WFI});
  ASSERT_EQ(put({{&a, kMs}}), 0);
  card.advanceBy(kMs);
  ASSERT_EQ(put({}), 0);
  const u64 start_ns = card.nowNs();
  EXPECT_EQ(preempt(a, 5 * kMs), -EBUSY);
  EXPECT_GE(card.nowNs() - start_ns, 5 * kMs);
  EXPECT_LE(card.nowNs() - start_ns, 6 * kMs);
  // The request is still with the chip; asking again only waits for it.
  EXPECT_EQ(preempt(a, 100 * kMs), 0);
  EXPECT_LE(card.nowNs() - start_ns, 32 * kMs);
}

TEST_F(Tu104OnChip, SamplesOfStatusAddUpToTheRecord) {
  SimTsg &a = card.createTsg(), &b = card.createTsg();
  a.channel().saturate({.duration_ns = 300'000});
  b.channel().syncLaunch({.duration_ns = 2 * kMs}, 3 * kMs);
  ASSERT_EQ(put({{&a, 4 * kMs}, {&b, 4 * kMs}}), 0);
  const u64 seed = 5, period_ns = 100'000, samples = 40'000;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  const u64 start_ns = card.nowNs(), a_ns = card.runNs(a), b_ns = card.runNs(b);
  u64 seen_a = 0, seen_b = 0;
  for (u64 i = 0; i < samples; i++) {
    card.advanceTo(start_ns + i * period_ns + random() % (period_ns - 2000));
    hw_status status{};
    ASSERT_EQ(tu104_ops.status(&hw, kGraphics, &status), 0);
    if (status.state != HW_ENGINE_RUNNING) continue;
    ASSERT_TRUE(status.tsg_id == a.id() || status.tsg_id == b.id());
    (status.tsg_id == a.id() ? seen_a : seen_b)++;
  }
  card.advanceTo(start_ns + samples * period_ns);
  const double total = static_cast<double>(samples * period_ns);
  EXPECT_NEAR(static_cast<double>(seen_a * period_ns) / total,
              static_cast<double>(card.runNs(a) - a_ns) / total, 0.005);
  EXPECT_NEAR(static_cast<double>(seen_b * period_ns) / total,
              static_cast<double>(card.runNs(b) - b_ns) / total, 0.005);
}

TEST_F(Tu104OnChip, AChannelSaysWhetherItHasWork) {
  SimTsg &a = card.createTsg(), &b = card.createTsg();
  EXPECT_EQ(work(a), HW_CHANNEL_QUIET);
  b.channel().saturate({.duration_ns = kMs});
  a.channel().launch({.duration_ns = 3 * kMs});
  EXPECT_EQ(work(a), HW_CHANNEL_HAS_WORK) << "rung, in no list";
  ASSERT_EQ(put({{&b, 2 * kMs}, {&a, 2 * kMs}}), 0);
  for (int i = 0; i < 20; i++) {
    card.advanceBy(300'000);
    EXPECT_EQ(work(a), a.channel().completed() ? HW_CHANNEL_QUIET : HW_CHANNEL_HAS_WORK) << i;
    EXPECT_EQ(work(b), HW_CHANNEL_HAS_WORK) << i;
  }
  card.advanceBy(20 * kMs);
  EXPECT_EQ(work(a), HW_CHANNEL_QUIET);
  a.channel().disable();
  EXPECT_EQ(work(a), HW_CHANNEL_DISABLED);
}

TEST_F(Tu104OnChip, AContextLeftOnAnIdleEngineHasNoWork) {
  SimTsg &a = card.createTsg();
  ASSERT_EQ(put({{&a, kMs}}), 0);
  a.channel().launch({.duration_ns = kMs});
  card.advanceBy(50 * kMs);
  hw_status status{};
  ASSERT_EQ(tu104_ops.status(&hw, kGraphics, &status), 0);
  EXPECT_EQ(status.state, HW_ENGINE_IDLE);
  EXPECT_EQ(status.tsg_id, a.id());
  EXPECT_EQ(work(a), HW_CHANNEL_QUIET);
}

TEST_F(Tu104OnChip, AFreedChannelIsStale) {
  SimTsg &a = card.createTsg();
  const hw_channel channel = a.channel().hwChannel();
  card.destroyTsg(a);
  hw_channel_work out{};
  EXPECT_EQ(tu104_ops.channel_work(&hw, channel.id, channel.inst_addr, &out), -ESTALE);
  card.createTsg();  // takes the channel's id, with another instance block
}

TEST_F(Tu104OnChip, TheCardsClockIsTheModels) {
  u64 last = 0, time_ns = 0;
  for (int i = 0; i < 100; i++) {
    card.advanceBy(77 * kMs);
    ASSERT_EQ(tu104_ops.time_ns(&hw, &time_ns), 0);
    EXPECT_GT(time_ns, last);
    if (i > 0) {
      EXPECT_NEAR(static_cast<double>(time_ns - last), 77e6, 10e3);
    }
    last = time_ns;
  }
}

TEST_F(Tu104OnChip, ALostCardIsLostToEveryOperation) {
  SimTsg &a = card.createTsg();
  a.channel().saturate({.duration_ns = kMs});
  ASSERT_EQ(put({{&a, kMs}}), 0);
  card.setLost(true);
  hw_status status{};
  hw_channel_work out{};
  u64 time_ns = 0;
  const hw_channel channel = a.channel().hwChannel();
  EXPECT_EQ(put({{&a, kMs}}), -ENODEV);
  EXPECT_EQ(preempt(a, kMs), -ENODEV);
  EXPECT_EQ(tu104_ops.status(&hw, kGraphics, &status), -ENODEV);
  EXPECT_EQ(tu104_ops.channel_work(&hw, channel.id, channel.inst_addr, &out), -ENODEV);
  EXPECT_EQ(tu104_ops.time_ns(&hw, &time_ns), -ENODEV);
  card.setLost(false);
  EXPECT_EQ(put({{&a, kMs}}), 0);
}

}  // namespace tu104_chip_test
