// SPDX-License-Identifier: GPL-2.0
//
// gates_storm_test.cpp - windows by gates on a chip where everything goes wrong that can: stages
// that do not end, rings that come late, registers that refuse, a card off the bus, a driver that
// submits, frees and recovers meanwhile. Nothing is ever submitted; who is freed is let go first;
// no limit fails open for longer than the chip did not obey; afterwards everybody runs with what
// was promised.
#include "fakes/seed.hpp"
#include "stress/beside.hpp"

namespace qgpu::stress {
namespace gates_storm_test {

constexpr uint64_t kTurnNs = 250 * kMilli;

class GatesStorm {
 public:
  explicit GatesStorm(uint64_t seed) : random_(seed), beside_(options()) {
    // Held to a fifth of wall time whatever happens, one who would take all, and two more.
    tenants_ = {beside_.addTenant(scenario::fixedAt(200'000)), beside_.addTenant({.weight = 900}),
                beside_.addTenant({.weight = 300}), beside_.addTenant({.weight = 100})};
    for (const int tenant : tenants_) begin(tenant);
    beside_.start();
    run(kSecond);
    begun_ns_ = beside_.nowNs();
    limited_ns_ = beside_.ranNs(tenants_[0]);
  }

  void step() {
    switch (pick(8)) {
      case 0:
      case 1:
        if (troubled_) break;
        troubled_ = true;
        trouble_until_ns_ = beside_.nowNs() + pick(100 * kMilli);
        beginTrouble();
        break;
      case 2:
        if (!troubled_) beside_.driver().submit();
        break;
      case 3:
        if (!troubled_) restart();
        break;
      default:
        break;
    }
    run(1 + pick(30 * kMilli));
  }

  void expectAsPromised() {
    endTrouble();
    for (const int tenant : tenants_)
      for (const auto &object : beside_.driver().objects())
        if (object->sim && object->owner == tenant) object->sim->channel().ring();
    // Who ran while it could not be stopped makes up for that.
    run(15 * kSecond);
    const uint64_t from = beside_.nowNs();
    std::vector<double> ran;
    for (const int tenant : tenants_) ran.push_back(-static_cast<double>(beside_.ranNs(tenant)));
    run(10 * kSecond);
    EXPECT_EQ(beside_.lastError(), 0);
    double shared = 0;
    for (size_t i = 0; i < ran.size(); i++) {
      ran[i] += static_cast<double>(beside_.ranNs(tenants_[i]));
      if (i) shared += ran[i];
    }
    EXPECT_NEAR(ran[0] / static_cast<double>(beside_.nowNs() - from), 0.2, 0.005);
    EXPECT_NEAR(ran[1] / shared, 900. / 1300, 0.01);
    EXPECT_NEAR(ran[2] / shared, 300. / 1300, 0.01);
    EXPECT_NEAR(ran[3] / shared, 100. / 1300, 0.01);
    EXPECT_LE(beside_.longestTurnNs(), kTurnNs);
  }
  void expectLimitKept() {
    const double wall = static_cast<double>(beside_.nowNs() - begun_ns_);
    EXPECT_LE(static_cast<double>(beside_.ranNs(tenants_[0]) - limited_ns_),
              0.2 * wall + static_cast<double>(troubled_ns_) + 20e6);
    EXPECT_GT(troubled_ns_, 500 * kMilli);
  }
  void expectAllEnabledAfterUnloading() {
    beside_.stop();
    for (const auto &object : beside_.driver().objects())
      for (size_t i = 0; object->sim && i < object->sim->channelCount(); i++)
        EXPECT_TRUE(beside_.card().channelStatus(object->sim->channel(i)) & CHIP_CH_ENABLE);
  }

 private:
  uint64_t pick(uint64_t n) { return random_() % n; }
  BesideOptions options() {
    BesideOptions options{.seed = random_(), .method = TURN_GATES};
    auto *switches = reinterpret_cast<bool *>(&options.sim.config.sw);
    for (size_t i = 0; i < sizeof(chip_switches); i++) switches[i] = random_() % 4 == 0;
    return options;
  }
  void begin(int tenant) {
    fakes::SimTsg &tsg =
        *beside_.driver()
             .create(tenant, Driver::kHooked,
                     {.channels = static_cast<unsigned>(1 + pick(3)), .ring_log2 = 6})
             .sim;
    const uint64_t kernel_ns = tenant == tenants_[0] ? kMilli : 200 * kMicro + pick(5 * kMilli);
    for (size_t i = 0; i < tsg.channelCount(); i++)
      tsg.channel(i).saturate({.duration_ns = kernel_ns}, 2);
  }
  // A program ends and another one of the same tenant's begins, with its ids.
  void restart() {
    const int tenant = tenants_[1 + pick(3)];
    for (const auto &object : beside_.driver().objects())
      if (object->sim && object->owner == tenant) {
        beside_.driver().destroy(*object, pick(2) ? Driver::kHooked : Driver::kUnseen);
        break;
      }
    begin(tenant);
  }
  void beginTrouble() {
    auto &card = beside_.card();
    switch (pick(8)) {
      case 0:
        return fakes::setTrouble(card, {.preempt_stuck = 1});
      case 1:
        return fakes::setTrouble(card, {.pbdma_stuck = 1});
      case 2:
        return fakes::setTrouble(card, {.save_stuck = 1});
      case 3:
        return fakes::setTrouble(card, {.load_stuck = 1});
      case 4:
        return fakes::setTrouble(card,
                                 {.doorbell_late_ns = static_cast<uint32_t>(1 + pick(5 * kMilli))});
      case 5:
        return fakes::setTrouble(card,
                                 {.refused = {{CHIP_PCCSR, 8 * CHIP_CHANNELS, pick(2) == 0}}});
      case 6:
        return fakes::setTrouble(card, {.refused = {{0x2000, 0x2000, pick(2) == 0}}});
      default:
        return fakes::setPresence(card, CHIP_OFF_BUS);
    }
  }
  void endTrouble() {
    fakes::setTrouble(beside_.card());
    fakes::setPresence(beside_.card(), CHIP_PRESENT);
    // Rings that a card off the bus did not hear are repeated by whoever misses an answer.
    for (const auto &object : beside_.driver().objects())
      for (size_t i = 0; object->sim && i < object->sim->channelCount(); i++)
        object->sim->channel(i).ring();
    troubled_ = false;
  }
  void run(uint64_t ns) {
    for (const uint64_t end = beside_.nowNs() + ns; beside_.nowNs() < end;) {
      const uint64_t before = beside_.nowNs();
      beside_.runTo(std::min(end, before + kMilli));
      if (!troubled_) continue;
      troubled_ns_ += beside_.nowNs() - before;
      if (beside_.nowNs() >= trouble_until_ns_) endTrouble();
    }
  }

  std::mt19937_64 random_;
  Beside beside_;
  std::vector<int> tenants_{-2};
  bool troubled_ = false;
  uint64_t trouble_until_ns_ = 0, troubled_ns_ = 0, begun_ns_ = 0, limited_ns_ = 0;
};

class RandomGatesStorm : public ::testing::TestWithParam<int> {};

TEST_P(RandomGatesStorm, LeavesNobodyStoppedAndNothingOpen) {
  QGPU_TRACE_SEED();
  GatesStorm storm(fakes::seed() + static_cast<uint64_t>(GetParam()));
  for (int i = 0; i < 300 && !::testing::Test::HasFailure(); i++) storm.step();
  storm.expectLimitKept();
  storm.expectAsPromised();
  storm.expectAllEnabledAfterUnloading();
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomGatesStorm, ::testing::Range(0, 8));

}  // namespace gates_storm_test
}  // namespace qgpu::stress
