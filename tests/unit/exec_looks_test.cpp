// SPDX-License-Identifier: GPL-2.0
// Looks at the objects of several processes at once, against a fake driver: what they cost in a
// turn, who is first, what a hint is good for, and that nothing is found that is not there.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>

#include "daemon/exec/process.hpp"
#include "daemon/exec/rm_abi.hpp"
#include "fakes/child.hpp"
#include "fakes/fake_rm.hpp"
#include "fakes/seed.hpp"

namespace qgpu::exec {
namespace exec_looks_test {

// Several processes that share what is known of where objects are.
struct LooksBed {
  fakes::FakeRm io;
  std::unique_ptr<RmClient> own;
  std::shared_ptr<Looks> looks = std::make_shared<Looks>();
  std::vector<std::unique_ptr<fakes::Child>> children;
  std::vector<std::unique_ptr<Process>> processes;
  uint64_t now_ns = 0, dearest = 0;  // the controls of the dearest turn
  std::minstd_rand random{static_cast<std::minstd_rand::result_type>(fakes::seed())};

  LooksBed() {
    own = std::move(*RmClient::open(io, *driverProfile({580, 159, 4}, DriverChoice::kExact), 0));
  }
  uint64_t controls() const {
    uint64_t out = 0;
    for (const auto &[cmd, times] : io.calls) out += times;
    return out;
  }
  // One with its TSG there and its channels from there on.
  Process &add(uint32_t tsg, uint32_t channel, unsigned channels = 8, uint32_t tenant = 0) {
    children.push_back(std::make_unique<fakes::Child>());
    const fakes::Child &fresh = *children.back();
    layOut(io.addProcess(fresh.pid(), 0), tsg, channel, channels);
    processes.push_back(std::make_unique<Process>(*own, fresh.pid(), fresh.pidfd(), rm::kClientBase,
                                                  now_ns, looks, tenant));
    return *processes.back();
  }
  static void layOut(fakes::FakeTsg &of, uint32_t tsg, uint32_t channel, unsigned channels) {
    of.handle = rm::kCudaObjectBase + tsg;
    of.channels.clear();
    for (unsigned i = 0; i < channels; i++)
      of.channels.push_back(rm::kCudaObjectBase + channel + i);
  }
  // Anywhere, but not where the first handles tell.
  Process &addAnywhere() {
    const uint32_t at = 0x44 + random() % 0x600;
    return add(at, at + 1 + random() % 0x40, 1 + random() % 24);
  }
  void turn() {
    const uint64_t before = controls();
    std::shuffle(processes.begin(), processes.end(), random);
    for (const auto &process : processes) process->step(now_ns);
    dearest = std::max(dearest, controls() - before);
    now_ns += 50'000;
  }
  void turns(unsigned times) {
    for (unsigned i = 0; i < times; i++) turn();
  }
  unsigned controlled() const {
    return static_cast<unsigned>(std::count_if(
        processes.begin(), processes.end(),
        [](const auto &process) { return process->state() == Process::State::kControlled; }));
  }
  // What is known of it is as it is, though maybe not all of it.
  void expectTrue(const Process &process) {
    const fakes::FakeTsg &is = io.tsg(process.pid());
    for (const Tsg &known : process.tsgs()) {
      if (!known.compute()) continue;
      EXPECT_EQ(known.handle, is.handle);
      EXPECT_EQ(known.id, is.id);
      for (const Channel &channel : known.channels)
        EXPECT_EQ(std::count(is.channels.begin(), is.channels.end(), channel.handle), 1);
    }
  }
  bool knowsAll(const Process &process) {
    return process.tsgs().size() == 2 &&
           std::any_of(process.tsgs().begin(), process.tsgs().end(), [&](const Tsg &known) {
             return known.compute() &&
                    known.channels.size() == io.tsg(process.pid()).channels.size();
           });
  }
};

// Turns of a full look: two blocks and the empty one after them, of which most handles cost two.
constexpr unsigned kFullTurns = 40;

TEST(Looks, AHintPutsTheNextUnderControlWithFewProbes) {
  QGPU_TRACE_SEED();
  LooksBed bed;
  Process &first = bed.add(0x315, 0x31c);
  bed.turn();
  EXPECT_EQ(first.state(), Process::State::kLooking);
  bed.turns(kFullTurns);
  ASSERT_EQ(first.state(), Process::State::kControlled);
  Process &second = bed.add(0x315, 0x31c);
  bed.turn();
  ASSERT_EQ(second.state(), Process::State::kControlled);
  EXPECT_LT(second.probes(), 100u);
  ASSERT_EQ(second.tsgs().size(), 1u);
  EXPECT_EQ(second.tsgs()[0].channels.size(), 8u);
  EXPECT_EQ(second.foreign().subdevice, first.foreign().subdevice);
  bed.turns(kFullTurns);
  EXPECT_TRUE(bed.knowsAll(second));
}

TEST(Looks, AWrongHintCostsItsProbesAlone) {
  QGPU_TRACE_SEED();
  LooksBed bed;
  bed.add(0x315, 0x31c);
  bed.turns(kFullTurns);
  ASSERT_TRUE(bed.looks->hint(0));
  // A channel where the TSG was; the TSG there, its channels elsewhere; none of both there.
  for (const auto &[tsg, channel] :
       {std::pair{0x310u, 0x312u}, {0x315u, 0x320u}, {0x200u, 0x300u}}) {
    const Hint hint = *bed.looks->hint(0);
    Process &other = bed.add(tsg, channel, 6);
    bed.turn();
    EXPECT_LT(other.probes(), 100u);
    bed.expectTrue(other);
    bed.turns(kFullTurns);
    ASSERT_EQ(other.state(), Process::State::kControlled);
    EXPECT_TRUE(bed.knowsAll(other));
    bed.expectTrue(other);
    bed.looks->remember(0, hint);
  }
}

// Who makes contexts without end is looked at once a second, and each look comes to its end; who
// only seems to, as one that has more of them than are remembered, more and more rarely.
TEST(Looks, WhoAlwaysHasSomethingNewIsNotLookedAtAllTheTime) {
  QGPU_TRACE_SEED();
  LooksBed bed;
  bed.looks->hearOfNew(true);
  Process &process = bed.add(0x15, 0x1c);
  for (; bed.now_ns < 10'000'000'000; bed.now_ns += 950'000) bed.turn();
  const uint64_t settled = process.probes();
  for (; bed.now_ns < 60'000'000'000; bed.now_ns += 950'000) bed.turn();
  EXPECT_EQ(process.probes(), settled);
  const uint64_t look = settled / 4;  // the quick one and four
  const auto looksIn = [&](uint64_t ns, bool makes) {
    const uint64_t probes = process.probes();
    bool looked = true;
    for (const uint64_t from_ns = bed.now_ns; bed.now_ns < from_ns + ns; bed.now_ns += 950'000) {
      if (makes && looked) bed.io.tsg(process.pid()).channels.front() ^= 0x38;
      const bool looks = process.looks();
      process.noteNew(bed.now_ns);
      bed.turn();
      looked = looks && !process.looks();
    }
    return (process.probes() - probes) / look;
  };
  const uint64_t makes = looksIn(30'000'000'000, true);
  EXPECT_GE(makes, 20u);
  EXPECT_LE(makes, 30u);
  EXPECT_LE(looksIn(60'000'000'000, false), 6u);
  EXPECT_GE(looksIn(60'000'000'000, false), 1u);
  EXPECT_GE(looksIn(60'000'000'000, true), 20u);
  // What came during a look is found by the next.
  while (!process.looks()) bed.turn();
  process.noteNew(bed.now_ns);
  while (process.looks()) bed.turn();
  bed.io.tsg(process.pid()).channels.push_back(rm::kCudaObjectBase + 0x30);
  for (const uint64_t from_ns = bed.now_ns; bed.now_ns < from_ns + 2'100'000'000;) bed.turn();
  EXPECT_TRUE(bed.knowsAll(process));
}

// Each tenant's own hint, anybody's for who has none, and the first handles whatever they say.
TEST(Looks, AnOddLayoutOfOneTenantLeadsNobodyElseAstray) {
  QGPU_TRACE_SEED();
  LooksBed bed;
  bed.add(0x15, 0x1c, 8, 1);
  bed.turns(kFullTurns);
  for (uint32_t i = 0; i < 20; i++) {
    bed.add(0x300 + 0x20 * i, 0x304 + 0x20 * i, 8, 66);
    bed.turns(2 * kFullTurns);
    Process &known = bed.add(0x15, 0x1c, 8, 1), &fresh = bed.add(0x15, 0x1c, 8, 100 + i);
    bed.turns(8);
    EXPECT_EQ(known.state(), Process::State::kControlled) << i;
    EXPECT_EQ(fresh.state(), Process::State::kControlled) << i;
    bed.turns(2 * kFullTurns);
  }
}

// Each has a client of its own, and none of them matters: guesses are made for each, and bounded.
TEST(Looks, ManyControlNodesCostNoMoreGuessesThanOne) {
  QGPU_TRACE_SEED();
  LooksBed bed;
  Process &process = bed.add(0x15, 0x1c);
  const pid_t pid = process.pid();
  bed.io.freeTsg(pid);
  for (int fd = 100; fd < 500; fd++) {
    bed.io.addProcess(pid, 0, fd);
    bed.io.freeTsg(pid);
  }
  for (int i = 0; i < 2000; i++) bed.turn();
  EXPECT_GT(bed.io.wrong_clients, 0u);
  EXPECT_LE(bed.io.wrong_clients, 0x4000u);
}

TEST(Looks, NoTurnCostsMoreThanItMayWhateverIsLookedFor) {
  QGPU_TRACE_SEED();
  LooksBed bed;
  // Clients of others, each a wrong guess.
  for (int i = 0; i < 700; i++) bed.io.addProcess(1);
  bed.io.endProcess(1);
  for (int i = 0; i < 12; i++) bed.addAnywhere();
  for (int i = 0; i < 1500 && bed.controlled() < 12; i++) {
    bed.turn();
    for (const auto &process : bed.processes) bed.expectTrue(*process);
  }
  bed.turns(12 * kFullTurns);
  EXPECT_EQ(bed.controlled(), 12u);
  EXPECT_LE(bed.dearest, Looks::kControlsMax);
  EXPECT_GT(bed.dearest, Looks::kControlsMax / 2);
  for (const auto &process : bed.processes) {
    bed.expectTrue(*process);
    EXPECT_TRUE(bed.knowsAll(*process));
  }
}

TEST(Looks, GuessesInPiecesAndNoHandleTwice) {
  QGPU_TRACE_SEED();
  LooksBed bed;
  for (int i = 0; i < 1000; i++) bed.io.addProcess(1);
  bed.io.endProcess(1);
  Process &process = bed.add(0x15, 0x1c);
  // The youngest is its own: the others are not even tried.
  bed.turn();
  EXPECT_EQ(process.state(), Process::State::kLooking);
  EXPECT_LE(bed.io.wrong_clients, uint64_t{Looks::kControlsMax});
  bed.turn();
  EXPECT_EQ(process.state(), Process::State::kControlled);
  EXPECT_LE(bed.io.wrong_clients, uint64_t{Looks::kControlsMax});
  // One without a client of its own: all are tried, once.
  Process &none = bed.add(0x15, 0x1c);
  bed.io.endProcess(none.pid());
  bed.io.addProcess(none.pid()).client = 0;
  const uint64_t before = bed.io.wrong_clients;
  bed.turns(1000);
  EXPECT_LE(bed.io.wrong_clients, before + 1100);
}

TEST(Looks, WhoWaitsLongestIsFirstAndAHintBeforeAll) {
  QGPU_TRACE_SEED();
  LooksBed bed;
  bed.add(0x315, 0x31c);
  bed.turns(kFullTurns);
  // Each elsewhere: only a full look finds it.
  std::vector<Process *> waiting;
  for (uint32_t i = 0; i < 4; i++) {
    waiting.push_back(&bed.add(0x100 + 0x20 * i, 0x104 + 0x20 * i));
    bed.turn();
  }
  const Hint hint = *bed.looks->hint(0);
  bed.turns(2);
  Process &likely = bed.add(0x315, 0x31c);
  bed.turns(2);
  EXPECT_EQ(likely.state(), Process::State::kControlled);
  for (size_t i = 0; i < waiting.size(); i++) {
    for (unsigned k = 0; k < 2 * kFullTurns && bed.controlled() < 3 + i; k++) {
      bed.looks->remember(0, hint);
      bed.turn();
    }
    EXPECT_EQ(waiting[i]->state(), Process::State::kControlled) << i;
  }
}

TEST(Looks, WhatAppearsLaterIsFoundAndTheRestStays) {
  QGPU_TRACE_SEED();
  LooksBed bed;
  Process &process = bed.add(0x15, 0x1c);
  bed.turns(kFullTurns);
  ASSERT_TRUE(bed.knowsAll(process));
  const auto before = process.tsgs();
  for (int i = 0; i < 100; i++) {
    bed.now_ns = std::max(bed.now_ns, process.nextStepNs());
    if (process.nextStepNs() > 1'000'000'000) break;
    EXPECT_FALSE(process.step(bed.now_ns));  // nothing new
  }
  fakes::FakeTsg &later = bed.io.addProcess(process.pid(), 0);
  later.client = process.foreign().client;
  bed.layOut(later, 0x430, 0x434, 4);
  bed.now_ns = process.nextStepNs();
  bed.turns(kFullTurns);
  ASSERT_EQ(process.tsgs().size(), 3u);
  for (size_t i = 0; i < 2; i++) EXPECT_EQ(process.tsgs()[i], before[i]);
  EXPECT_EQ(process.tsgs()[2].handle, later.handle);
  EXPECT_EQ(process.tsgs()[2].channels.size(), 4u);
}

TEST(Looks, WhoEndsOrClosesTheDriverMeanwhileIsDropped) {
  QGPU_TRACE_SEED();
  for (const bool ends : {true, false})
    for (unsigned pieces = 1; pieces < 9; pieces++) {
      LooksBed bed;
      const size_t open = bed.io.open_fds.size();
      Process &process = bed.add(0x715, 0x71c);
      bed.turns(pieces);
      ASSERT_EQ(process.state(), Process::State::kLooking);
      EXPECT_GT(bed.io.open_fds.size(), open);
      Process &other = bed.add(0x715, 0x71c);
      bed.io.endProcess(process.pid());
      if (ends) bed.children[0]->end();
      bed.turns(3 * kFullTurns);
      bed.now_ns += 20'000'000;  // what it has is asked for again
      bed.turn();
      EXPECT_EQ(process.state(), ends ? Process::State::kEnded : Process::State::kLooking);
      EXPECT_TRUE(process.tsgs().empty());
      EXPECT_EQ(other.state(), Process::State::kControlled);
      EXPECT_EQ(bed.io.open_fds.size(), open + 1);
    }
}

}  // namespace exec_looks_test
}  // namespace qgpu::exec
