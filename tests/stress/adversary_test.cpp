// SPDX-License-Identifier: GPL-2.0
//
// adversary_test.cpp - qgpu beside a driver that goes on as if it were alone: programs come, go and
// are re-sliced at random, some closes and some channels nobody tells of, the driver submits its
// own list whenever it likes - also in the middle of ours -, recovers from faults, gives freed ids
// and memory to the next at once, has a watchdog of its own, reloads. What was promised holds all
// the same, whoever is not known is served, and nobody is left stopped.
#include "fakes/seed.hpp"
#include "stress/beside.hpp"

namespace qgpu::stress {
namespace adversary_test {

// A submit waits 100 ms before and 100 ms after; preempts and edges are within microseconds.
constexpr uint64_t kTurnNs = 250 * kMilli;
// Two cycles of twenty programs; RM's own watchdog gives up after five seconds at the least.
constexpr uint64_t kServedNs = 500 * kMilli;

// The watchdog: 20 us of work each 50 ms, nobody's, and what it waited at most.
class Watchdog {
 public:
  explicit Watchdog(Beside &beside) : beside_(beside) { begin(); }

  void begin() {
    object_ = &beside_.driver().create(Object::kKernel, Driver::kUnseen);
    object_->sim->channel().onComplete([this](fakes::SimChannel &, const chip_completion &c) {
      longest_ns_ = std::max<uint64_t>(longest_ns_, c.time_ns - last_ns_);
      last_ns_ = c.time_ns;
      served_++;
    });
    last_ns_ = beside_.nowNs();
    object_->sim->channel().syncLaunch({.duration_ns = 20 * kMicro}, 50 * kMilli);
  }
  Object &object() { return *object_; }
  uint64_t served() const { return served_; }
  uint64_t longestNs() const { return longest_ns_; }
  void forgetLongest() { longest_ns_ = 0; }

 private:
  Beside &beside_;
  Object *object_ = nullptr;
  uint64_t last_ns_ = 0, longest_ns_ = 0, served_ = 0;
};

// What the driver does in its own time, one thing at each of random instants.
class Adversary {
 public:
  // The first @fixed tenants keep the programs they were given.
  Adversary(Beside &beside, uint64_t seed, int fixed)
      : beside_(beside), random_(seed), fixed_(fixed) {}

  void runFor(uint64_t ns, uint64_t mean_ns) {
    std::exponential_distribution<double> gap(1.0 / static_cast<double>(mean_ns));
    const uint64_t end = beside_.nowNs() + ns;
    while (beside_.nowNs() < end && !::testing::Test::HasFailure()) {
      beside_.runTo(std::min(end, beside_.nowNs() + 1 + static_cast<uint64_t>(gap(random_))));
      if (beside_.nowNs() < end) act();
    }
  }

  void act() {
    switch (pick(12)) {
      case 0:
      case 1:
        beside_.driver().submit();
        break;
      case 2:
      case 3:
        come(pick(2) ? Driver::kHooked : Driver::kUnseen);
        break;
      case 4:
      case 5:
        if (Object *object = some()) beside_.driver().destroy(*object, Driver::kHooked);
        break;
      case 6:
        if (Object *object = some()) beside_.driver().destroy(*object, Driver::kUnseen);
        break;
      case 7:
        // A deferred close: the next program has its ids before anybody was told.
        if (Object *object = some()) {
          beside_.driver().destroy(*object, Driver::kUnseen);
          come(Driver::kHooked);
        }
        break;
      case 8:
        if (Object *object = some())
          beside_.driver().reslice(*object, static_cast<uint8_t>(1 + pick(255)),
                                   pick(2) ? Driver::kHooked : Driver::kUnseen);
        break;
      case 9:
        kernels();
        break;
      case 10:
        if (Object *object = some()) recover(*object);
        break;
      default:
        race();
        break;
    }
  }

  // In the middle of the scheduler's next submit the driver does one of its own.
  void race() {
    const u32 at = CHIP_RUNLIST_REGS + 4 * static_cast<u32>(pick(3));
    beside_.beforeWrites([this, at](u32 offset) {
      if (offset != at) return;
      beside_.beforeWrites(nullptr);
      beside_.driver().submitInBetween();
      races_++;
    });
  }
  uint64_t races() const { return races_; }
  uint64_t pick(uint64_t n) { return random_() % n; }

 private:
  void recover(Object &object) {
    const uint64_t from = beside_.nowNs();
    beside_.driver().failAndRecover(object, static_cast<enum chip_fault>(pick(4)),
                                    [this](uint64_t ns) { beside_.runFor(ns); });
    fprintf(stderr, "recover %lu us at %lu\n", (beside_.nowNs() - from) / 1000, from / 1000000);
  }
  // A short-lived program of one of those who have more tenants than the fixed ones.
  void come(Driver::Told told) {
    const auto &objects = beside_.driver().objects();
    if (objects.size() > 24) return;
    const int owner = fixed_ + static_cast<int>(pick(3));
    fakes::SimTsg &tsg =
        *beside_.driver()
             .create(owner, told, {.channels = static_cast<unsigned>(1 + pick(3)), .ring_log2 = 6})
             .sim;
    for (size_t i = 0; i < tsg.channelCount(); i++)
      tsg.channel(i).syncLaunch({.duration_ns = 10 * kMicro + pick(200 * kMicro)},
                                5 * kMilli + pick(50 * kMilli));
  }
  // Channels of the kernel's own that nobody opened come and go.
  void kernels() {
    for (const auto &object : beside_.driver().objects())
      if (object->sim && object->owner == Object::kKernel && object->serial > 1) {
        beside_.driver().destroy(*object, Driver::kUnseen);
        return;
      }
    Object &object = beside_.driver().create(Object::kKernel, Driver::kUnseen, {.ring_log2 = 6});
    object.sim->channel().syncLaunch({.duration_ns = 10 * kMicro}, 20 * kMilli);
  }
  Object *some() {
    std::vector<Object *> found;
    for (const auto &object : beside_.driver().objects())
      if (object->sim && object->owner >= fixed_) found.push_back(object.get());
    return found.empty() ? nullptr : found[pick(found.size())];
  }

  Beside &beside_;
  std::mt19937_64 random_;
  int fixed_;
  uint64_t races_ = 0;
};

fakes::SimTsg &saturating(Beside &beside, int tenant, uint64_t kernel_ns) {
  fakes::SimTsg &tsg = *beside.driver().create(tenant, Driver::kHooked, {.ring_log2 = 6}).sim;
  tsg.channel().saturate({.duration_ns = kernel_ns}, 2);
  return tsg;
}

class BesideAnAdversary : public ::testing::TestWithParam<std::tuple<turn_method, int>> {
 protected:
  turn_method method() const { return std::get<0>(GetParam()); }
  uint64_t seed() const { return fakes::seed() + static_cast<uint64_t>(std::get<1>(GetParam())); }
  BesideOptions options() const { return {.seed = seed(), .method = method()}; }
};

TEST_P(BesideAnAdversary, TwoToOneIsTwoToOne) {
  QGPU_TRACE_SEED();
  Beside beside(options());
  Watchdog watchdog(beside);
  const int a = beside.addTenant({.weight = 200}), b = beside.addTenant({.weight = 100});
  for (int i = 0; i < 3; i++) beside.addTenant({.weight = 10});
  saturating(beside, a, kMilli);
  saturating(beside, b, 3 * kMilli);
  beside.start();
  Adversary adversary(beside, seed(), 2);
  adversary.runFor(kSecond, 50 * kMilli);
  const uint64_t from = beside.nowNs(), a_ns = beside.ranNs(a), b_ns = beside.ranNs(b);
  watchdog.forgetLongest();
  adversary.runFor(10 * kSecond, 50 * kMilli);
  const double a_ran = static_cast<double>(beside.ranNs(a) - a_ns);
  const double b_ran = static_cast<double>(beside.ranNs(b) - b_ns);
  EXPECT_NEAR(a_ran / (a_ran + b_ran), 2.0 / 3, 0.01);
  // The others are short jobs, each of which costs a switch.
  EXPECT_GT((a_ran + b_ran) / static_cast<double>(beside.nowNs() - from), 0.7);
  EXPECT_GT(method() == TURN_GATES ? beside.driver().submits() : beside.counters().losses, 20u)
      << "the driver did not submit";
  EXPECT_LT(watchdog.longestNs(), kServedNs) << "the watchdog starves";
}

TEST_P(BesideAnAdversary, AFifthIsAFifth) {
  QGPU_TRACE_SEED();
  Beside beside(options());
  Watchdog watchdog(beside);
  const int a = beside.addTenant(scenario::fixedAt(200'000)), b = beside.addTenant();
  for (int i = 0; i < 3; i++) beside.addTenant({.weight = 10});
  saturating(beside, a, kMilli);
  saturating(beside, b, 3 * kMilli);
  beside.start();
  Adversary adversary(beside, seed(), 2);
  adversary.runFor(kSecond, 50 * kMilli);
  const uint64_t from = beside.nowNs(), a_ns = beside.ranNs(a);
  watchdog.forgetLongest();
  adversary.runFor(10 * kSecond, 50 * kMilli);
  EXPECT_NEAR(
      static_cast<double>(beside.ranNs(a) - a_ns) / static_cast<double>(beside.nowNs() - from), 0.2,
      0.01);
  EXPECT_LT(watchdog.longestNs(), kServedNs) << "the watchdog starves";
}

TEST_P(BesideAnAdversary, NobodyIsLeftStopped) {
  QGPU_TRACE_SEED();
  std::mt19937_64 random(seed());
  BesideOptions options{.seed = random(), .method = method()};
  auto *switches = reinterpret_cast<bool *>(&options.sim.config.sw);
  for (size_t i = 0; i < sizeof(chip_switches); i++) switches[i] = random() % 4 == 0;
  Beside beside(options);
  auto watchdog = std::make_unique<Watchdog>(beside);
  for (int i = 0; i < 3; i++) beside.addTenant({.weight = 1 + static_cast<u32>(random() % 500)});
  beside.start();
  Adversary adversary(beside, seed(), 0);
  for (int i = 0; i < 5 && !HasFailure(); i++) {
    adversary.runFor(4 * kSecond, 10 * kMilli);
    if (i % 2) continue;
    beside.driver().reload();
    beside.runFor(random() % (50 * kMilli));
    watchdog = std::make_unique<Watchdog>(beside);
  }
  // All that exists is asked to compute, and does.
  beside.beforeWrites(nullptr);
  beside.runFor(kSecond);
  std::map<Object *, uint64_t> ran;
  for (const auto &object : beside.driver().objects())
    if (object->sim) {
      object->sim->channel().saturate({.duration_ns = 200 * kMicro}, 2);
      ran[object.get()] = beside.card().runNs(*object->sim);
    }
  beside.runFor(5 * kSecond);
  EXPECT_EQ(beside.lastError(), 0);
  for (const auto &[object, before] : ran)
    EXPECT_GT(beside.card().runNs(*object->sim), before)
        << "TSG " << object->sim->id() << " of " << object->owner << " is stopped";
  EXPECT_LE(beside.longestTurnNs(), kTurnNs);
  if (method() == TURN_IMAGES) {
    EXPECT_GT(adversary.races(), 20u);
  }
}

// What unloading leaves is what the driver made: its list in the slot, its channels as it set them.
TEST_P(BesideAnAdversary, UnloadingLeavesEverythingAsTheDriverSetIt) {
  QGPU_TRACE_SEED();
  Beside beside(options());
  for (int i = 0; i < 3; i++) beside.addTenant();
  beside.start();
  Adversary adversary(beside, seed(), 0);
  adversary.runFor(2 * kSecond, 10 * kMilli);
  beside.beforeWrites(nullptr);
  beside.stop();
  beside.runFor(20 * kMilli);
  auto &card = beside.card();
  EXPECT_EQ(card.read32(CHIP_SCHED_DISABLE), 0u);
  size_t listed = 0;
  for (const auto &object : beside.driver().objects()) {
    if (!object->sim) continue;
    listed += 1 + object->sim->channelCount();
    for (size_t i = 0; i < object->sim->channelCount(); i++) {
      const auto &channel = object->sim->channel(i);
      EXPECT_TRUE(card.channelStatus(channel) & CHIP_CH_ENABLE) << channel.id();
      EXPECT_EQ(card.read32(CHIP_PCCSR + 8u * channel.id()) & CHIP_INST_PTR,
                channel.hwChannel().inst_addr >> 12);
    }
  }
  EXPECT_EQ(card.read32(CHIP_RUNLIST_REGS + CHIP_RUNLIST_SUBMIT), listed);
}

INSTANTIATE_TEST_SUITE_P(Seeds, BesideAnAdversary,
                         ::testing::Combine(::testing::Values(TURN_IMAGES, TURN_GATES),
                                            ::testing::Range(0, 5)),
                         [](const auto &info) {
                           return (std::get<0>(info.param) == TURN_GATES ? "Gates" : "Images") +
                                  std::to_string(std::get<1>(info.param));
                         });

// A driver that submits all the time keeps its list, and shares are kept by gates from then on.
TEST(BesideADriverThatSubmitsAllTheTime, GatesTakeOver) {
  Beside beside({.method = TURN_IMAGES_THEN_GATES});
  const int a = beside.addTenant({.weight = 200}), b = beside.addTenant({.weight = 100});
  saturating(beside, a, kMilli);
  saturating(beside, b, 3 * kMilli);
  beside.start();
  const auto submitsFor = [&](uint64_t ns, uint64_t each_ns) {
    for (const uint64_t end = beside.nowNs() + ns; beside.nowNs() < end;) {
      beside.driver().submit();
      beside.runFor(each_ns);
    }
  };
  submitsFor(3 * kSecond, 10 * kMilli);
  EXPECT_FALSE(turn_uses_gates(beside.scheduler())) << "a hundred a second are borne";
  submitsFor(2 * kSecond, 2 * kMilli);
  EXPECT_TRUE(turn_uses_gates(beside.scheduler()));
  const uint64_t a_ns = beside.ranNs(a), b_ns = beside.ranNs(b);
  submitsFor(10 * kSecond, 2 * kMilli);
  const double a_ran = static_cast<double>(beside.ranNs(a) - a_ns);
  const double b_ran = static_cast<double>(beside.ranNs(b) - b_ns);
  EXPECT_NEAR(a_ran / (a_ran + b_ran), 2.0 / 3, 0.01);
}

// Whoever frees its TSG while its kernel runs, which cannot be cut, is billed for all of the
// kernel.
class FreedWhileItRuns : public ::testing::TestWithParam<turn_method> {};

TEST_P(FreedWhileItRuns, IsBilledToWhoseItWas) {
  Beside beside({.method = GetParam()});
  auto &driver = beside.driver();
  const int a = beside.addTenant({.guarantee_ppm = 800'000}),
            b = beside.addTenant({.ceiling_ppm = 100'000});
  driver.create(a, Driver::kHooked, {.ring_log2 = 6})
      .sim->channel()
      .saturate(fakes::Kernel{.duration_ns = kMilli}, 2);
  beside.start();
  uint64_t from = 0, ran_a = 0, ran_b = 0;
  while (!from || beside.nowNs() < from + 20 * kSecond) {
    auto &object = driver.create(b, Driver::kHooked, {.ring_log2 = 6});
    object.sim->channel().saturate(
        fakes::Kernel{.duration_ns = 50 * kMilli, .preemption = CHIP_WFI}, 1);
    const uint64_t ran = beside.card().runNs(*object.sim);
    while (beside.card().runNs(*object.sim) == ran) beside.runFor(100 * kMicro);
    driver.destroyWhileItRuns(object);
    beside.runFor(51 * kMilli);
    driver.reap();
    if (from || beside.nowNs() < 3 * kSecond) continue;
    from = beside.nowNs(), ran_a = beside.ranNs(a), ran_b = beside.ranNs(b);
  }
  const auto part = [&](int tenant, uint64_t ran) {
    return static_cast<double>(beside.ranNs(tenant) - ran) /
           static_cast<double>(beside.nowNs() - from);
  };
  EXPECT_LT(part(b, ran_b), 0.105);
  EXPECT_GT(part(a, ran_a), 0.88);
  EXPECT_EQ(beside.lastError(), 0);
}

INSTANTIATE_TEST_SUITE_P(By, FreedWhileItRuns, ::testing::Values(TURN_IMAGES, TURN_GATES),
                         [](const auto &info) {
                           return info.param == TURN_GATES ? "Gates" : "Images";
                         });

}  // namespace adversary_test
}  // namespace qgpu::stress
