// SPDX-License-Identifier: GPL-2.0
//
// promises_waits_test.cpp - how long a tenant with work may wait for its turn in mixes where all
// work can be cut: 100 ms, whoever the others are.
#include "scenario/mixes.hpp"
#include "scenario/promise.hpp"

namespace qgpu::scenario {
namespace promises_waits_test {

Member queued(uint32_t weight) { return {.weight = weight}; }
Member syncing(uint32_t weight, uint64_t kernel_us, uint64_t gap_us) {
  return {.kind = Member::kSync,
          .weight = weight,
          .kernel_ns = kernel_us * kMicro,
          .gap_ns = gap_us * kMicro};
}
Member fixedSync(uint32_t percent, uint64_t kernel_us, uint64_t gap_us) {
  Member member = syncing(1, kernel_us, gap_us);
  member.fixed_percent = percent;
  return member;
}

struct Row {
  const char *name;
  Mix mix;
};

class LongestWait : public ::testing::TestWithParam<Row> {};

TEST_P(LongestWait, IsAHundredMs) {
  QGPU_TRACE_SEED();
  const MixResult result = runMix(GetParam().mix, fakes::seed());
  std::printf("%s (%s): longest wait %.1f ms\n", GetParam().name, textOf(GetParam().mix).c_str(),
              static_cast<double>(result.wait_ns) / 1e6);
  EXPECT_LE(result.wait_ns, 100 * kMilli);
}

INSTANTIATE_TEST_SUITE_P(
    Promises, LongestWait,
    ::testing::Values(
        Row{"Queued2", {queued(1), queued(30)}}, Row{"Queued10", Mix(10, queued(1))},
        Row{"OneOfThirtyAmongTen", Mix{queued(30), queued(30), queued(30), queued(30), queued(30),
                                       queued(30), queued(30), queued(30), queued(30), queued(1)}},
        Row{"SyncBesideQueued", {syncing(3, 300, 50), queued(7), queued(1)}},
        Row{"SmallSyncAmongTen",
            Mix{queued(30), queued(30), queued(30), queued(30), queued(30), queued(30), queued(30),
                queued(30), queued(30), syncing(1, 300, 40)}},
        Row{"FixedSyncAndSync",
            {fixedSync(20, 5000, 50), syncing(10, 1000, 50), syncing(1, 400, 20), queued(20)}},
        Row{"FixedSyncBesideSmall",
            {fixedSync(24, 300, 50), queued(30), queued(1), syncing(1, 200, 10)}},
        Row{"RotationBesideLongWindows", drawMix(542)},
        Row{"TwoFixedSync",
            {fixedSync(24, 250, 50), fixedSync(24, 4000, 8), queued(29), queued(1),
             syncing(2, 700, 30)}}),
    [](const auto &info) { return std::string(info.param.name); });

}  // namespace promises_waits_test
}  // namespace qgpu::scenario
