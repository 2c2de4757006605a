// SPDX-License-Identifier: GPL-2.0
//
// promises_sync_test.cpp - tenants that launch a kernel, wait for it and think for a moment: each
// gap would hand the rest of a slice away.
#include "scenario/promise.hpp"

namespace qgpu::scenario {
namespace promises_sync_test {

struct Sync {
  uint64_t kernel_ns;
  double delivered;
};

// 30 % launch-and-sync (tenant 0) beside 70 % queued, watched for ten seconds.
Verdict besideQueued(uint64_t kernel_ns, uint64_t from_ns = 200 * kMilli) {
  World world({.seed = fakes::seed()});
  auto &a = world.addTenant({.weight = 30}), &b = world.addTenant({.weight = 70});
  a.channel().syncLaunch({.duration_ns = kernel_ns}, 50 * kMicro);
  b.saturate({.duration_ns = kMilli});
  world.start();
  return watch(world, from_ns, 10 * kSecond);
}

class SyncBesideQueued : public ::testing::TestWithParam<Sync> {};

TEST_P(SyncBesideQueued, HasThirtyPercentOverTenSeconds) {
  QGPU_TRACE_SEED();
  const Verdict verdict = besideQueued(GetParam().kernel_ns);
  std::printf("kernels of %llu us: %.2f %%, delivered %.2f %%\n",
              static_cast<unsigned long long>(GetParam().kernel_ns / kMicro), verdict.percent(0),
              verdict.delivered());
  EXPECT_NEAR(verdict.percent(0), 30, 1);
  EXPECT_GE(verdict.delivered(), GetParam().delivered);
}

INSTANTIATE_TEST_SUITE_P(Promises, SyncBesideQueued,
                         ::testing::Values(Sync{100 * kMicro, 84}, Sync{300 * kMicro, 92},
                                           Sync{kMilli, 95}, Sync{5 * kMilli, 96},
                                           Sync{20 * kMilli, 96}),
                         [](const auto &info) {
                           return std::to_string(info.param.kernel_ns / kMicro) + "us";
                         });

struct Smooth {
  uint64_t kernel_ns, from_ns;
  double worst_pp;
};

class SmoothSync : public ::testing::TestWithParam<Smooth> {};

TEST_P(SmoothSync, HasThirtyPercentOfEvery100Ms) {
  QGPU_TRACE_SEED();
  const Smooth &row = GetParam();
  const double worst =
      besideQueued(row.kernel_ns, row.from_ns).worstPp(0, 0.3, about(100 * kMilli));
  std::printf("kernels of %llu us: worst of 100 ms off by %.2f pp\n",
              static_cast<unsigned long long>(row.kernel_ns / kMicro), worst);
  EXPECT_LE(worst, row.worst_pp);
}

// While it is not known, kernels of 5 and 20 ms end a fourth to eighth of a slice early, and it is
// behind by no more after 200 ms than whoever fits may be: theory.rst, SHORT VISITS, says that no
// rule can tell by that then, and by how much it may be off: 6.9 and 7.9 pp.
const auto inUs = [](const auto &info) { return std::to_string(info.param / kMicro) + "us"; };
const auto smoothly = [](const auto &info) {
  return std::to_string(info.param.kernel_ns / kMicro) + "usFrom" +
         std::to_string(info.param.from_ns / kMilli) + "ms";
};
INSTANTIATE_TEST_SUITE_P(
    Promises, SmoothSync,
    ::testing::Values(Smooth{100 * kMicro, 200 * kMilli, 5}, Smooth{300 * kMicro, 200 * kMilli, 5},
                      Smooth{kMilli, 200 * kMilli, 5}, Smooth{5 * kMilli, 200 * kMilli, 6.9},
                      Smooth{5 * kMilli, kSecond, 5}, Smooth{20 * kMilli, 200 * kMilli, 7.9},
                      Smooth{20 * kMilli, kSecond, 5}),
    smoothly);
// Weights 4:3:2:1, all of them launch-and-sync.
class AllSync : public ::testing::TestWithParam<uint64_t> {};

TEST_P(AllSync, KeepTheOrderAndTheWeights) {
  QGPU_TRACE_SEED();
  World world({.seed = fakes::seed()});
  for (const uint32_t weight : {400u, 300u, 200u, 100u})
    world.addTenant({.weight = weight})
        .channel()
        .syncLaunch({.duration_ns = GetParam()}, 50 * kMicro);
  world.start();
  const Verdict verdict = watch(world, 2 * kSecond, 10 * kSecond);
  std::printf("kernels of %llu us: %.2f %.2f %.2f %.2f %%, delivered %.2f %%\n",
              static_cast<unsigned long long>(GetParam() / kMicro), verdict.percent(0),
              verdict.percent(1), verdict.percent(2), verdict.percent(3), verdict.delivered());
  for (size_t i = 0; i < 4; i++) {
    EXPECT_NEAR(verdict.percent(i), 40.0 - 10.0 * static_cast<double>(i), 1.5) << i;
    if (i) {
      EXPECT_LT(verdict.percent(i), verdict.percent(i - 1)) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Promises, AllSync,
                         ::testing::Values(100 * kMicro, 300 * kMicro, kMilli, 5 * kMilli,
                                           20 * kMilli),
                         inUs);

// Row 1, the other half: 10:90 with launch-and-sync, either of them and both.
struct Pair {
  const char *name;
  bool a, b;  // is it launch-and-sync?
};
class TenToNinety : public ::testing::TestWithParam<Pair> {};

TEST_P(TenToNinety, HoldsInEverySecond) {
  QGPU_TRACE_SEED();
  World world({.seed = fakes::seed()});
  auto &a = world.addTenant({.weight = 10}), &b = world.addTenant({.weight = 90});
  for (const auto &[tenant, sync] : {std::pair{&a, GetParam().a}, std::pair{&b, GetParam().b}})
    if (sync)
      tenant->channel().syncLaunch({.duration_ns = 500 * kMicro}, 50 * kMicro);
    else
      tenant->saturate({.duration_ns = 500 * kMicro});
  world.start();
  const Verdict verdict = watch(world, 2 * kSecond, 8 * kSecond);
  const double worst = verdict.worstPp(a.index, 0.1, about(kSecond));
  std::printf("%s: %.2f %%, worst second off by %.2f pp\n", GetParam().name,
              verdict.percent(a.index), worst);
  EXPECT_LE(worst, 1);
}

const auto byName = [](const auto &info) { return std::string(info.param.name); };
INSTANTIATE_TEST_SUITE_P(Promises, TenToNinety,
                         ::testing::Values(Pair{"Row1_QueuedBesideSync", false, true},
                                           Pair{"Row1_SyncBesideQueued", true, false},
                                           Pair{"Row1_BothSync", true, true}),
                         byName);

}  // namespace promises_sync_test
}  // namespace qgpu::scenario
