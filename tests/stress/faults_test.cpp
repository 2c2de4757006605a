// SPDX-License-Identifier: GPL-2.0
//
// faults_test.cpp - tenants, work, settings and lists that change at random while the chip does not
// answer, answers wrongly or is gone for a while. Whatever happens: every loop ends at its
// deadline, errors are reported, no limit fails open, and when the faults are over everybody runs
// with what was promised.
#include <gtest/gtest.h>

#include <set>

#include "fakes/seed.hpp"
#include "scenario/verdict.hpp"
#include "stress/faulty_bus.hpp"

namespace qgpu::stress {
namespace faults_test {

using namespace scenario;

// A submit waits 100 ms before and 100 ms after; preempts and edges are within microseconds.
constexpr uint64_t kTurnNs = 250 * kMilli;

class Storm {
 public:
  explicit Storm(uint64_t seed)
      : random_(seed), world_({.seed = random_()}), bus_(world_, random_()) {
    // Held to a fifth of wall time whatever happens, and somebody who would take all.
    world_.addTenant(fixedAt(200'000)).saturate({.duration_ns = kMilli}, 2);
    world_.addTenant({.weight = 900}).saturate({.duration_ns = 5 * kMilli}, 2);
    for (int i = 0; i < 3; i++)
      giveWork(world_.addTenant({.weight = 1 + static_cast<uint32_t>(pick(500))}));
    last_.resize(world_.tenantCount());
    world_.start();
    run(kSecond);
  }

  void step() {
    if (bus_.fault() == kNone && pick(4) == 0) {
      bus_.begin(static_cast<Fault>(1 + pick(kFaults - 1)));
      faulty_until_ns_ = world_.nowNs() + pick(200 * kMilli);
    }
    switch (pick(8)) {
      case 0:
        world_.changeList();
        expectKnown(world_.lastError());
        break;
      case 1:
        giveWork(world_.tenant(2 + pick(world_.tenantCount() - 2)));
        break;
      case 2:
        world_.tenant(2 + pick(world_.tenantCount() - 2)).channel().stop();
        break;
      case 3:
        changeSettings(world_.tenant(2 + pick(world_.tenantCount() - 2)));
        break;
      case 4:
        if (world_.tenantCount() < 8 && bus_.fault() == kNone) {
          giveWork(world_.addTenant());
          last_.resize(world_.tenantCount());
        }
        break;
      case 5:
        world_.apply();
        expectKnown(world_.lastError());
        break;
      default:
        break;
    }
    run(1 + pick(30 * kMilli));
    checkCounters();
  }

  // The faults end; all want the card.
  void settle() {
    bus_.end();
    for (size_t i = 2; i < world_.tenantCount(); i++) {
      core_settings settings;
      core_settings_default(&settings);
      turn_tenant_set(world_.scheduler(), &world_.tenant(i).core, &settings);
      world_.tenant(i).saturate({.duration_ns = kMilli}, 2);
    }
    world_.apply();
    run(100 * kMilli);
    // Who overran with work that cannot be cut waits until that is made up for: a second at most,
    // at a share of 7 % or more.
    const uint64_t from = world_.nowNs();
    run(20 * kSecond);
    for (size_t i = 0; i < world_.tenantCount(); i++)
      EXPECT_GT(world_.record().run(i, from, world_.nowNs()), 0u)
          << "tenant " << i << " is stopped";
    EXPECT_EQ(world_.lastError(), 0);
    const uint64_t begin = world_.nowNs();
    run(4 * kSecond);
    const Verdict verdict(world_, begin, world_.nowNs());
    EXPECT_NEAR(verdict.wallPercent(0), 20, 0.3);
    EXPECT_LE(verdict.mostWallExcessPp(0, 0.2, {kSecond}), 0.5);
    double weights = 0;
    for (size_t i = 1; i < world_.tenantCount(); i++) weights += weightOf(i);
    for (size_t i = 1; i < world_.tenantCount(); i++)
      EXPECT_NEAR(verdict.percent(i) / (100 - verdict.percent(0)), weightOf(i) / weights, 0.02)
          << i;
    EXPECT_TRUE(world_.card().protocolErrors().empty()) << world_.card().protocolErrors().front();
  }

  // What was promised to no more than a fifth had no more, but for the time in which the chip did
  // not take a list.
  void checkLimit() {
    const double wall = static_cast<double>(world_.nowNs() - world_.startNs());
    const double ran = static_cast<double>(world_.chipRunNs(world_.tenant(0)));
    EXPECT_LE(ran, 0.2 * wall + static_cast<double>(faulty_ns_) + 10e6);
  }
  uint64_t faultyNs() const { return faulty_ns_; }

 private:
  uint64_t pick(uint64_t n) { return random_() % n; }
  double weightOf(size_t i) { return static_cast<double>(world_.tenant(i).core.asked.weight); }

  // As the module's worker does, one turn at a time.
  void run(uint64_t ns) {
    const uint64_t end = world_.nowNs() + ns;
    while (world_.nowNs() < end) {
      const uint64_t before = world_.nowNs(), accesses = bus_.accesses();
      const bool faulty = bus_.fault() != kNone;
      world_.runTo(std::min(end, before + kMilli));
      EXPECT_LE(world_.nowNs() - before, kTurnNs) << "fault " << bus_.fault();
      EXPECT_LE(bus_.accesses() - accesses, 200'000u);
      expectKnown(world_.lastError());
      if (!faulty) continue;
      faulty_ns_ += world_.nowNs() - before;
      if (world_.nowNs() >= faulty_until_ns_) bus_.end();
    }
  }
  void expectKnown(int error) {
    EXPECT_TRUE(error == 0 || error == -EBUSY || error == -ETIMEDOUT || error == -ENODEV ||
                error == -EIO)
        << error;
  }
  void giveWork(WorldTenant &tenant) {
    fakes::Kernel kernel{.duration_ns = 20 * kMicro + pick(6 * kMilli)};
    if (pick(4) == 0) kernel = {.duration_ns = 1 + pick(60 * kMilli), .preemption = CHIP_WFI};
    if (pick(3) == 0)
      tenant.channel().syncLaunch(kernel, 10 * kMicro + pick(kMilli));
    else
      tenant.channel().saturate(kernel, 2);
  }
  void changeSettings(WorldTenant &tenant) {
    core_settings s = tenant.core.asked;
    s.weight = 1 + static_cast<u32>(pick(1000));
    s.class_ = std::array{CORE_NORMAL, CORE_NORMAL, CORE_ONLINE, CORE_OFFLINE}[pick(4)];
    s.ceiling_ppm = pick(3) ? u32{CORE_PPM} : static_cast<u32>(100'000 + pick(800'000));
    turn_tenant_set(world_.scheduler(), &tenant.core, &s);
  }
  void checkCounters() {
    if (bus_.fault() != kNone) return;
    for (size_t i = 0; i < last_.size(); i++) {
      const core_counters now = world_.counters(world_.tenant(i));
      EXPECT_GE(now.run_ns, last_[i].run_ns);
      EXPECT_GE(now.wait_ns, last_[i].wait_ns);
      EXPECT_GE(now.throttled_ns, last_[i].throttled_ns);
      last_[i] = now;
    }
  }

  std::mt19937_64 random_;
  World world_;
  FaultyBus bus_;
  std::vector<core_counters> last_;
  uint64_t faulty_until_ns_ = 0, faulty_ns_ = 0;
};

class RandomFaults : public ::testing::TestWithParam<int> {};

TEST_P(RandomFaults, LeaveNobodyStoppedAndNothingOpen) {
  QGPU_TRACE_SEED();
  Storm storm(fakes::seed() + static_cast<uint64_t>(GetParam()));
  for (int i = 0; i < 300 && !::testing::Test::HasFailure(); i++) storm.step();
  storm.checkLimit();
  storm.settle();
  EXPECT_GT(storm.faultyNs(), 500 * kMilli);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomFaults, ::testing::Range(0, 10));

// One fault at a time, long: what is reported, and that it ends.
struct Row {
  Fault fault;
  std::vector<int> errors;
};
class OneFault : public ::testing::TestWithParam<Row> {};

TEST_P(OneFault, IsReportedAndForgotten) {
  const Row &row = GetParam();
  World world;
  auto &a = world.addTenant({.weight = 300}), &b = world.addTenant({.weight = 100});
  a.saturate({.duration_ns = kMilli}, 2);
  b.saturate({.duration_ns = kMilli}, 2);
  FaultyBus bus(world, 7);
  world.start();
  world.runFor(kSecond);
  bus.begin(row.fault);
  std::set<int> errors;
  const uint64_t end = world.nowNs() + 2 * kSecond;
  while (world.nowNs() < end) {
    const uint64_t before = world.nowNs();
    world.changeList();
    errors.insert(world.lastError());
    EXPECT_LE(world.nowNs() - before, kTurnNs);
    world.runFor(20 * kMilli);
    errors.insert(world.lastError());
  }
  for (const int error : row.errors) EXPECT_TRUE(errors.contains(error)) << error;
  for (const int error : errors)
    EXPECT_TRUE(error == 0 || std::count(row.errors.begin(), row.errors.end(), error)) << error;
  bus.end();
  world.changeList();
  EXPECT_EQ(world.lastError(), 0);
  const uint64_t from = world.nowNs() + 3 * kSecond;
  world.runTo(from + 4 * kSecond);
  const Verdict verdict(world, from, world.nowNs());
  EXPECT_LE(verdict.worstPp(a.index, 0.75, about(kSecond)), 1);
}

// A submit that was not acknowledged may have been taken. What comes between - here the card is
// gone for a moment - changes nothing about that: neither buffer may be written before the chip
// says so.
TEST(Unacknowledged, ListsStayUntouchedWhateverFailsNext) {
  for (const Fault next : {kSubmitPending, kPriErrors, kLost}) {
    World world;
    world.addTenant({.weight = 300}).saturate({.duration_ns = kMilli}, 2);
    world.addTenant({.weight = 100}).saturate({.duration_ns = kMilli}, 2);
    FaultyBus bus(world, 7);
    world.start();
    world.runFor(kSecond);
    bus.begin(kSubmitPending);
    world.changeList();
    EXPECT_EQ(world.lastError(), -ETIMEDOUT);
    bus.begin(next);
    for (int i = 0; i < 10; i++) world.changeList();
    bus.end();
    for (int i = 0; i < 3; i++) world.changeList();
    EXPECT_EQ(world.lastError(), 0);
    EXPECT_TRUE(world.card().protocolErrors().empty())
        << "fault " << next << ": " << world.card().protocolErrors().front();
  }
}

const char *nameOf(Fault fault) {
  static constexpr const char *kNames[] = {"None",      "SubmitPending", "PreemptIgnored",
                                           "PriErrors", "AllOnes",       "Lost"};
  return kNames[fault];
}

INSTANTIATE_TEST_SUITE_P(Each, OneFault,
                         ::testing::Values(Row{kSubmitPending, {-ETIMEDOUT, -EBUSY}},
                                           Row{kPreemptIgnored, {}}, Row{kPriErrors, {-EIO}},
                                           Row{kAllOnes, {-EIO}}, Row{kLost, {-ENODEV}}),
                         [](const auto &info) { return nameOf(info.param.fault); });

}  // namespace faults_test
}  // namespace qgpu::stress
