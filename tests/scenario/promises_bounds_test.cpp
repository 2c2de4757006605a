// SPDX-License-Identifier: GPL-2.0
//
// promises_bounds_test.cpp - forty random mixes of tenants whose work can be cut: none waits longer
// than `qgpud --check` and `qgpuctl explain` promise, by the chip's own record, and the ledger's
// longest wait is that of the record to a look's distance.
#include <deque>
#include <memory>
#include <promise.hpp>  // the daemon's

#include "scenario/promise.hpp"

namespace qgpu::scenario {
namespace promises_bounds_test {

constexpr uint64_t kRunNs = 12 * kSecond;
// Two looks are this far apart at most.
constexpr uint64_t kLookNs = kMilli;

// What one of a mix asks and does.
struct Party {
  enum Kind { kQueued, kSync, kWaking } kind = kQueued;
  TenantSettings asked;
  uint64_t kernel_ns = kMilli, gap_ns = 0, on_ns = 0;
};

struct Draw {
  uint32_t policy = QGPU_POLICY_BURST_SHARE;
  std::vector<Party> parties;
  uint64_t cycle_ns = 0;
};

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}
  double part() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  bool chance(double p) { return part() < p; }
  uint64_t below(uint64_t n) { return random_() % n; }
  // Log-uniform.
  uint64_t between(double low, double high) {
    return static_cast<uint64_t>(low * std::exp(part() * std::log(high / low)));
  }

 private:
  std::mt19937_64 random_;
};

Party queued(Dice &dice) { return {.kernel_ns = dice.between(50e3, 20e6)}; }

Party syncing(Dice &dice) {
  return {.kind = Party::kSync,
          .kernel_ns = dice.between(300e3, 5e6),
          .gap_ns = dice.between(8e3, 50e3)};
}

Party waking(Dice &dice) {
  return {.kind = Party::kWaking,
          .kernel_ns = dice.between(100e3, 5e6),
          .gap_ns = dice.between(5e6, 400e6),
          .on_ns = dice.between(1e6, 300e6)};
}

// Well within its share, whoever the others are.
Party serving(Dice &dice) {
  Party party = {.kind = Party::kWaking, .kernel_ns = dice.between(50e3, 500e3)};
  party.on_ns = dice.between(500e3, 2e6);
  party.gap_ns = 150 * party.on_ns;
  party.asked.weight = 3000;
  party.asked.work_class = QGPU_CLASS_ONLINE;
  party.asked.wake_ns = dice.chance(0.5) ? 0 : 2 * kMilli;
  return party;
}

// A percentage that nobody has yet; 0 = there is none left.
uint32_t guarantee(Dice &dice, uint32_t &given_percent) {
  const auto percent = static_cast<uint32_t>(2 + dice.below(24));
  if (given_percent + percent > 60) return 0;
  given_percent += percent;
  return percent * 10'000;
}

// Windows on the clock for all, one of whom is launch-and-sync or wakes.
Draw drawClocked(Dice &dice, uint32_t policy) {
  Draw draw = {policy, std::vector<Party>(2 + dice.below(8))};
  uint32_t given_percent = 0;
  for (Party &party : draw.parties) {
    party = queued(dice);
    party.asked.weight = static_cast<uint32_t>(dice.between(100, 3000));
    if (policy == QGPU_POLICY_FIXED_SHARE)
      party.asked.guarantee_ppm = guarantee(dice, given_percent);
    else
      party.asked.weight = 100;
  }
  Party &other = draw.parties.front();
  const TenantSettings asked = other.asked;
  other = dice.chance(0.5) ? waking(dice) : syncing(dice);
  other.asked = asked;
  return draw;
}

// By weight, guarantee and ceiling; one may wake, some have windows on the clock, some are online.
Draw drawShared(Dice &dice) {
  Draw draw = {QGPU_POLICY_BURST_SHARE, std::vector<Party>(2 + dice.below(8))};
  uint32_t given_percent = 0;
  for (Party &party : draw.parties) {
    const bool fixed = dice.chance(0.15);
    party = fixed && dice.chance(0.5) ? syncing(dice) : queued(dice);
    party.asked.weight = static_cast<uint32_t>(dice.between(100, 3000));
    if (fixed || dice.chance(0.25)) party.asked.guarantee_ppm = guarantee(dice, given_percent);
    if (fixed && party.asked.guarantee_ppm)
      party.asked.ceiling_ppm = party.asked.guarantee_ppm;
    else if (dice.chance(0.15))
      party.asked.ceiling_ppm = std::max<uint32_t>(
          party.asked.guarantee_ppm + 10'000, static_cast<uint32_t>(10 + dice.below(80)) * 10'000);
    if (party.asked.ceiling_ppm != party.asked.guarantee_ppm && party.kind == Party::kSync)
      party.kind = Party::kQueued;
  }
  Party &other = draw.parties.front();
  if (other.asked.ceiling_ppm == other.asked.guarantee_ppm) return draw;
  const TenantSettings asked = other.asked;
  const double kind = dice.part();
  if (kind < 0.2) {
    other = serving(dice);
  } else if (kind < 0.7) {
    other = waking(dice);
    other.asked = asked;
  }
  return draw;
}

Draw drawBounds(uint64_t seed) {
  Dice dice(seed);
  const double policy = dice.part();
  if (policy < 0.1) return drawClocked(dice, QGPU_POLICY_EQUAL_SHARE);
  if (policy > 0.9) return drawClocked(dice, QGPU_POLICY_FIXED_SHARE);
  return drawShared(dice);
}

std::string textOf(const Party &party) {
  char text[160];
  std::snprintf(
      text, sizeof(text), "%c w%u g%.0f%% c%.0f%% %s wake%.2fms k%.2fms gap%.2fms on%.0fms",
      "qsw"[party.kind], party.asked.weight, party.asked.guarantee_ppm / 1e4,
      party.asked.ceiling_ppm / 1e4, party.asked.work_class == QGPU_CLASS_ONLINE ? "online" : "",
      static_cast<double>(party.asked.wake_ns) / 1e6, static_cast<double>(party.kernel_ns) / 1e6,
      static_cast<double>(party.gap_ns) / 1e6, static_cast<double>(party.on_ns) / 1e6);
  return text;
}

std::string nameOf(size_t i) { return std::string(1, static_cast<char>('a' + i)); }

DesiredCard cardOf(const Draw &draw) {
  DesiredCard card;
  card.policy = draw.policy;
  card.cycle_ns = draw.cycle_ns;
  for (size_t i = 0; i < draw.parties.size(); i++)
    card.tenants.push_back({nameOf(i), draw.parties[i].asked});
  card.tenants.push_back({"default", {}});
  return card;
}

// A wait that the card can just keep, or up to three times as long; none where none can be kept.
void promise(Dice &dice, Draw &draw, size_t i) {
  const uint64_t bound_ns = wakeBoundsOf(cardOf(draw), kSwitchNs)[i].ns;
  if (bound_ns > kSecond) return;
  draw.parties[i].asked.wake_ns =
      dice.chance(0.3)
          ? bound_ns
          : dice.between(static_cast<double>(bound_ns), 3.0 * static_cast<double>(bound_ns)) + 1;
}

// Waits are promised to some; the others queue, sync, wake, have windows on the clock or ceilings.
Draw drawPromised(Dice &dice) {
  Draw draw = {QGPU_POLICY_BURST_SHARE, std::vector<Party>(2 + dice.below(8))};
  if (dice.chance(0.25)) draw.cycle_ns = dice.between(1e6, 60e6);
  uint32_t given_percent = 0;
  const bool online = dice.chance(0.2), turns = dice.chance(0.6);
  for (Party &party : draw.parties) {
    const double kind = dice.part();
    if (turns && kind < 0.3)
      party = syncing(dice);
    else
      party = kind < 0.6 ? queued(dice) : waking(dice);
    party.asked.weight = static_cast<uint32_t>(dice.between(100, 3000));
    if (dice.chance(0.2)) party.asked.work_class = QGPU_CLASS_OFFLINE;
    if (dice.chance(0.3))
      party.asked.guarantee_ppm = std::min(guarantee(dice, given_percent), 150'000u);
    const double limit = dice.part();
    if (limit < 0.15 && party.asked.guarantee_ppm) {
      const TenantSettings asked = party.asked;
      if (dice.chance(0.3)) party = syncing(dice);
      party.asked = asked;
      party.asked.ceiling_ppm = asked.guarantee_ppm;
    } else if (limit < 0.3)
      party.asked.ceiling_ppm = std::max<uint32_t>(party.asked.guarantee_ppm + 10'000, 50'000);
  }
  if (online) {
    draw.parties.back() = serving(dice);
    draw.parties.back().asked.wake_ns = 0;
  }
  for (size_t i = 0; i < draw.parties.size(); i++)
    if (i == 0 || dice.chance(0.3)) promise(dice, draw, i);
  return draw;
}

WorldTenant &add(World &world, const Party &party) {
  const TenantSettings &asked = party.asked;
  return world.addTenant({.weight = asked.weight,
                          .guarantee_ppm = asked.guarantee_ppm,
                          .ceiling_ppm = asked.ceiling_ppm,
                          .class_ = static_cast<core_class>(asked.work_class),
                          .wake_ns = asked.wake_ns});
}

void begin(Work &work, const Party &party, uint64_t seed) {
  const fakes::Kernel kernel = {.duration_ns = party.kernel_ns};
  switch (party.kind) {
    case Party::kQueued:
      return work.queued(kernel, 2);
    case Party::kSync:
      return work.sync(kernel, party.gap_ns);
    case Party::kWaking:
      return work.bursts(kernel, party.on_ns, party.gap_ns, seed);
  }
}

bool isFixed(const Party &party) { return party.asked.ceiling_ppm == party.asked.guarantee_ppm; }
bool isCapped(const Party &party) { return party.asked.ceiling_ppm < CORE_PPM && !isFixed(party); }
bool isOnline(const Party &party) { return party.asked.work_class == QGPU_CLASS_ONLINE; }

// Its own windows on the clock are all that it depends on.
bool isClocked(const Draw &draw, const Party &party) {
  return draw.policy != QGPU_POLICY_BURST_SHARE || isFixed(party);
}

class RandomBounds : public ::testing::TestWithParam<int> {
 protected:
  void run(const Draw &draw, uint64_t seed) {
    seed_ = seed;
    draw_ = draw;
    world_ = std::make_unique<World>(WorldOptions{.policy = static_cast<core_policy>(draw_.policy),
                                                  .cycle_ns = draw_.cycle_ns,
                                                  .seed = seed_});
    for (const Party &party : draw_.parties) works_.emplace_back(*world_, add(*world_, party));
    for (size_t i = 0; i < works_.size(); i++) begin(works_[i], draw_.parties[i], seed_ + i);
    world_->start();
    verdict_ = std::make_unique<Verdict>(watch(*world_, 0, kRunNs));
  }

  static uint64_t seed() { return fakes::seed() + static_cast<uint64_t>(GetParam()); }

  // What is promised to the rotation is kept while that is all there is: not beside online tenants
  // at work, windows by lag, and windows on the clock that held gaps make longer.
  bool rotationIsAlone() {
    for (size_t i = 0; i < works_.size(); i++) {
      const Party &party = draw_.parties[i];
      if (isOnline(party) || (isFixed(party) && party.kind == Party::kSync)) return false;
    }
    return !somebodyHasTurns();
  }
  // Windows by lag: who does not fit the rotation, and its members among them.
  bool somebodyHasTurns() {
    for (size_t i = 0; i < works_.size(); i++)
      if (!isClocked(draw_, draw_.parties[i]) && world_->tenant(i).core.windows) return true;
    return false;
  }
  // Gaps of a launch-and-sync owner's windows are held for as long as it runs at most.
  uint64_t heldNs() {
    uint64_t ns = 0;
    for (size_t i = 0; i < works_.size(); i++)
      if (draw_.parties[i].kind == Party::kSync) ns += world_->tenant(i).core.budget_ns;
    return ns;
  }
  uint64_t waitedNs(size_t i) { return verdict_->longestWaitNs(i, works_[i].spans()); }
  uint64_t toldNs(size_t i) { return world_->counters(world_->tenant(i)).wait_max_ns; }
  // No look misses its visits.
  bool isAlwaysSeen(size_t i) {
    const core_tenant &tenant = world_->tenant(i).core;
    return draw_.parties[i].kind == Party::kQueued && rotationIsAlone() &&
           (tenant.place == CORE_CLOCKED ? tenant.budget_ns : tenant.cycle_slice_ns) >= 2 * kMilli;
  }

  uint64_t seed_ = 0;
  Draw draw_;
  std::unique_ptr<World> world_;
  std::deque<Work> works_;
  std::unique_ptr<Verdict> verdict_;
};

TEST_P(RandomBounds, HoldForEveryWait) {
  QGPU_TRACE_SEED();
  run(drawBounds(seed()), seed());
  const ComputedPromises promises = promisesOf(cardOf(draw_), kSwitchNs);
  const bool rotation_is_alone = rotationIsAlone();
  for (size_t i = 0; i < works_.size(); i++) {
    const Party &party = draw_.parties[i];
    if (!isClocked(draw_, party) && !isOnline(party) && !rotation_is_alone) continue;
    SCOPED_TRACE("policy " + std::to_string(draw_.policy) + ", tenant " + nameOf(i) + ": " +
                 textOf(party));
    ASSERT_NE(promises.worst.tenants[i].wait_ns, 0u);
    const uint64_t promised_ns = promises.worst.tenants[i].wait_ns + heldNs();
    // A ceiling's pause is no wait, and the chip's record does not know which is one.
    if (!isCapped(party)) {
      EXPECT_LE(waitedNs(i), promised_ns);
    } else if (isAlwaysSeen(i)) {
      EXPECT_LE(toldNs(i), promised_ns + kLookNs);
    }
  }
}

TEST_P(RandomBounds, AreComparedWithWhatTheChipRecords) {
  QGPU_TRACE_SEED();
  run(drawBounds(seed()), seed());
  for (size_t i = 0; i < works_.size(); i++) {
    if (isCapped(draw_.parties[i]) || !isAlwaysSeen(i)) continue;
    SCOPED_TRACE("policy " + std::to_string(draw_.policy) + ", tenant " + nameOf(i) + ": " +
                 textOf(draw_.parties[i]));
    EXPECT_GE(toldNs(i) + 3 * kLookNs / 2, waitedNs(i));
    // The rest of a slice that was cut may be missed: two waits are one then.
    EXPECT_LE(toldNs(i), 2 * waitedNs(i) + 3 * kLookNs / 2);
  }
}

class RandomWakes : public RandomBounds {};

TEST_P(RandomWakes, AreKept) {
  QGPU_TRACE_SEED();
  Dice dice(seed());
  run(drawPromised(dice), seed());
  const ComputedPromises promises = promisesOf(cardOf(draw_), kSwitchNs);
  const auto bounds = wakeBoundsOf(cardOf(draw_), kSwitchNs);
  for (size_t i = 0; i < works_.size(); i++) {
    const Party &party = draw_.parties[i];
    const uint64_t wake_ns = party.asked.wake_ns;
    if (!wake_ns) continue;
    SCOPED_TRACE("tenant " + nameOf(i) + ": " + textOf(party));
    EXPECT_GE(wake_ns, bounds[i].ns);
    EXPECT_LE(promises.worst.tenants[i].wait_ns, wake_ns);
    // A ceiling's pause is no wait.
    if (!isCapped(party)) {
      EXPECT_LE(waitedNs(i), wake_ns);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Promises, RandomWakes, ::testing::Range(0, 40));
INSTANTIATE_TEST_SUITE_P(Promises, RandomBounds, ::testing::Range(0, 40));

}  // namespace promises_bounds_test
}  // namespace qgpu::scenario
