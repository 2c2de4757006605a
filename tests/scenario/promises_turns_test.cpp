// SPDX-License-Identifier: GPL-2.0
//
// promises_turns_test.cpp - windows by lag: launch-and-sync tenants beside others that sleep and
// wake, or have ceilings. Who saturates is not taken for one that does not fit, and between two
// windows of one everybody who waits has a turn.
#include <deque>

#include "scenario/promise.hpp"

namespace qgpu::scenario {
namespace promises_turns_test {

struct Party {
  enum Kind { kQueued, kSync, kWaking } kind = kQueued;
  TenantOptions asked;
  uint64_t kernel_ns = kMilli, gap_ns = 0, on_ns = 0;
};

// Two to nine: launch-and-sync, wakers, queued; some with a guarantee or a ceiling.
std::vector<Party> drawTurns(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto part = [&] { return std::uniform_real_distribution<double>(0, 1)(random); };
  const auto between = [&](double low, double high) {  // log-uniform
    return static_cast<uint64_t>(low * std::exp(part() * std::log(high / low)));
  };
  std::vector<Party> parties(2 + random() % 8);
  for (Party &party : parties) {
    const double kind = part();
    party.asked.weight = static_cast<uint32_t>(between(200, 3000));
    if (kind < 0.3)
      party = {Party::kSync, party.asked, between(300e3, 5e6), between(8e3, 50e3), 0};
    else if (kind < 0.6)
      party = {Party::kWaking, party.asked, between(100e3, 5e6), between(5e6, 400e6),
               between(1e6, 300e6)};
    else
      party = {Party::kQueued, party.asked, between(50e3, 20e6), 0, 0};
    if (part() < 0.2) party.asked.guarantee_ppm = static_cast<uint32_t>(between(10e3, 100e3));
    if (part() < 0.15) party.asked.ceiling_ppm = static_cast<uint32_t>(between(150e3, 900e3));
  }
  parties[0].kind = Party::kSync;
  parties[0].gap_ns = std::max<uint64_t>(parties[0].gap_ns, 20 * kMicro);
  return parties;
}

void begin(Work &work, const Party &party, uint64_t seed) {
  const fakes::Kernel kernel = {.duration_ns = party.kernel_ns};
  switch (party.kind) {
    case Party::kQueued:
      return work.queued(kernel, 2);
    case Party::kSync:
      return work.sync(kernel, std::min<uint64_t>(party.gap_ns, 50 * kMicro));
    case Party::kWaking:
      return work.bursts(kernel, party.on_ns, party.gap_ns, seed);
  }
}

struct Outcome {
  uint64_t longest_wait_ns = 0;
  size_t fitting = 0, taken = 0;  // of those who fit the rotation, for misfits
};

Outcome runTurns(uint64_t seed) {
  const std::vector<Party> parties = drawTurns(seed);
  World world({.seed = seed});
  std::deque<Work> works;
  std::vector<bool> taken(parties.size());
  for (const Party &party : parties) works.emplace_back(world, world.addTenant(party.asked));
  for (size_t i = 0; i < works.size(); i++) begin(works[i], parties[i], seed + i);
  world.start();
  const uint64_t from = world.nowNs(), to = from + 12 * kSecond;
  while (world.nowNs() < to) {
    world.runFor(20 * kMilli);
    for (size_t i = 0; i < works.size(); i++) taken[i] = taken[i] || world.tenant(i).core.misfit;
  }
  const Verdict verdict(world, from, to);
  Outcome out;
  for (size_t i = 0; i < works.size(); i++) {
    if (parties[i].kind != Party::kSync) {
      out.fitting++;
      out.taken += taken[i];
    }
    // A ceiling's pause is no wait, and the chip's record does not know which is one.
    if (parties[i].asked.ceiling_ppm == CORE_PPM)
      out.longest_wait_ns =
          std::max(out.longest_wait_ns, verdict.longestWaitNs(i, works[i].spans()));
  }
  return out;
}

// A drift may be taken for gaps by chance: 4 of 3,983 who fit were, in 1,240 draws. So 0.2 of these
// 200 are, and more than two once in a thousand seeds.
TEST(RandomTurns, ComeWithinAHundredMsAndToThoseWhoDoNotFit) {
  QGPU_TRACE_SEED();
  size_t fitting = 0, taken = 0;
  uint64_t longest_ns = 0;
  for (uint64_t i = 0; i < 60; i++) {
    const Outcome out = runTurns(fakes::seed() + i);
    EXPECT_LE(out.longest_wait_ns, 100 * kMilli) << "draw " << i;
    longest_ns = std::max(longest_ns, out.longest_wait_ns);
    fitting += out.fitting;
    taken += out.taken;
  }
  std::printf("longest wait %.1f ms; %zu of %zu who fit were taken for misfits\n",
              static_cast<double>(longest_ns) / 1e6, taken, fitting);
  EXPECT_LE(taken, 2u);
}

// A tail is on for longer than one image: the rotation goes on where it was cut nevertheless.
TEST(Turns, ATailOnTheClockCostsNobodyItsSlice) {
  QGPU_TRACE_SEED();
  World world({.seed = fakes::seed()});
  auto &small = world.addTenant({.weight = 300}), &large = world.addTenant({.weight = 1400});
  auto &fixed = world.addTenant(fixedAt(160'000));
  small.saturate({.duration_ns = 2 * kMilli}, 2);
  large.saturate({.duration_ns = 5 * kMilli}, 2);
  fixed.saturate({.duration_ns = 27 * kMilli, .preemption = CHIP_WFI}, 2);
  world.start();
  const Verdict verdict = watch(world, 5 * kSecond, 25 * kSecond);
  const auto ran = [&](const WorldTenant &tenant) {
    return static_cast<double>(verdict.runNs(tenant.index));
  };
  EXPECT_NEAR(100 * ran(large) / (ran(large) + ran(small)), 100 * 14.0 / 17, 0.35);
}

}  // namespace promises_turns_test
}  // namespace qgpu::scenario
