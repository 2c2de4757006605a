// SPDX-License-Identifier: GPL-2.0
//
// list_changes_test.cpp - the proof that images can be switched under a rotation: the driver
// changes its list at random instants, every submit ends the running slice and restarts at the
// first entry, and still nobody is starved or favoured (theory.rst, ROUNDS).
#include <gtest/gtest.h>

#include <cstdlib>

#include "scenario/world.hpp"

namespace qgpu::scenario {
namespace list_changes_test {

uint64_t seedOfRun() {
  const char *given = std::getenv("QGPU_SEED");
  const uint64_t seed = given ? std::strtoull(given, nullptr, 0) : 20240607;
  std::printf("seed %llu (QGPU_SEED sets it)\n", static_cast<unsigned long long>(seed));
  return seed;
}

struct Row {
  const char *name;
  uint64_t kernel_a_ns, kernel_b_ns, mean_change_ns;
};

class ListChanges : public ::testing::TestWithParam<Row> {};

TEST_P(ListChanges, KeepTwoToOneAndStarveNobody) {
  const Row &row = GetParam();
  std::mt19937_64 random(seedOfRun());
  World world({.seed = random()});
  auto &a = world.addTenant({.weight = 200});
  auto &b = world.addTenant({.weight = 100});
  a.saturate({.duration_ns = row.kernel_a_ns});
  b.saturate({.duration_ns = row.kernel_b_ns});
  world.start();
  const uint64_t begin = world.nowNs() + kSecond, end = begin + 10 * kSecond;
  world.runToWithListChanges(end, row.mean_change_ns, random);

  // The bound of the rotation, and 4 sigma of what is not known of where it was cut: a visit's
  // begin lies between two looks (theory.rst, ROUNDS), and each of the visits of a second is cut at
  // most once. The worst of all windows is asked for, so 3 sigma would be passed by every fifth
  // run.
  const double cycle = static_cast<double>(turn_cycle_ns(world.scheduler())) + 2 * 100e3;
  const double visits = 2 * 1e9 / cycle;
  const double walk = 4 * std::sqrt(visits) * 500e3 / std::sqrt(12.0);
  const double bound = (2.0 / 9 * cycle + walk) / 1e9 * 100;
  const Record record = world.record();
  const double worst =
      record.worstShareError(a.index, 2.0 / 3, begin, end, Record::aboutOneSecond());
  const double mean = 100.0 * static_cast<double>(record.run(a.index, begin, end)) /
                      static_cast<double>(record.delivered(begin, end));
  std::printf("%s: %llu submits, a has %.3f %% over 10 s, worst second %.3f pp (bound %.3f)\n",
              row.name, static_cast<unsigned long long>(world.card().totals().submits), mean, worst,
              bound);
  EXPECT_LE(worst, bound);
  EXPECT_NEAR(mean, 66.667, 0.2);
  // A wait is the other's slice, the switches, and what a cut may have been misjudged by.
  EXPECT_LE(record.longestGap(b.index, begin, end), cycle * 2 / 3 + 1.5e6);
  EXPECT_LE(record.longestGap(a.index, begin, end), cycle / 3 + 1.5e6);
  EXPECT_TRUE(world.card().protocolErrors().empty()) << world.card().protocolErrors().front();
  EXPECT_EQ(world.lastError(), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, ListChanges,
    ::testing::Values(Row{"10 us, 10 ms apart", 10 * kMicro, 10 * kMicro, 10 * kMilli},
                      Row{"50 ms, 10 ms apart", 50 * kMilli, 50 * kMilli, 10 * kMilli},
                      Row{"10 us and 50 ms, 10 ms apart", 10 * kMicro, 50 * kMilli, 10 * kMilli},
                      Row{"50 ms and 10 us, 1 ms apart", 50 * kMilli, 10 * kMicro, 1 * kMilli},
                      Row{"10 us, 100 ms apart", 10 * kMicro, 10 * kMicro, 100 * kMilli}),
    [](const auto &info) { return "Row" + std::to_string(info.index); });

// The worst of patterns for a list that always begins with the same entry: changes come faster
// than a slice lasts.
TEST(ListChangesAtEqualDistance, DoNotFeedTheFirstEntry) {
  for (const uint64_t distance : {500 * kMicro, 3 * kMilli, 9'500 * kMicro}) {
    World world;
    auto &a = world.addTenant(), &b = world.addTenant();
    a.saturate({.duration_ns = kMilli});
    b.saturate({.duration_ns = kMilli});
    world.start();
    const uint64_t begin = world.nowNs() + kSecond, end = begin + 5 * kSecond;
    while (world.nowNs() < end) {
      world.runFor(distance);
      world.changeList();
    }
    const Record record = world.record();
    const double share = static_cast<double>(record.run(a.index, begin, end)) /
                         static_cast<double>(record.delivered(begin, end));
    EXPECT_NEAR(share, 0.5, 0.005) << "every " << distance << " ns";
    EXPECT_LE(record.longestGap(b.index, begin, end), 12 * kMilli);
  }
}

}  // namespace list_changes_test
}  // namespace qgpu::scenario
