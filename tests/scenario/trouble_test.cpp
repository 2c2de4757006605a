// SPDX-License-Identifier: GPL-2.0
//
// trouble_test.cpp - what may go wrong beside a scheduler that works: TSGs that vanish, work that
// cannot be cut, a chip that does not answer, a card that is gone.
#include <gtest/gtest.h>

#include "scenario/world.hpp"

namespace qgpu::scenario {
namespace trouble_test {

TEST(Removal, OfATsgInItsWindowLetsTheOtherGoOnAtOnce) {
  World world({.policy = CORE_FIXED_SHARE});
  auto &a = world.addTenant({.guarantee_ppm = 500'000});
  auto &b = world.addTenant({.guarantee_ppm = 400'000});
  a.saturate({.duration_ns = 50 * kMilli});
  b.saturate({.duration_ns = kMilli});
  world.start();
  world.runFor(kSecond);
  // Into the middle of a's window.
  while ((world.card().engineStatus() & 0x8000ffffu) != (0x80003000u | a.tsgs[0]->turn.tsg_id))
    world.runFor(100 * kMicro);
  world.runFor(kMilli);
  const uint64_t removed = world.nowNs();
  world.removeTsg(a, 0);
  ASSERT_EQ(world.lastError(), 0);
  const uint64_t b_before = world.chipRunNs(b);
  world.runFor(20 * kMilli);
  EXPECT_GE(world.chipRunNs(b) - b_before, 7 * kMilli);
  world.runFor(kSecond);
  const Record record = world.record();
  EXPECT_NEAR(static_cast<double>(record.run(b.index, removed, removed + kSecond)) / 1e9, 0.4,
              0.012);
  EXPECT_EQ(a.core.tsg_count, 0u);
}

TEST(Removal, OfATsgThatRunsInTheRotationLetsTheOtherGoOnWithinASlice) {
  World world;
  auto &a = world.addTenant(), &b = world.addTenant();
  a.saturate({.duration_ns = 50 * kMilli});
  b.saturate({.duration_ns = kMilli});
  world.start();
  world.runFor(kSecond);
  while ((world.card().engineStatus() & 0x8000ffffu) != (0x80003000u | a.tsgs[0]->turn.tsg_id))
    world.runFor(100 * kMicro);
  const uint64_t removed = world.nowNs(), before = world.chipRunNs(b);
  world.removeTsg(a, 0);
  world.runFor(100 * kMilli);
  EXPECT_LE(world.nowNs() - removed - (world.chipRunNs(b) - before), kMilli);
}

TEST(Uncuttable, WorkAtAWindowsEndIsCountedChargedAndOutwaited) {
  for (const uint64_t kernel : {5 * kMilli, 50 * kMilli}) {
    World world({.policy = CORE_FIXED_SHARE});
    auto &a = world.addTenant({.guarantee_ppm = 300'000});
    auto &b = world.addTenant({.guarantee_ppm = 400'000});
    a.saturate({.duration_ns = kernel, .preemption = CHIP_WFI});
    b.saturate({.duration_ns = kMilli});
    world.start();
    world.runFor(kSecond);
    const uint64_t a0 = world.chipRunNs(a), b0 = world.chipRunNs(b);
    const core_counters before = world.counters(a);
    world.runFor(20 * kSecond);
    const core_counters after = world.counters(a);
    EXPECT_GT(after.overruns, before.overruns);
    // In the long run it has its quota: what it overran is deducted.
    EXPECT_NEAR(static_cast<double>(world.chipRunNs(a) - a0) / 20e9, 0.3, 0.01);
    EXPECT_NEAR(static_cast<double>(world.chipRunNs(b) - b0) / 20e9, 0.4, 0.01);
    EXPECT_LE(std::abs(static_cast<double>(after.run_ns) - static_cast<double>(world.chipRunNs(a))),
              static_cast<double>(after.run_err_ns));
  }
}

TEST(Uncuttable, LoneWorkDoesNotHangTheTurn) {
  World world({.policy = CORE_FIXED_SHARE});
  auto &a = world.addTenant({.guarantee_ppm = 300'000});
  a.saturate({.duration_ns = 200 * kMilli, .preemption = CHIP_WFI});
  world.start();
  world.runFor(10 * kSecond);
  EXPECT_NEAR(static_cast<double>(world.chipRunNs(a)) / 10e9, 0.3, 0.03);
  EXPECT_LT(world.turns(), 30'000u);
}

// The TU104 layer with a submit that can be told to fail, and a memory of what was written.
struct Failing {
  static inline int submit_error = 0;  // returned instead of the result
  static inline bool reach_chip = false;
  static inline unsigned writes = 0;
  static inline std::vector<std::pair<u64, u32>> submits;  // buffer, entries

  static int submit(hw *hw, u32 runlist, const hw_mem *mem, u32 entries) {
    submits.emplace_back(mem->bus_addr, entries);
    if (!submit_error) return tu104_ops.submit(hw, runlist, mem, entries);
    if (reach_chip) tu104_ops.submit(hw, runlist, mem, entries);
    return submit_error;
  }
  static int imageWrite(const hw_mem *mem, const hw_image_tsg *tsgs, u32 count, u32 *entries) {
    writes++;
    return tu104_ops.image_write(mem, tsgs, count, entries);
  }
  static void install(World &world) {
    static hw_ops ops;
    ops = tu104_ops;
    ops.submit = submit;
    ops.image_write = imageWrite;
    submit_error = 0;
    reach_chip = false;
    writes = 0;
    submits.clear();
    world.hardware().ops = &ops;
  }
};

TEST(Submit, ThatIsNotAcknowledgedLeavesBothBuffersUntouched) {
  World world;
  auto &a = world.addTenant(), &b = world.addTenant();
  a.saturate({.duration_ns = kMilli});
  b.saturate({.duration_ns = kMilli});
  world.start();
  world.runFor(kSecond);
  Failing::install(world);
  Failing::submit_error = -ETIMEDOUT;
  Failing::reach_chip = true;  // it was taken after all, later
  world.changeList();
  EXPECT_EQ(world.lastError(), -ETIMEDOUT);
  ASSERT_EQ(Failing::writes, 1u);
  const auto unsure = Failing::submits.back();
  for (int i = 0; i < 3; i++) world.changeList();
  // Neither the old image nor the new one was written; the same was offered again.
  EXPECT_EQ(Failing::writes, 1u);
  for (const auto &submit : Failing::submits) EXPECT_EQ(submit, unsure);
  Failing::submit_error = 0;
  world.changeList();
  EXPECT_EQ(world.lastError(), 0);
  EXPECT_EQ(Failing::writes, 2u);
  EXPECT_NE(Failing::submits.back().first, unsure.first);
  const uint64_t begin = world.nowNs() + 50 * kMilli, end = begin + 2 * kSecond;
  world.runTo(end);
  EXPECT_LE(world.record().worstShareError(a.index, 0.5, begin, end, Record::aboutOneSecond()),
            0.6);
  EXPECT_TRUE(world.card().protocolErrors().empty()) << world.card().protocolErrors().front();
}

TEST(Submit, ThatIsRefusedLeavesTheFormerPlanInForce) {
  World world;
  auto &a = world.addTenant({.weight = 200}), &b = world.addTenant();
  a.saturate({.duration_ns = kMilli});
  b.saturate({.duration_ns = kMilli});
  world.start();
  world.runFor(kSecond);
  Failing::install(world);
  Failing::submit_error = -EBUSY;
  const core_settings former = a.core.asked;
  core_settings changed = former;
  changed.weight = 900;
  const u64 slice_ns = a.tsgs[0]->turn.core.slice_ns;
  turn_tenant_set(world.scheduler(), &a.core, &changed);
  world.apply();
  EXPECT_EQ(world.lastError(), -EBUSY);
  EXPECT_EQ(a.tsgs[0]->turn.core.slice_ns, slice_ns);
  turn_tenant_set(world.scheduler(), &a.core, &former);
  Failing::submit_error = 0;
  const uint64_t begin = world.nowNs() + 50 * kMilli, end = begin + 2 * kSecond;
  world.runTo(end);
  EXPECT_EQ(world.lastError(), 0);
  EXPECT_LE(world.record().worstShareError(a.index, 2.0 / 3, begin, end, Record::aboutOneSecond()),
            0.6);
}

TEST(Image, WithoutRoomForTheCutTsgTwiceIsStillFair) {
  std::mt19937_64 random(11);
  World world({.image_entries = 4});  // two TSGs of one channel, and not one entry more
  auto &a = world.addTenant({.weight = 200}), &b = world.addTenant();
  a.saturate({.duration_ns = kMilli});
  b.saturate({.duration_ns = kMilli});
  world.start();
  world.runFor(kSecond);
  const uint64_t begin = world.nowNs(), end = begin + 20 * kSecond;
  world.runToWithListChanges(end, 50 * kMilli, random);
  EXPECT_EQ(world.lastError(), 0);
  const Record record = world.record();
  EXPECT_NEAR(static_cast<double>(record.run(a.index, begin, end)) /
                  static_cast<double>(record.delivered(begin, end)),
              2.0 / 3, 0.02);
}

TEST(Lost, ACardThatIsGoneIsReportedAndSurvived) {
  World world;
  auto &a = world.addTenant(), &b = world.addTenant();
  a.saturate({.duration_ns = kMilli});
  b.saturate({.duration_ns = kMilli});
  world.start();
  world.runFor(kSecond);
  world.card().setLost(true);
  world.runFor(100 * kMilli);
  EXPECT_EQ(world.lastError(), -ENODEV);
  world.apply();
  EXPECT_EQ(world.lastError(), -ENODEV);
  world.card().setLost(false);
  const uint64_t begin = world.nowNs() + 100 * kMilli;
  world.runFor(2 * kSecond);
  EXPECT_EQ(world.lastError(), 0);
  const Record record = world.record();
  EXPECT_NEAR(static_cast<double>(record.run(a.index, begin, world.nowNs())) /
                  static_cast<double>(record.delivered(begin, world.nowNs())),
              0.5, 0.01);
}

TEST(Stopped, ATurnTouchesNothing) {
  World world;
  auto &a = world.addTenant();
  a.saturate({.duration_ns = kMilli});
  world.start();
  world.runFor(100 * kMilli);
  turn_stop(world.scheduler());
  const uint64_t submits = world.card().totals().submits;
  u64 next = 0;
  EXPECT_EQ(turn_run(world.scheduler(), world.nowNs(), &next), 0);
  EXPECT_EQ(next, U64_MAX);
  world.apply();
  EXPECT_EQ(world.card().totals().submits, submits);
}

}  // namespace trouble_test
}  // namespace qgpu::scenario
