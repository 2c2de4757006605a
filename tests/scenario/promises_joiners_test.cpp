// SPDX-License-Identifier: GPL-2.0
//
// promises_joiners_test.cpp - who joins or wakes has no claim on what was before: never more in its
// first second than its share, one slice and one tail.
#include "scenario/promise.hpp"

namespace qgpu::scenario {
namespace promises_joiners_test {

struct Row {
  const char *name;
  std::vector<uint32_t> weights;
  size_t wakers;  // the first so many sleep and wake, the others always have work
  uint64_t on_ns, off_ns;
  bool uncuttable;  // the wakers' kernels of 20 ms
};

// Shares follow within two cycles, or 20 ms and one, of a change: until then another that woke has
// not made the share of @i smaller.
std::vector<bench::Claimant> seenBy(size_t i, std::vector<bench::Claimant> claimants,
                                    uint64_t latency_ns) {
  for (size_t j = 0; j < claimants.size(); j++)
    if (j != i)
      for (bench::Span &span : claimants[j].awake)
        span.from_ns = std::min(span.from_ns + latency_ns, span.to_ns);
  return claimants;
}

class Waker : public ::testing::TestWithParam<Row> {};

TEST_P(Waker, HasNoMoreThanItsShareASliceAndATailInItsFirstSecond) {
  QGPU_TRACE_SEED();
  const Row &row = GetParam();
  World world({.seed = fakes::seed()});
  std::vector<std::unique_ptr<Work>> works;
  const fakes::Kernel kernel = {
      .duration_ns = 20 * kMilli,
      .preemption = row.uncuttable ? uint32_t{CHIP_WFI} : uint32_t{CHIP_CILP}};
  for (size_t i = 0; i < row.weights.size(); i++) {
    works.push_back(
        std::make_unique<Work>(world, world.addTenant({.weight = 100 * row.weights[i]})));
    if (i < row.wakers)
      works[i]->bursts(kernel, row.on_ns, row.off_ns, fakes::seed() + i);
    else
      works[i]->queued({.duration_ns = kMilli}, 2);
  }
  world.start();
  std::vector<uint64_t> slices(row.weights.size());
  uint64_t latency_ns = 0;
  const uint64_t begin = world.nowNs() + kSecond, end = begin + 40 * kSecond;
  while (world.nowNs() < end) {
    world.runFor(10 * kMilli);
    const uint64_t cycle_ns = turn_cycle_ns(world.scheduler()) + row.weights.size() * kSwitchNs;
    latency_ns = std::max({latency_ns, 2 * cycle_ns, 20 * kMilli + cycle_ns});
    for (size_t i = 0; i < row.wakers; i++)
      slices[i] = std::max<uint64_t>(slices[i], world.tenant(i).core.cycle_slice_ns);
  }
  const Verdict verdict(world, begin, end);
  std::vector<bench::Claimant> claimants;
  std::vector<bench::Spans> ran;
  for (size_t i = 0; i < row.weights.size(); i++) {
    claimants.push_back({static_cast<double>(row.weights[i]), false, works[i]->spans()});
    ran.push_back(verdict.ran(i));
  }
  const auto edges = bench::edgesOf(ran);
  double most = -1e18;
  size_t wakes = 0;
  for (size_t i = 0; i < row.wakers; i++) {
    const auto steps =
        bench::entitlements(seenBy(i, claimants, latency_ns), bench::Entitled::kByWeight);
    const bench::Case party(verdict.record(), i, edges, steps[i], bench::Entitled::kByWeight, begin,
                            end);
    // And what the cut of a rotation may be misjudged by: a visit's begin lies between two looks.
    const uint64_t allowed = std::max(slices[i], 2 * kSwitchNs) + 2 * World::params().sample_ns +
                             (row.uncuttable ? kernel.duration_ns : 0);
    for (const uint64_t wake : works[i]->wakes()) {
      if (wake < begin || wake + kSecond > end) continue;
      const double excess = static_cast<double>(verdict.record().run(i, wake, wake + kSecond)) -
                            party.entitledNs(wake, wake + kSecond);
      most = std::max(most, excess - static_cast<double>(allowed));
      wakes++;
      EXPECT_LE(excess, static_cast<double>(allowed)) << "tenant " << i << " at " << wake;
    }
  }
  std::printf("%s: %zu wakes, %.2f ms below what is allowed at the most\n", row.name, wakes,
              -most / 1e6);
  EXPECT_GT(wakes, 5u);
}

INSTANTIATE_TEST_SUITE_P(
    Promises, Waker,
    ::testing::Values(
        Row{"1of2", {1, 1}, 1, 300 * kMilli, 300 * kMilli, false},
        Row{"1of4", {1, 1, 1, 1}, 1, 200 * kMilli, 300 * kMilli, false},
        Row{"1of8", std::vector<uint32_t>(8, 1), 1, 150 * kMilli, 400 * kMilli, false},
        Row{"3of8", std::vector<uint32_t>(8, 1), 3, 150 * kMilli, 400 * kMilli, false},
        Row{"90beside10", {9, 1}, 1, 600 * kMilli, 300 * kMilli, false},
        Row{"8of16", std::vector<uint32_t>(16, 1), 8, 80 * kMilli, 400 * kMilli, false},
        Row{"1of2Uncuttable", {1, 1}, 1, 300 * kMilli, 300 * kMilli, true},
        Row{"1of8Uncuttable", std::vector<uint32_t>(8, 1), 1, 150 * kMilli, 400 * kMilli, true},
        Row{"90beside10Uncuttable", {9, 1}, 1, 600 * kMilli, 300 * kMilli, true},
        Row{"1beside99", {1, 99}, 1, 40 * kMilli, 300 * kMilli, false}),
    [](const auto &info) { return std::string(info.param.name); });

// A newcomer: its tenant and TSG appear while the others run.
TEST(JoinerPromise, ANewcomerHasItsShareFromNowOn) {
  for (const unsigned others : {1u, 3u, 7u}) {
    World world;
    for (unsigned i = 0; i < others; i++) world.addTenant().saturate({.duration_ns = kMilli}, 2);
    world.start();
    world.runFor(3 * kSecond);
    auto &joiner = world.addTenant();
    joiner.saturate({.duration_ns = kMilli}, 2);
    world.apply();
    const uint64_t joined = world.nowNs();
    const Verdict verdict = watch(world, 0, kSecond);
    const double share = 1.0 / (others + 1);
    const double got = static_cast<double>(verdict.runNs(joiner.index));
    const double all = static_cast<double>(verdict.record().delivered(joined, world.nowNs()));
    EXPECT_LE(got, share * all + static_cast<double>(joiner.core.cycle_slice_ns)) << others;
    EXPECT_GE(got, 0.93 * share * all) << others;
  }
}

}  // namespace promises_joiners_test
}  // namespace qgpu::scenario
