// SPDX-License-Identifier: GPL-2.0
//
// shares.cpp - worst share error of saturating tenants over every second, and what is delivered
//
// Grid: 2, 4, 8, 16, 64 tenants x r:1 for r = 1 ... 99 (half of them at r; one at r) x kernels of
// 10 us, 1 ms, 50 ms, 1 s that can be cut. Each cell: one second to settle, then every window of
// 1.000 ... 1.030 s at any start within the rest of the simulated time, by the chip's own record.
// Two threads; an argument N runs only every N-th r (the whole grid is the default).
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <thread>

#include "scenario/world.hpp"

namespace {

using namespace qgpu::scenario;

constexpr uint64_t kKernels[] = {10 * kMicro, kMilli, 50 * kMilli, kSecond};
constexpr double kBarPp = 0.6, kSwitchNs = 100e3, kSmoothNs = 5e6;

struct Row {
  unsigned tenants, ratio;
  bool half;  // half of the tenants at r, else one
  double cycle_ms = 0, bound_pp = 0;
  bool bar = false;  // C_smooth >= 19 * M * s: held to kBarPp
  double error_pp[4] = {}, delivered[4] = {};
};

// What a window of a second may show of whole cycles depends on their number, not on how many
// seconds are watched; the phase moves through all positions within a few.
uint64_t watchedNs(unsigned tenants) { return (tenants > 16 ? 2 : 3) * kSecond; }

void runCell(Row &row, size_t k) {
  WorldOptions options;
  options.seed = row.tenants * 1000 + row.ratio * 10 + row.half * 5 + k;
  World world(options);
  std::vector<double> shares;
  double weights = 0;
  const unsigned heavy = row.half ? row.tenants / 2 : 1;
  for (unsigned i = 0; i < row.tenants; i++) {
    const uint32_t weight = 100 * (i < heavy ? row.ratio : 1);
    world.addTenant({.weight = weight}).saturate({.duration_ns = kKernels[k]}, 2);
    shares.push_back(weight);
    weights += weight;
  }
  double spread = 0;
  for (double &share : shares) {
    share /= weights;
    spread = std::max(spread, share * (1 - share));
  }
  world.start();
  const uint64_t begin = world.nowNs() + kSecond;
  world.runTo(begin);
  const chip_totals before = world.card().totals();
  const uint64_t end = begin + watchedNs(row.tenants);
  world.runTo(end);
  const chip_totals after = world.card().totals();

  const Record record = world.record();
  double worst = 0;
  for (unsigned i = 0; i < row.tenants; i++)
    worst = std::max(
        worst, record.worstShareError(
                   i, shares[i], begin, std::min(end, world.nowNs()),
                   {1000 * kMilli, 1007 * kMilli, 1015 * kMilli, 1022 * kMilli, 1030 * kMilli}));
  const double lost = row.tenants * kSwitchNs;
  const double cycle = static_cast<double>(turn_cycle_ns(world.scheduler()));
  row.error_pp[k] = worst;
  row.delivered[k] = 100.0 * static_cast<double>(after.run_ns - before.run_ns) /
                     static_cast<double>(world.nowNs() - begin);
  if (k == 0) {
    row.cycle_ms = cycle / 1e6;
    row.bound_pp = spread * (cycle + lost) / 1e9 * 100;
    row.bar = kSmoothNs / spread - lost >= 19 * lost;
  }
}

}  // namespace

int main(int argc, char **argv) {
  const unsigned step = argc > 1 ? static_cast<unsigned>(std::max(1, std::atoi(argv[1]))) : 1;
  std::vector<Row> rows;
  for (const unsigned tenants : {2u, 4u, 8u, 16u, 64u})
    for (const bool half : {true, false})
      for (unsigned ratio = 1; ratio <= 99; ratio += step)
        rows.push_back(Row{.tenants = tenants, .ratio = ratio, .half = half});

  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t cell; (cell = next++) < rows.size() * 4;) runCell(rows[cell / 4], cell % 4);
  };
  std::thread other(work);
  work();
  other.join();

  std::printf("%7s %5s %6s %9s %9s %6s   %s   %s\n", "tenants", "at r", "ratio", "C ms", "bound pp",
              "bar", "worst error pp: 10us    1ms   50ms     1s",
              "delivered %: 10us    1ms   50ms     1s");
  double worst_bar = 0, worst_over = -1;
  int failed = 0;
  for (const Row &row : rows) {
    std::printf("%7u %5s %4u:1 %9.2f %9.3f %6s  ", row.tenants, row.half ? "half" : "one",
                row.ratio, row.cycle_ms, row.bound_pp, row.bar ? "0.6" : "bound");
    for (const double e : row.error_pp) {
      const double limit = row.bar ? kBarPp : row.bound_pp;
      std::printf(" %s%6.3f", e > limit ? "!" : " ", e);
      failed += e > limit;
      if (row.bar)
        worst_bar = std::max(worst_bar, e);
      else
        worst_over = std::max(worst_over, e - row.bound_pp);
    }
    std::printf("  ");
    for (const double d : row.delivered) std::printf(" %6.2f", d);
    std::printf("\n");
  }
  std::printf(
      "%zu cells; beyond their limit: %d; in the cells without the bar the worst error is "
      "%.3f pp %s their bound\n",
      rows.size() * 4, failed, std::abs(worst_over), worst_over > 0 ? "above" : "below");
  std::printf("shares: worst=%.3f pp\n", worst_bar);
  return failed != 0;
}
