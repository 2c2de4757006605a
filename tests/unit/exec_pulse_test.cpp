// SPDX-License-Identifier: GPL-2.0
// A worker that hangs: its guard notices, and what the guard let run is stopped anew.
#include <fcntl.h>

#include "daemon/exec/pulse.hpp"
#include "unit/exec_bed.hpp"

namespace qgpu::exec {
namespace exec_pulse_test {

using Verdict = PulseWatch::Verdict;

TEST(PulseWatch, WhoDoesNotMoveForFiveLooksIsSilentForThirtyFiveHung) {
  PulseWatch watch;
  uint64_t beats = 7;
  for (int again = 0; again < 2; again++, beats++) {
    EXPECT_EQ(watch.look(beats), Verdict::kAlive);
    for (int i = 1; i <= 40; i++)
      EXPECT_EQ(watch.look(beats), i < 5    ? Verdict::kAlive
                                   : i < 35 ? Verdict::kSilent
                                            : Verdict::kHung)
          << i;
  }
}

TEST(PulseWatch, WhoHasNotBegunHasStoppedNobody) {
  PulseWatch watch;
  for (int i = 0; i < 100; i++) EXPECT_EQ(watch.look(0), Verdict::kAlive);
}

TEST(Pulse, IsOneOfBoth) {
  const auto of_guard = Pulse::create();
  ASSERT_TRUE(of_guard) << of_guard.error().text();
  const auto of_worker = Pulse::attach(dup((*of_guard)->fd()));
  ASSERT_TRUE(of_worker) << of_worker.error().text();
  EXPECT_EQ(fcntl((*of_worker)->fd(), F_GETFD), FD_CLOEXEC);
  (*of_worker)->beat();
  (*of_worker)->beat();
  EXPECT_EQ((*of_guard)->beats(), 2u);
  (*of_guard)->noteRelease();
  EXPECT_EQ((*of_worker)->releases(), 1u);
  EXPECT_FALSE(Pulse::attach(-1));
}

// Each has 30 % of the card, by windows. The guard opens all of them while nobody moves, or only
// when the worker has just gone on, or the worker stood still where nothing else tells.
TEST(ExecutorPulse, WhatTheGuardLetRunIsStoppedAnew) {
  QGPU_TRACE_SEED();
  const auto pulse = Pulse::create();
  ASSERT_TRUE(pulse);
  Bed bed;
  bed.pulse = pulse->get();
  bed.open();
  ASSERT_TRUE(
      bed.plan(QGPU_POLICY_FIXED_SHARE, {tenantOf(1, 100, 300'000), tenantOf(2, 100, 300'000)}));
  const size_t a = bed.add(1, queued()), b = bed.add(2, queued());
  bed.run(2 * kSecond);
  enum When { kStill, kGoesOn, kUnnoticed };
  size_t told = 0;
  for (const When when : {kStill, kGoesOn, kUnnoticed}) {
    if (when != kUnnoticed) bed.io.advance(6 * kSecond);
    if (when == kGoesOn) bed.run(10 * kMilli), told++;
    for (const size_t i : {a, b}) bed.tsg(i).enabled = true;
    (*pulse)->noteRelease();
    bed.run(10 * kMilli);
    EXPECT_EQ(bed.count(EventKind::kStalled), ++told) << when;
    EXPECT_NE(bed.lastSentence(EventKind::kStalled).find("had stopped ran"), std::string::npos);
    bed.run(kSecond / 2);
    const auto shares = bed.shares({a, b}, 2 * kSecond);
    EXPECT_NEAR(shares[0], 0.3, 0.01) << when;
    EXPECT_NEAR(shares[1], 0.3, 0.01) << when;
  }
}

}  // namespace exec_pulse_test
}  // namespace qgpu::exec
