// SPDX-License-Identifier: GPL-2.0
//
// scale_test.cpp - a card with as many channels as it can have: 200 tenants with 4,000 channels, of
// whom two always have work, and a tenant that makes and frees channels all the time. Shares hold,
// and what a turn costs does not grow with who merely exists.
#include "stress/beside.hpp"

namespace qgpu::stress {
namespace scale_test {

constexpr int kTenants = 200;
constexpr unsigned kChannels = 20;  // of each tenant, in one TSG

class Scale : public ::testing::TestWithParam<turn_method> {};

struct Crowd {
  explicit Crowd(turn_method method, int tenants) : beside({.method = method, .channels = 4096}) {
    for (int i = 0; i < tenants; i++) {
      const int tenant = beside.addTenant({.weight = i == 0 ? 200u : 100u});
      auto &object =
          beside.driver().create(tenant, Driver::kHooked, {.channels = kChannels, .ring_log2 = 4});
      if (i < 2) object.sim->channel().saturate(fakes::Kernel{.duration_ns = kMilli}, 2);
    }
    beside.start();
    beside.runFor(2 * kSecond);
  }
  // The first tenant's part of what both did.
  double part(uint64_t ns) {
    const uint64_t a = beside.ranNs(0), b = beside.ranNs(1);
    beside.runFor(ns);
    const auto ran_a = static_cast<double>(beside.ranNs(0) - a);
    return ran_a / (ran_a + static_cast<double>(beside.ranNs(1) - b));
  }
  double accessesASecond() {
    const uint64_t from = beside.accesses();
    beside.runFor(kSecond);
    return static_cast<double>(beside.accesses() - from);
  }

  Beside beside;
};

TEST_P(Scale, SharesHoldAmongFourThousandChannels) {
  Crowd crowd(GetParam(), kTenants);
  EXPECT_NEAR(crowd.part(10 * kSecond), 2.0 / 3, 0.01);
  EXPECT_EQ(crowd.beside.lastError(), 0);
}

// Whoever sleeps is looked at round robin: so many channels a look, not all of them.
TEST_P(Scale, WhoSleepsCostsNoMoreWhenThereAreManyOfThem) {
  const double few = Crowd(GetParam(), kTenants / 10).accessesASecond();
  const double many = Crowd(GetParam(), kTenants).accessesASecond();
  EXPECT_LT(many, 1.2 * few);
}

// One that wakes among them is seen within a round of that: 4,000 channels, 64 a look of half a
// millisecond at most, and has its turn after.
TEST_P(Scale, WhoWakesAmongThemIsServed) {
  Crowd crowd(GetParam(), kTenants);
  auto &objects = crowd.beside.driver().objects();
  fakes::SimChannel &last = objects.back()->sim->channel(kChannels - 1);
  const uint64_t from = crowd.beside.nowNs();
  last.saturate(fakes::Kernel{.duration_ns = kMilli}, 2);
  while (!last.completed() && crowd.beside.nowNs() < from + kSecond) crowd.beside.runFor(kMilli);
  EXPECT_LT(crowd.beside.nowNs() - from, 150 * kMilli);
}

// Fifty TSGs made and fifty freed a second, each with work at once, are within their tenant's
// share.
TEST_P(Scale, AChurningTenantGetsNoMoreThanItsShare) {
  QGPU_TRACE_SEED();
  std::mt19937_64 random(fakes::seed());
  Beside beside({.method = GetParam()});
  const int a = beside.addTenant({.weight = 200}), b = beside.addTenant({.weight = 100}),
            churner = beside.addTenant({.weight = 100});
  for (const int tenant : {a, b})
    beside.driver()
        .create(tenant, Driver::kHooked, {.ring_log2 = 6})
        .sim->channel()
        .saturate(fakes::Kernel{.duration_ns = kMilli}, 2);
  beside.start();
  beside.runFor(kSecond);
  const uint64_t from = beside.nowNs();
  const std::vector<uint64_t> ran = {beside.ranNs(a), beside.ranNs(b), beside.ranNs(churner)};
  std::vector<Object *> made;
  while (beside.nowNs() < from + 10 * kSecond) {
    auto &object = beside.driver().create(churner, Driver::kHooked, {.ring_log2 = 4});
    object.sim->channel().saturate(fakes::Kernel{.duration_ns = kMilli}, 2);
    made.push_back(&object);
    beside.runFor(random() % (20 * kMilli));
    if (made.size() < 4) continue;
    const size_t gone = random() % made.size();
    beside.driver().destroy(*made[gone], Driver::kHooked);
    made.erase(made.begin() + static_cast<std::ptrdiff_t>(gone));
    beside.runFor(random() % (20 * kMilli));
  }
  const auto wall = static_cast<double>(beside.nowNs() - from);
  const auto part = [&](int tenant) {
    return static_cast<double>(beside.ranNs(tenant) - ran[static_cast<size_t>(tenant)]) / wall;
  };
  EXPECT_LT(part(churner), 0.26);
  EXPECT_NEAR(part(a) / part(b), 2, 0.06);
  EXPECT_GT(part(a) + part(b) + part(churner), 0.9);
}

INSTANTIATE_TEST_SUITE_P(By, Scale, ::testing::Values(TURN_IMAGES, TURN_GATES),
                         [](const auto &info) {
                           return info.param == TURN_GATES ? "Gates" : "Images";
                         });

}  // namespace scale_test
}  // namespace qgpu::stress
