// SPDX-License-Identifier: GPL-2.0
//
// gates_test.cpp - windows without a list of our own: the driver's stays in the slot, whoever has
// no window has its channels disabled. Shares and limits by the chip's record; nobody is held for
// longer than may be; wherever it ends, every channel is as the driver set it.
#include "stress/beside.hpp"

namespace qgpu::stress {
namespace gates_test {

BesideOptions byGates(uint64_t hold_max_ns = 0) {
  return {.method = TURN_GATES, .hold_max_ns = hold_max_ns};
}

struct Program {
  uint64_t kernel_ns = kMilli, gap_ns = 0;
  uint32_t preemption = CHIP_CILP;
};

fakes::SimTsg &start(Beside &beside, int tenant, const Program &program = {},
                     unsigned channels = 1) {
  fakes::SimTsg &tsg =
      *beside.driver().create(tenant, Driver::kHooked, {.channels = channels, .ring_log2 = 6}).sim;
  for (unsigned i = 0; i < channels; i++) {
    const fakes::Kernel kernel{.duration_ns = program.kernel_ns, .preemption = program.preemption};
    if (program.gap_ns)
      tsg.channel(i).syncLaunch(kernel, program.gap_ns);
    else
      tsg.channel(i).saturate(kernel, 2);
  }
  return tsg;
}

// A channel that nobody uses.
uint16_t quiet(Beside &beside, int tenant) {
  return beside.driver().create(tenant, Driver::kHooked, {.ring_log2 = 6}).sim->channel().id();
}

// What each of them ran of what all did, or of the wall.
struct Measured {
  std::vector<double> ran;
  double wall = 0, all = 0;
  double part(size_t i) const { return ran[i] / all; }
  double ofWall(size_t i) const { return ran[i] / wall; }
};

Measured measure(Beside &beside, int tenants, uint64_t ns) {
  Measured out;
  const uint64_t from = beside.nowNs();
  for (int i = 0; i < tenants; i++) out.ran.push_back(-static_cast<double>(beside.ranNs(i)));
  beside.runFor(ns);
  out.wall = static_cast<double>(beside.nowNs() - from);
  for (int i = 0; i < tenants; i++) {
    out.ran[static_cast<size_t>(i)] += static_cast<double>(beside.ranNs(i));
    out.all += out.ran[static_cast<size_t>(i)];
  }
  EXPECT_EQ(beside.lastError(), 0);
  return out;
}

void expectAllEnabled(Beside &beside) {
  for (const auto &object : beside.driver().objects())
    for (size_t i = 0; object->sim && i < object->sim->channelCount(); i++)
      EXPECT_TRUE(beside.card().channelStatus(object->sim->channel(i)) & CHIP_CH_ENABLE)
          << "channel " << object->sim->channel(i).id();
}

struct Shares {
  const char *name;
  std::vector<uint32_t> weights;
  std::vector<Program> programs;
  double delivered;
};
void PrintTo(const Shares &row, std::ostream *out) { *out << row.name; }

class GateShares : public ::testing::TestWithParam<Shares> {};

TEST_P(GateShares, AreWithinAPointOverTenSeconds) {
  const Shares &row = GetParam();
  Beside beside(byGates());
  double sum = 0;
  for (size_t i = 0; i < row.weights.size(); i++) {
    start(beside, beside.addTenant({.weight = row.weights[i]}), row.programs[i]);
    sum += row.weights[i];
  }
  beside.start();
  beside.runFor(kSecond);
  const uint64_t submits = beside.driver().submits();
  const Measured m = measure(beside, static_cast<int>(row.weights.size()), 10 * kSecond);
  for (size_t i = 0; i < row.weights.size(); i++)
    EXPECT_NEAR(m.part(i), row.weights[i] / sum, 0.01) << i;
  EXPECT_GT(m.all / m.wall, row.delivered);
  EXPECT_EQ(beside.driver().submits(), submits);
}

const Program kLong{.kernel_ns = 5 * kMilli}, kSync{.kernel_ns = kMilli, .gap_ns = 20 * kMicro},
    kUncuttable{.kernel_ns = 3 * kMilli, .preemption = CHIP_WFI};

INSTANTIATE_TEST_SUITE_P(
    Of, GateShares,
    ::testing::Values(
        Shares{"OneToOne", {100, 100}, {{}, kLong}, 0.95},
        Shares{"TwoToOne", {200, 100}, {{}, kLong}, 0.95},
        Shares{"NineToOne", {900, 100}, {{}, kLong}, 0.95},
        Shares{"NinetyNineToOne", {990, 10}, {{}, {}}, 0.95},
        Shares{"FourOfWhichOneIsSync", {400, 300, 200, 100}, {{}, kSync, {}, kLong}, 0.9},
        Shares{"Uncuttable", {200, 100}, {kUncuttable, {}}, 0.94},
        Shares{"EightEqual", {1, 1, 1, 1, 1, 1, 1, 1}, {{}, {}, {}, {}, {}, {}, {}, {}}, 0.93}),
    [](const auto &info) { return info.param.name; });

TEST(Gates, HoldACeilingAloneAndInCompany) {
  Beside beside(byGates());
  const int a = beside.addTenant({.ceiling_ppm = 300'000}), b = beside.addTenant();
  start(beside, a);
  fakes::SimTsg &other = start(beside, b, kLong);
  beside.start();
  beside.runFor(kSecond);
  EXPECT_NEAR(measure(beside, 2, 5 * kSecond).ofWall(0), 0.3, 0.005);
  other.channel().stop();
  beside.runFor(kSecond);
  EXPECT_NEAR(measure(beside, 2, 5 * kSecond).ofWall(0), 0.3, 0.005);
}

TEST(Gates, HoldAFixedShareAloneAndInCompany) {
  Beside beside(byGates());
  const int a = beside.addTenant(scenario::fixedAt(200'000)), b = beside.addTenant();
  start(beside, a, {}, 3);
  fakes::SimTsg &other = start(beside, b, kLong);
  beside.start();
  beside.runFor(kSecond);
  const Measured m = measure(beside, 2, 5 * kSecond);
  EXPECT_NEAR(m.ofWall(0), 0.2, 0.003);
  EXPECT_GT(m.ofWall(1), 0.75);
  other.channel().stop();
  beside.runFor(kSecond);
  EXPECT_NEAR(measure(beside, 2, 5 * kSecond).ofWall(0), 0.2, 0.003);
}

TEST(Gates, ALoneTenantIsNeverClosed) {
  Beside beside(byGates());
  start(beside, beside.addTenant());
  beside.addTenant();
  beside.start();
  const Measured m = measure(beside, 1, 2 * kSecond);
  EXPECT_GT(m.ofWall(0), 0.99);
  EXPECT_EQ(beside.gateWrites(), 0u);
}

// Who was closed for want of a window and wakes is not forgotten, and who sleeps costs nothing.
TEST(Gates, WhoSleepsAndWakesIsServed) {
  Beside beside(byGates());
  const int a = beside.addTenant({.weight = 500}), b = beside.addTenant({.weight = 100});
  start(beside, a);
  fakes::SimTsg &b_tsg = start(beside, b, {.kernel_ns = 100 * kMicro, .gap_ns = 30 * kMilli});
  beside.start();
  beside.runFor(kSecond);
  const uint64_t before = b_tsg.channel().completed();
  const Measured m = measure(beside, 2, 4 * kSecond);
  EXPECT_GT(b_tsg.channel().completed() - before, 70u);
  EXPECT_GT(m.ofWall(0), 0.95);
}

TEST(Gates, NobodyIsHeldForLongerThanMayBe) {
  constexpr uint64_t kHoldMaxNs = 60 * kMilli;
  Beside beside(byGates(kHoldMaxNs));
  // A budget of 2 ms in 640: held for most of it.
  const int a = beside.addTenant(scenario::fixedAt(4'000)), b = beside.addTenant();
  fakes::SimTsg &tsg = start(beside, a, {.kernel_ns = 50 * kMicro});
  start(beside, b);
  uint64_t last_ns = 0, longest_ns = 0;
  tsg.channel().onComplete([&](fakes::SimChannel &, const chip_completion &c) {
    if (last_ns) longest_ns = std::max<uint64_t>(longest_ns, c.time_ns - last_ns);
    last_ns = c.time_ns;
  });
  beside.start();
  beside.runFor(kSecond);
  longest_ns = 0;
  const Measured m = measure(beside, 2, 5 * kSecond);
  EXPECT_LT(longest_ns, kHoldMaxNs + 5 * kMilli);
  EXPECT_LT(m.ofWall(0), 0.02);
  EXPECT_GT(m.ofWall(1), 0.95);
}

// Whatever happens at whatever access: what is closed is known to be, and opens.
TEST(Gates, KilledAnywhereEveryChannelIsEnabledAfterwards) {
  for (uint64_t after = 1; after < 400; after += 3) {
    Beside beside(byGates());
    start(beside, beside.addTenant({.weight = 200}), {}, 2);
    start(beside, beside.addTenant(scenario::fixedAt(200'000)), {}, 3);
    start(beside, beside.addTenant({.weight = 100}), kLong);
    beside.start();
    beside.runFor(100 * kMilli);
    beside.failAfter(after);
    beside.runFor(30 * kMilli);
    beside.failAfter(0);
    beside.stop();
    expectAllEnabled(beside);
  }
}

// The driver's own word counts: what it disabled stays so.
TEST(Gates, WhatTheDriverDisabledStaysDisabled) {
  Beside beside(byGates());
  start(beside, beside.addTenant());
  fakes::SimTsg &tsg = start(beside, beside.addTenant(), kLong, 2);
  beside.start();
  beside.runFor(100 * kMilli);
  while (!(beside.card().channelStatus(tsg.channel(1)) & CHIP_CH_ENABLE)) beside.runFor(kMilli);
  tsg.channel(1).disable();
  beside.runFor(kSecond);
  beside.stop();
  EXPECT_TRUE(beside.card().channelStatus(tsg.channel(0)) & CHIP_CH_ENABLE);
  EXPECT_FALSE(beside.card().channelStatus(tsg.channel(1)) & CHIP_CH_ENABLE);
}

TEST(Gates, WhatTheDriverEnablesMeanwhileIsClosedAgain) {
  Beside beside(byGates());
  const int a = beside.addTenant(scenario::fixedAt(200'000));
  fakes::SimTsg &tsg = start(beside, a);
  start(beside, beside.addTenant(), kLong);
  beside.start();
  beside.runFor(kSecond);
  const uint64_t from = beside.nowNs(), ran = beside.ranNs(a);
  for (int i = 0; i < 50; i++) {
    beside.runFor(100 * kMilli);
    tsg.channel().enable();
    tsg.channel().ring();
  }
  const double part =
      static_cast<double>(beside.ranNs(a) - ran) / static_cast<double>(beside.nowNs() - from);
  EXPECT_LT(part, 0.203);
  EXPECT_GT(part, 0.18);
}

// A program makes a channel while its TSG is held: that one is held as well.
TEST(Gates, AChannelThatComesToAHeldTsgIsHeldToo) {
  Beside beside(byGates());
  const int a = beside.addTenant(scenario::fixedAt(200'000));
  auto &object = beside.driver().create(a, Driver::kHooked, {.ring_log2 = 6});
  object.sim->channel().saturate(fakes::Kernel{.duration_ns = kMilli}, 2);
  start(beside, beside.addTenant(), kLong);
  beside.start();
  beside.runFor(kSecond);
  const uint64_t from = beside.nowNs(), ran = beside.ranNs(a);
  for (int i = 0; i < 60; i++) {
    const auto held = [&] {
      return !(beside.card().channelStatus(object.sim->channel(0)) & CHIP_CH_ENABLE);
    };
    while (!held()) beside.runFor(kMilli);
    beside.driver().addChannel(object).saturate(fakes::Kernel{.duration_ns = kMilli}, 2);
    beside.runFor(50 * kMilli);
  }
  const double part =
      static_cast<double>(beside.ranNs(a) - ran) / static_cast<double>(beside.nowNs() - from);
  EXPECT_LT(part, 0.203);
  EXPECT_GT(part, 0.18);
  EXPECT_EQ(beside.lastError(), 0);
  beside.stop();
  expectAllEnabled(beside);
}

// One that the driver had disabled when its TSG was closed, and enables meanwhile.
TEST(Gates, AChannelThatTheDriverEnablesLateIsHeldToo) {
  Beside beside(byGates());
  const int a = beside.addTenant(scenario::fixedAt(200'000));
  fakes::SimTsg &tsg = start(beside, a, {}, 2);
  start(beside, beside.addTenant(), kLong);
  beside.start();
  beside.runFor(kSecond);
  const uint64_t from = beside.nowNs(), ran = beside.ranNs(a);
  const auto enabled = [&](size_t i) {
    return (beside.card().channelStatus(tsg.channel(i)) & CHIP_CH_ENABLE) != 0;
  };
  for (int i = 0; i < 50; i++) {
    while (!enabled(0)) beside.runFor(kMilli);
    tsg.channel(1).disable();
    while (enabled(0)) beside.runFor(kMilli);
    tsg.channel(1).enable();
    tsg.channel(1).ring();
    beside.runFor(20 * kMilli);
  }
  EXPECT_LT(static_cast<double>(beside.ranNs(a) - ran) / static_cast<double>(beside.nowNs() - from),
            0.206);
}

// A program that makes calls which its hooks bracket, one after the other, is held between them.
TEST(Gates, CallsInVainGainNothing) {
  Beside beside(byGates());
  const int a = beside.addTenant(scenario::fixedAt(200'000));
  auto &object = beside.driver().create(a, Driver::kHooked, {.ring_log2 = 6});
  object.sim->channel().saturate(fakes::Kernel{.duration_ns = kMilli}, 2);
  start(beside, beside.addTenant(), kLong);
  beside.start();
  beside.runFor(kSecond);
  const uint64_t from = beside.nowNs(), ran = beside.ranNs(a);
  const auto held = [&] {
    return !(beside.card().channelStatus(object.sim->channel()) & CHIP_CH_ENABLE);
  };
  while (beside.nowNs() < from + 3 * kSecond) {
    const bool was_held = held();
    beside.driver().callInVain(object);
    ASSERT_EQ(held(), was_held);
    beside.runFor(kMilli);
  }
  EXPECT_LT(static_cast<double>(beside.ranNs(a) - ran) / (3.0 * kSecond), 0.203);
}

// The slot is empty though the driver lists somebody: said until it lists anew, and then all is as
// before.
TEST(Gates, ACardThatWasResetBetweenTwoLooksIsNoticed) {
  Beside beside(byGates());
  const int a = beside.addTenant({.weight = 200}), b = beside.addTenant({.weight = 100});
  start(beside, a);
  start(beside, b, kLong);
  beside.start();
  beside.runFor(kSecond);
  fakes::setPresence(beside.card(), CHIP_POWERED_OFF);
  fakes::setPresence(beside.card(), CHIP_PRESENT);
  for (int i = 0; i < 10; i++) {
    beside.runFor(10 * kMilli);
    EXPECT_EQ(beside.lastError(), -ENODEV);
  }
  EXPECT_EQ(beside.counters().losses, 1u);
  beside.driver().reload();
  start(beside, a);
  start(beside, b, kLong);
  beside.runFor(kSecond);
  EXPECT_NEAR(measure(beside, 2, 10 * kSecond).part(0), 2.0 / 3, 0.01);
  beside.stop();
  expectAllEnabled(beside);
}

// While a card is off its bus rings are lost, and who waits for what it rang for never rings again.
TEST(Gates, WhoRangWhileTheCardWasAwayIsServed) {
  for (uint64_t i = 0; i < 60; i++) {
    Beside beside(byGates());
    const int a = beside.addTenant({.weight = 200}), b = beside.addTenant({.weight = 100});
    start(beside, a, kSync);
    start(beside, b, kLong);
    beside.start();
    beside.runFor(100 * kMilli + i * 700 * kMicro);
    fakes::setPresence(beside.card(), CHIP_OFF_BUS);
    beside.runFor(50 * kMilli);
    EXPECT_EQ(beside.lastError(), -ENODEV);
    fakes::setPresence(beside.card(), CHIP_PRESENT);
    beside.runFor(500 * kMilli);
    const Measured m = measure(beside, 2, 500 * kMilli);
    EXPECT_GT(m.ofWall(0), 0.5) << i;
    EXPECT_GT(m.ofWall(1), 0.2) << i;
  }
}

// After 100 ms the card leaves its bus for 50; when it is back this channel's register refuses.
void goAndComeBackWithout(Beside &beside, uint16_t channel) {
  beside.runFor(100 * kMilli);
  fakes::setPresence(beside.card(), CHIP_OFF_BUS);
  beside.runFor(50 * kMilli);
  fakes::setPresence(beside.card(), CHIP_PRESENT);
  fakes::setTrouble(beside.card(), {.refused = {{CHIP_PCCSR + 8u * channel, 8, false}}});
}

// That keeps nobody else from being rung.
TEST(Gates, WhoRangWhileTheCardWasAwayIsServedBesideAChannelThatRefuses) {
  Beside beside(byGates());
  const int a = beside.addTenant();
  start(beside, a, kSync);
  const uint16_t broken = quiet(beside, beside.addTenant());
  beside.start();
  goAndComeBackWithout(beside, broken);
  const uint64_t ran = beside.ranNs(a);
  beside.runFor(kSecond);
  EXPECT_EQ(beside.lastError(), -EIO);
  EXPECT_GT(beside.ranNs(a) - ran, 900 * kMilli);
}

// It alone is rung again and again, until it answers.
TEST(Gates, WhoCanBeRungIsRungOnceWhenTheCardIsBack) {
  Beside beside(byGates());
  const int a = beside.addTenant();
  const uint16_t broken = start(beside, a, kSync).channel().id();
  const uint16_t other = quiet(beside, beside.addTenant());
  beside.start();
  for (int times = 1; times <= 2; times++) {
    goAndComeBackWithout(beside, broken);
    const uint64_t ran = beside.ranNs(a);
    beside.runFor(kSecond);
    EXPECT_EQ(beside.lastError(), -EIO);
    EXPECT_EQ(beside.ringsOf(other), times);
    EXPECT_EQ(beside.ringsOf(broken), times - 1);
    EXPECT_EQ(beside.ranNs(a), ran);
    fakes::setTrouble(beside.card());
    beside.runFor(kSecond);
    EXPECT_EQ(beside.lastError(), 0);
    EXPECT_EQ(beside.ringsOf(other), times);
    EXPECT_EQ(beside.ringsOf(broken), times);
    EXPECT_GT(beside.ranNs(a), ran + 900 * kMilli);
    EXPECT_EQ(beside.counters().losses, times);
  }
}

// Registers of one channel refuse, to be read or to be written: that is an error, and its owner's
// loss alone.
class GatesRefused : public ::testing::TestWithParam<bool> {};

TEST_P(GatesRefused, AreTheLossOfWhoseChannelItIs) {
  constexpr uint64_t kHoldMaxNs = 60 * kMilli;
  Beside beside(byGates(kHoldMaxNs));
  const int a = beside.addTenant(), b = beside.addTenant(),
            c = beside.addTenant(scenario::fixedAt(200'000));
  start(beside, a);
  fakes::SimTsg &broken = start(beside, b);
  start(beside, c);
  beside.start();
  beside.runFor(kSecond);
  const auto held = [&] {
    return !(beside.card().channelStatus(broken.channel()) & CHIP_CH_ENABLE);
  };
  while (!held()) beside.runFor(kMilli);
  const uint32_t at = CHIP_PCCSR + 8u * broken.channel().id();
  fakes::setTrouble(beside.card(), {.refused = {{at, 8, GetParam()}}});
  bool told = false;
  const uint64_t from = beside.nowNs();
  const uint64_t ran_a = beside.ranNs(a), ran_c = beside.ranNs(c);
  while (beside.nowNs() < from + 4 * kSecond) {
    beside.runFor(kMilli);
    told |= beside.lastError() == -EIO;
  }
  EXPECT_TRUE(told);
  EXPECT_NEAR(static_cast<double>(beside.ranNs(c) - ran_c) / (4.0 * kSecond), 0.2, 0.01);
  EXPECT_GT(static_cast<double>(beside.ranNs(a) - ran_a) / (4.0 * kSecond), 0.7);
  fakes::setTrouble(beside.card());
  beside.runFor(5 * kSecond);
  EXPECT_NEAR(measure(beside, 3, 2 * kSecond).ofWall(1), 0.39, 0.03);
}

INSTANTIATE_TEST_SUITE_P(ToBe, GatesRefused, ::testing::Bool(),
                         [](const auto &info) { return info.param ? "Written" : "Read"; });

// Who is on the engine cannot be read: nobody is left held for longer than may be, by gates, and
// nobody keeps the slot.
class Blind : public ::testing::TestWithParam<turn_method> {};

TEST_P(Blind, EveryoneRunsNowAndThen) {
  constexpr uint64_t kHoldMaxNs = 60 * kMilli;
  Beside beside({.method = GetParam(), .hold_max_ns = kHoldMaxNs});
  const int a = beside.addTenant(scenario::fixedAt(300'000)),
            b = beside.addTenant(scenario::fixedAt(300'000));
  start(beside, a);
  start(beside, b, kLong);
  beside.start();
  beside.runFor(kSecond);
  fakes::setTrouble(beside.card(), {.refused = {{CHIP_ENGINE_STATUS, 8, false}}});
  bool told = false;
  for (int i = 0; i < 20; i++) {
    const uint64_t ran_a = beside.ranNs(a), ran_b = beside.ranNs(b);
    for (int ms = 0; ms < 200; ms++) {
      beside.runFor(kMilli);
      told |= beside.lastError() == -EIO;
    }
    EXPECT_GT(beside.ranNs(a), ran_a) << i;
    EXPECT_GT(beside.ranNs(b), ran_b) << i;
  }
  EXPECT_TRUE(told);
  fakes::setTrouble(beside.card());
  beside.runFor(2 * kSecond);
  EXPECT_EQ(beside.lastError(), 0);
  EXPECT_NEAR(measure(beside, 2, 2 * kSecond).ofWall(0), 0.3, 0.02);
}

INSTANTIATE_TEST_SUITE_P(By, Blind, ::testing::Values(TURN_IMAGES, TURN_GATES),
                         [](const auto &info) {
                           return info.param == TURN_GATES ? "Gates" : "Images";
                         });

struct Cost {
  double accesses, writes;  // of a switch, with the looks in between
};

Cost costOfASwitch(unsigned channels) {
  Beside beside(byGates());
  for (int i = 0; i < 2; i++) start(beside, beside.addTenant(), {}, channels);
  beside.start();
  beside.runFor(kSecond);
  const uint64_t accesses = beside.accesses(), writes = beside.gateWrites(),
                 windows = beside.tenant(0).windows;
  beside.runFor(4 * kSecond);
  const auto switches = static_cast<double>(2 * (beside.tenant(0).windows - windows));
  return {static_cast<double>(beside.accesses() - accesses) / switches,
          static_cast<double>(beside.gateWrites() - writes) / switches};
}

// Of each TSG's channels some are opened and as many closed in a switch: four accesses a channel.
// Looks cost the same whatever the channels, so they are in what does not grow.
TEST(Gates, ASwitchIsCheap) {
  const Cost one = costOfASwitch(1), nine = costOfASwitch(9);
  EXPECT_LE(nine.accesses - one.accesses, 4 * 2 * 8 + 1);
  // Enabled and rung, or disabled.
  EXPECT_LE(nine.writes, 3 * 9 + 1);
  EXPECT_LE(one.writes, 3 + 1);
}

}  // namespace gates_test
}  // namespace qgpu::stress
