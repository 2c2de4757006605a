// SPDX-License-Identifier: GPL-2.0
//
// troubles_test.cpp - one trouble of the chip at a time, for two seconds, under a scheduler whose
// driver goes on changing its list: what is reported, that every turn ends at its deadline, and
// that all is as promised when it is over.
#include <gtest/gtest.h>

#include <set>

#include "scenario/verdict.hpp"
#include "unit/chip_driver.hpp"

namespace qgpu::stress {
namespace troubles_test {

using namespace scenario;
using fakes::Trouble;

// A submit waits 100 ms before and 100 ms after; preempts and edges are within microseconds.
constexpr uint64_t kTurnNs = 250 * kMilli;

struct Row {
  const char *name;
  Trouble trouble;
  std::set<int> errors;  // all of them are seen, and no others
};

void PrintTo(const Row &row, std::ostream *out) { *out << row.name; }

class Troubled : public ::testing::Test {
 protected:
  // Two that share by weight, one with a limit, and a TSG of the kernel's that is nobody's.
  explicit Troubled(const WorldOptions &options = {})
      : world_(options),
        a_(world_.addTenant({.weight = 300})),
        b_(world_.addTenant({.weight = 100})),
        fixed_(world_.addTenant(fixedAt(200'000))) {
    a_.saturate({.duration_ns = kMilli}, 2);
    b_.saturate({.duration_ns = kMilli}, 2);
    fixed_.saturate({.duration_ns = 2 * kMilli}, 2);
    addNobody();
    world_.start();
    world_.runFor(kSecond);
  }

  void addNobody() {
    world_.addNobodysTsg(nobody_);
    nobody_.sim->channel().syncLaunch({.duration_ns = 20 * kMicro}, 50 * kMilli);
  }
  void note(int error) {
    if (error) errors_.insert(error);
  }
  void live(uint64_t ns) {
    const uint64_t end = world_.nowNs() + ns;
    while (world_.nowNs() < end) {
      uint64_t before = world_.nowNs();
      world_.changeList();
      note(world_.lastError());
      EXPECT_LE(world_.nowNs() - before, kTurnNs);
      before = world_.nowNs();
      world_.runFor(20 * kMilli);
      EXPECT_LE(world_.nowNs() - before, kTurnNs);
      note(world_.lastError());
    }
  }
  // Whose work went on while nobody else's could be put in its place makes up for that: of a fifth
  // that takes five times as long.
  void settle() {
    fakes::setTrouble(world_.card());
    world_.changeList();
    world_.runFor(12 * kSecond);
  }
  void expectAsPromised() {
    const uint64_t from = world_.nowNs(), served = nobody_.sim->channel().completed();
    world_.runFor(4 * kSecond);
    EXPECT_EQ(world_.lastError(), 0);
    const Verdict verdict(world_, from, world_.nowNs());
    EXPECT_NEAR(verdict.wallPercent(fixed_.index), 20, 0.5);
    const double rest = verdict.percent(a_.index) + verdict.percent(b_.index);
    EXPECT_NEAR(verdict.percent(a_.index) / rest, 0.75, 0.01);
    EXPECT_GT(nobody_.sim->channel().completed() - served, 40u) << "the unknown channel starves";
  }

  World world_;
  WorldTenant &a_, &b_, &fixed_;
  WorldTsg nobody_;
  std::set<int> errors_;
};

class OneTrouble : public Troubled, public ::testing::WithParamInterface<Row> {};

TEST_P(OneTrouble, IsReportedBoundedAndForgotten) {
  const Row &row = GetParam();
  fakes::setTrouble(world_.card(), row.trouble);
  const uint64_t from = world_.nowNs(), ran = world_.chipRunNs(fixed_);
  live(2 * kSecond);
  EXPECT_EQ(errors_, row.errors);
  const double wall = static_cast<double>(world_.nowNs() - from);
  if (row.errors.empty()) {
    EXPECT_LE(static_cast<double>(world_.chipRunNs(fixed_) - ran), 0.2 * wall + 15e6)
        << "a limit that nobody was told of fails open";
  }
  settle();
  expectAsPromised();
}

const chip_refusal kRunlistsRefuse = {0x2b00, 0xb0, false}, kHostRefuses = {0x2000, 0x2000, false},
                   kWritesRefused = {0x2000, 0x2000, true};

INSTANTIATE_TEST_SUITE_P(
    Each, OneTrouble,
    ::testing::Values(Row{"PreemptNeverCompletes", {.preempt_stuck = 1}, {}},
                      Row{"PbdmaStuck", {.pbdma_stuck = 1}, {}},
                      Row{"SaveStuck", {.save_stuck = 1}, {}},
                      Row{"LoadStuck", {.load_stuck = 1}, {}},
                      Row{"FetchStuck", {.fetch_stuck = 1}, {-ETIMEDOUT, -EBUSY}},
                      Row{"FetchGarbled", {.fetch_garbled = 1}, {-ETIMEDOUT}},
                      Row{"DoorbellsLate", {.doorbell_late_ns = 3'000'000}, {}},
                      Row{"RunlistsRefuse", {.refused = {kRunlistsRefuse}}, {-EIO}},
                      Row{"HostRefuses", {.refused = {kHostRefuses}}, {-EIO}},
                      Row{"WritesRefused", {.refused = {kWritesRefused}}, {-EIO}}),
    [](const auto &info) { return info.param.name; });

// --- what the chip does not show ---

WorldOptions with(bool chip_switches::*which) {
  WorldOptions options;
  options.sim.config.sw.*which = true;
  return options;
}

class MalformedUnseen : public Troubled {
 protected:
  MalformedUnseen() : Troubled(with(&chip_switches::malformed_clears_pending)) {}
};
class RereadUnseen : public Troubled {
 protected:
  RereadUnseen() : Troubled(with(&chip_switches::list_reread)) {}
};

// If a malformed list clears PENDING, or a list is spoiled when it is read again, nothing says so
// but the engine, which idles beside channels with work.
TEST_F(MalformedUnseen, IsNoticedByAnEngineThatIdlesBesideWork) {
  fakes::setTrouble(world_.card(), {.fetch_garbled = 1});
  live(100 * kMilli);
  fakes::setTrouble(world_.card());
  world_.runFor(12 * kSecond);
  expectAsPromised();
}

TEST_F(RereadUnseen, IsNoticedByAnEngineThatIdlesBesideWork) {
  fixed_.channel().stop();
  world_.runFor(kSecond);
  fakes::setTrouble(world_.card(), {.fetch_garbled = 1});
  world_.runFor(100 * kMilli);
  fakes::setTrouble(world_.card());
  world_.runFor(kSecond);
  const uint64_t ran = world_.chipRunNs(a_);
  world_.runFor(kSecond);
  EXPECT_GT(world_.chipRunNs(a_), ran);
}

// PMC_BOOT_0 is the same after a reset; the slot's registers are not.
TEST_F(Troubled, ACardThatWasResetBetweenTwoLooksIsNoticed) {
  fakes::setPresence(world_.card(), CHIP_POWERED_OFF);
  fakes::setPresence(world_.card(), CHIP_PRESENT);
  world_.runFor(kSecond);
  EXPECT_EQ(world_.lastError(), -ENODEV);
}

// With a driver that submits, too: counted, left alone until the slot is taken back, then as
// before.
TEST_F(Troubled, AForeignListIsFoundAndTheSlotTakenBack) {
  struct turn_counters counters;
  world_.card().submit({a_.tsgs[0]->sim, nobody_.sim});
  world_.runFor(20 * kMilli);
  EXPECT_EQ(world_.lastError(), -ESTALE);
  world_.changeList();
  EXPECT_EQ(world_.lastError(), -ESTALE);
  ::turn_counters(world_.scheduler(), &counters);
  EXPECT_EQ(counters.losses, 1u);
  const uint64_t submits = counters.submits;
  turn_start(world_.scheduler(), world_.nowNs());
  world_.changeList();
  EXPECT_EQ(world_.lastError(), 0);
  ::turn_counters(world_.scheduler(), &counters);
  EXPECT_GT(counters.submits, submits);
  world_.runFor(2 * kSecond);
  expectAsPromised();
}

// While the card is away the driver lists, and is told so: that is no reset, and what is in the
// slot is found and not overwritten.
TEST_F(Troubled, AForeignListInACardThatWasAwayIsFound) {
  world_.card().submit({a_.tsgs[0]->sim, nobody_.sim});
  fakes::setPresence(world_.card(), CHIP_OFF_BUS);
  world_.changeList();
  EXPECT_EQ(world_.lastError(), -ENODEV);
  fakes::setPresence(world_.card(), CHIP_PRESENT);
  world_.runFor(20 * kMilli);
  EXPECT_EQ(world_.lastError(), -ESTALE);
}

// It lists anew after a reset.
TEST_F(Troubled, ACardThatWasResetIsTheDriversAsSoonAsItLists) {
  fakes::setPresence(world_.card(), CHIP_POWERED_OFF);
  world_.runFor(20 * kMilli);
  fakes::setPresence(world_.card(), CHIP_PRESENT);
  world_.runFor(20 * kMilli);
  EXPECT_EQ(world_.lastError(), -ENODEV);
  world_.changeList();
  EXPECT_EQ(world_.lastError(), 0);
}

TEST_F(Troubled, ACardWithoutPowerIsGone) {
  fakes::setPresence(world_.card(), CHIP_POWERED_OFF);
  live(kSecond);
  EXPECT_EQ(errors_, std::set<int>{-ENODEV});
}

}  // namespace troubles_test
}  // namespace qgpu::stress
