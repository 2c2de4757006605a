// SPDX-License-Identifier: GPL-2.0
#include <gtest/gtest.h>

#include <random>

#include "unit/core_bench.hpp"

namespace qgpu::core_bench {
namespace check_test {

const core_params kParams = params();

core_settings settings() {
  core_settings s;
  core_settings_default(&s);
  return s;
}

struct Refused {
  const char *name;
  core_policy policy;
  void (*change)(core_settings &);
  int error;
  core_field field;
};

class CheckRefuses : public ::testing::TestWithParam<Refused> {};

TEST_P(CheckRefuses, NamesTenantAndField) {
  const Refused &row = GetParam();
  std::vector<core_settings> all(3, settings());
  // Under fixed-share with shares, so that only the change is wrong.
  for (auto &s : all) s.guarantee_ppm = 100'000;
  row.change(all[1]);
  core_refusal refusal;
  EXPECT_EQ(core_check(&kParams, row.policy, 0, all.data(), 3, &refusal), row.error) << row.name;
  EXPECT_EQ(refusal.error, row.error);
  if (!row.error) return;
  EXPECT_EQ(refusal.tenant, 1u);
  EXPECT_EQ(refusal.field, row.field) << row.name;
  EXPECT_EQ(core_check(&kParams, row.policy, 0, all.data(), 3, nullptr), row.error);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, CheckRefuses,
    ::testing::Values(
        Refused{"weight 0", CORE_BURST_SHARE, [](core_settings &s) { s.weight = 0; }, -ERANGE,
                CORE_FIELD_WEIGHT},
        Refused{"weight 10001", CORE_BURST_SHARE, [](core_settings &s) { s.weight = 10'001; },
                -ERANGE, CORE_FIELD_WEIGHT},
        Refused{"weight 10000", CORE_BURST_SHARE, [](core_settings &s) { s.weight = 10'000; }, 0,
                CORE_FIELD_NONE},
        Refused{"guarantee over the whole", CORE_BURST_SHARE,
                [](core_settings &s) { s.guarantee_ppm = CORE_PPM + 1; }, -ERANGE,
                CORE_FIELD_GUARANTEE},
        Refused{"ceiling 0", CORE_FIXED_SHARE, [](core_settings &s) { s.ceiling_ppm = 0; }, -ERANGE,
                CORE_FIELD_CEILING},
        Refused{"ceiling below the guarantee", CORE_FIXED_SHARE,
                [](core_settings &s) { s.ceiling_ppm = 99'999; }, -ERANGE, CORE_FIELD_CEILING},
        Refused{"ceiling under burst-share", CORE_BURST_SHARE,
                [](core_settings &s) { s.ceiling_ppm = 500'000; }, 0, CORE_FIELD_NONE},
        Refused{"ceiling equal to the guarantee under fixed-share", CORE_FIXED_SHARE,
                [](core_settings &s) { s.ceiling_ppm = 100'000; }, 0, CORE_FIELD_NONE},
        Refused{"ceiling without a share under fixed-share", CORE_FIXED_SHARE,
                [](core_settings &s) {
                  s.guarantee_ppm = 0;
                  s.ceiling_ppm = 100'000;
                },
                0, CORE_FIELD_NONE},
        Refused{"wake", CORE_BURST_SHARE, [](core_settings &s) { s.wake_ns = 2300 * kMicro; }, 0,
                CORE_FIELD_NONE},
        Refused{"wake in windows", CORE_FIXED_SHARE, [](core_settings &s) { s.wake_ns = kMilli; },
                -EOPNOTSUPP, CORE_FIELD_WAKE},
        Refused{"wake of three that take 300 us to switch", CORE_BURST_SHARE,
                [](core_settings &s) { s.wake_ns = 2299 * kMicro; }, -ENOSPC, CORE_FIELD_WAKE},
        Refused{"wake of online below 200 us and two switches", CORE_BURST_SHARE,
                [](core_settings &s) {
                  s.class_ = CORE_ONLINE;
                  s.wake_ns = 399 * kMicro;
                },
                -ENOSPC, CORE_FIELD_WAKE},
        Refused{"wake of online", CORE_BURST_SHARE,
                [](core_settings &s) {
                  s.class_ = CORE_ONLINE;
                  s.wake_ns = 400 * kMicro;
                },
                0, CORE_FIELD_NONE},
        Refused{"wake that is none", CORE_BURST_SHARE,
                [](core_settings &s) { s.wake_ns = 11 * kSecond; }, -ERANGE, CORE_FIELD_WAKE},
        Refused{"anything under best-effort", CORE_BEST_EFFORT,
                [](core_settings &s) {
                  s.wake_ns = kMicro;
                  s.class_ = CORE_OFFLINE;
                },
                0, CORE_FIELD_NONE},
        Refused{"online", CORE_BURST_SHARE, [](core_settings &s) { s.class_ = CORE_ONLINE; }, 0,
                CORE_FIELD_NONE},
        Refused{"offline in windows", CORE_FIXED_SHARE,
                [](core_settings &s) { s.class_ = CORE_OFFLINE; }, -EOPNOTSUPP, CORE_FIELD_CLASS},
        Refused{"online in windows", CORE_EQUAL_SHARE,
                [](core_settings &s) { s.class_ = CORE_ONLINE; }, -EOPNOTSUPP, CORE_FIELD_CLASS},
        Refused{"no such class", CORE_BURST_SHARE,
                [](core_settings &s) { s.class_ = static_cast<core_class>(3); }, -ERANGE,
                CORE_FIELD_CLASS},
        Refused{"hang", CORE_FIXED_SHARE, [](core_settings &s) { s.hang_ns = kSecond; }, 0,
                CORE_FIELD_NONE},
        Refused{"hang of two hours", CORE_BURST_SHARE,
                [](core_settings &s) { s.hang_ns = 7200 * kSecond; }, -ERANGE, CORE_FIELD_HANG}),
    [](const auto &info) { return "Row" + std::to_string(info.index); });

TEST(Check, NamesTheTenantWithWhomTheSumPassesTheWhole) {
  std::vector<core_settings> all(4, settings());
  all[0].guarantee_ppm = 500'000;
  all[1].guarantee_ppm = 500'000;
  core_refusal refusal;
  for (const core_policy policy : {CORE_BURST_SHARE, CORE_FIXED_SHARE, CORE_BEST_EFFORT})
    EXPECT_EQ(core_check(&kParams, policy, 0, all.data(), 4, &refusal), 0);
  all[2].guarantee_ppm = 1;
  EXPECT_EQ(core_check(&kParams, CORE_BURST_SHARE, 0, all.data(), 4, &refusal), -ENOSPC);
  EXPECT_EQ(refusal.tenant, 2u);
  EXPECT_EQ(refusal.field, CORE_FIELD_GUARANTEE);
  EXPECT_EQ(refusal.sum_ppm, 1'000'001u);
}

TEST(Check, RefusesWhatTheCardCannotDo) {
  const core_settings one = settings();
  core_refusal refusal;
  EXPECT_EQ(core_check(&kParams, CORE_EQUAL_SHARE, 0, &one, 1, &refusal), 0);
  core_settings early = one;
  early.class_ = CORE_ONLINE;
  early.wake_ns = 300 * kMicro;
  EXPECT_EQ(core_check(&kParams, CORE_BURST_SHARE, 0, &early, 1, &refusal), -ENOSPC);
  EXPECT_EQ(refusal.field, CORE_FIELD_WAKE);
  EXPECT_EQ(refusal.tenant, 0u);
  EXPECT_EQ(refusal.bound.ns, 400 * kMicro);
  EXPECT_EQ(core_check(&kParams, static_cast<core_policy>(4), 0, &one, 1, &refusal), -ERANGE);
  EXPECT_EQ(refusal.field, CORE_FIELD_POLICY);
  EXPECT_EQ(core_check(&kParams, CORE_BURST_SHARE, 1, &one, 1, &refusal), -ERANGE);
  EXPECT_EQ(refusal.field, CORE_FIELD_CYCLE);
  EXPECT_EQ(core_check(&kParams, CORE_BURST_SHARE, 2 * kSecond, &one, 1, &refusal), -ERANGE);
  EXPECT_EQ(core_check(&kParams, CORE_BURST_SHARE, 30 * kMilli, &one, 1, &refusal), 0);
  EXPECT_EQ(core_check(&kParams, CORE_BURST_SHARE, 0, nullptr, 0, &refusal), 0);
}

// A card of one who asks and two others, the second of whom is changed.
struct Bound {
  const char *name;
  void (*change)(core_settings &asks, core_settings &other);
  u64 ns;  // the shortest wait that can be promised; U64_MAX = none
  core_hindrance by;
};

class CheckBounds : public ::testing::TestWithParam<Bound> {};

TEST_P(CheckBounds, IsTheShortestWaitThatIsTaken) {
  const Bound &row = GetParam();
  std::vector<core_settings> all(3, settings());
  row.change(all[0], all[1]);
  core_refusal refusal;
  all[0].wake_ns = row.ns == U64_MAX ? 10 * kSecond : row.ns - 1;
  EXPECT_EQ(core_check(&kParams, CORE_BURST_SHARE, 0, all.data(), 3, &refusal), -ENOSPC)
      << row.name;
  EXPECT_EQ(refusal.tenant, 0u);
  EXPECT_EQ(refusal.field, CORE_FIELD_WAKE);
  EXPECT_EQ(refusal.bound.ns, row.ns) << row.name;
  EXPECT_EQ(refusal.bound.by, row.by) << row.name;
  if (row.ns == U64_MAX) return;
  all[0].wake_ns = row.ns;
  EXPECT_EQ(core_check(&kParams, CORE_BURST_SHARE, 0, all.data(), 3, &refusal), 0) << row.name;
  // A cycle that is asked for yields to it.
  EXPECT_EQ(core_check(&kParams, CORE_BURST_SHARE, 40 * kMilli, all.data(), 3, &refusal), 0);
}

void fix(core_settings &s, u32 ppm) { s.guarantee_ppm = s.ceiling_ppm = ppm; }

INSTANTIATE_TEST_SUITE_P(
    Rows, CheckBounds,
    ::testing::Values(
        // 5*n*s and two cuts of s + p + P/2.
        Bound{"three that rotate", [](core_settings &, core_settings &) {}, 2'300'000,
              CORE_HINDERED_BY_SWITCHES},
        // And a cut for each of one's periods of 20 ms.
        Bound{"beside a ceiling",
              [](core_settings &, core_settings &b) { b.ceiling_ppm = 300'000; },
              (2'300'000 + 400'000) * 1'000'000ull / (1'000'000 - 20'001) + 1,
              CORE_HINDERED_BY_SWITCHES},
        // Two that rotate, windows of 2 ms in 20 ms, each held for 4 ms.
        Bound{"beside windows", [](core_settings &, core_settings &b) { fix(b, 100'000); },
              (1'800'000 + 8'500'000) * 1'000'000ull / (1'000'000 - 212'501) + 1,
              CORE_HINDERED_BY_SWITCHES},
        Bound{"beside windows of half a card",
              [](core_settings &, core_settings &b) { fix(b, 500'000); }, U64_MAX,
              CORE_HINDERED_BY_WINDOWS},
        Bound{"beside online", [](core_settings &, core_settings &b) { b.class_ = CORE_ONLINE; },
              U64_MAX, CORE_HINDERED_BY_ONLINE},
        Bound{"offline beside normal",
              [](core_settings &a, core_settings &) { a.class_ = CORE_OFFLINE; }, U64_MAX,
              CORE_HINDERED_BY_SHARES},
        Bound{"offline with a guarantee",
              [](core_settings &a, core_settings &) {
                a.class_ = CORE_OFFLINE;
                a.guarantee_ppm = 10'000;
              },
              2'300'000, CORE_HINDERED_BY_SWITCHES},
        Bound{"beside a guarantee of all",
              [](core_settings &, core_settings &b) { b.guarantee_ppm = 1'000'000; }, U64_MAX,
              CORE_HINDERED_BY_SHARES},
        // 16 ms of 20 without budget, three times, and a window.
        Bound{"of windows", [](core_settings &a, core_settings &) { fix(a, 200'000); }, 48'150'000,
              CORE_HINDERED_BY_SWITCHES},
        Bound{"of windows beside longer ones",
              [](core_settings &a, core_settings &b) {
                fix(a, 200'000);
                fix(b, 500'000);
              },
              52'150'000, CORE_HINDERED_BY_SWITCHES},
        Bound{"online", [](core_settings &a, core_settings &) { a.class_ = CORE_ONLINE; }, 400'000,
              CORE_HINDERED_BY_SWITCHES},
        Bound{"online beside windows",
              [](core_settings &a, core_settings &b) {
                a.class_ = CORE_ONLINE;
                fix(b, 100'000);
              },
              8'900'000, CORE_HINDERED_BY_SWITCHES}),
    [](const auto &info) { return "Row" + std::to_string(info.index); });

core_settings randomSettings(std::mt19937_64 &random, u32 &left_ppm) {
  core_settings s = settings();
  s.weight = static_cast<u32>(1 + random() % 10'000);
  s.class_ = static_cast<core_class>(random() % 8 ? 2 * (random() % 2) : 1);
  if (random() % 3 == 0) s.guarantee_ppm = static_cast<u32>(random() % (left_ppm / 2));
  left_ppm -= s.guarantee_ppm;
  if (s.guarantee_ppm && random() % 2)
    s.ceiling_ppm = s.guarantee_ppm;
  else if (random() % 3 == 0)
    s.ceiling_ppm = s.guarantee_ppm + 1 + static_cast<u32>(random() % (CORE_PPM - s.guarantee_ppm));
  return s;
}

core_params rmParams() {
  core_params p = kParams;
  p.switch_ns = 205'000;
  p.takeoff_ns = 250'000;
  p.sample_ns = kMilli;
  p.slice_min_ns = 200'000;
  return p;
}

// The shortest slice may be 0.2 ms of so much that it is off by half a point at most.
TEST(Check, OfAWaitLeavesTheWeightsTheirSlices) {
  const core_params p = rmParams();
  struct {
    const char *name;
    std::vector<u32> weights;
    u64 ns;
    core_hindrance by;
  } const rows[] = {
      // 5*n*s and two cuts of s + p + P/2.
      {"alike", {100, 100, 100}, 4'985'000, CORE_HINDERED_BY_SWITCHES},
      {"three to one", {100, 300}, 3'960'000, CORE_HINDERED_BY_SWITCHES},
      // Its own slice is the longest.
      {"the heavy one", {1000, 100}, 3'960'000, CORE_HINDERED_BY_SWITCHES},
      // 3*n*s, two cuts and twice R; R + s + t is 1/(1/11 + 0.005) of 0.2 ms, 10/11 of that, since
      // it
      // does not wait for itself, and a 128th.
      {"the light one", {100, 1000}, 6'151'324, CORE_HINDERED_BY_WEIGHTS},
      // While it sleeps 1/(1/101 + 0.005).
      {"beside very different ones", {100, 1, 100}, 30'002'004, CORE_HINDERED_BY_WEIGHTS},
  };
  for (const auto &row : rows) {
    std::vector<core_settings> all;
    for (const u32 weight : row.weights) {
      all.push_back(settings());
      all.back().weight = weight;
    }
    core_crowd crowd;
    core_crowd_of(&crowd, &p, all.data(), static_cast<u32>(all.size()));
    const core_wake_bound bound = core_wake_bound_of(&crowd, &all[0]);
    EXPECT_EQ(bound.ns, row.ns) << row.name;
    EXPECT_EQ(bound.by, row.by) << row.name;
  }
}

// Whatever is refused is taken as soon as each has what it is told that it can have.
TEST(Check, TakesTheWaitsThatItNames) {
  std::mt19937_64 random(seed());
  SCOPED_TRACE("QGPU_SEED=" + std::to_string(seed()));
  for (int round = 0; round < 2000; ++round) {
    core_params p = kParams;
    if (round % 2) {
      p = rmParams();
      if (random() % 2) p.switch_ns = 50'000 + random() % 400'000;
    }
    std::vector<core_settings> all(1 + random() % 10);
    u32 left_ppm = CORE_PPM;
    for (core_settings &s : all) s = randomSettings(random, left_ppm);
    for (core_settings &s : all)
      if (random() % 2) s.wake_ns = 1 + random() % (40 * kMilli);
    const auto count = static_cast<u32>(all.size());
    core_refusal refusal;
    for (u32 tries = 0; core_check(&p, CORE_BURST_SHARE, 0, all.data(), count, &refusal); ++tries) {
      ASSERT_EQ(refusal.error, -ENOSPC);
      ASSERT_EQ(refusal.field, CORE_FIELD_WAKE);
      ASSERT_LT(tries, count) << "round " << round;
      core_settings &guilty = all[refusal.tenant];
      ASSERT_LT(guilty.wake_ns, refusal.bound.ns);
      ASSERT_EQ(refusal.bound.ns == U64_MAX, refusal.bound.by > CORE_HINDERED_BY_WEIGHTS);
      guilty.wake_ns = refusal.bound.ns <= 10 * kSecond ? refusal.bound.ns : 0;
    }
  }
}

}  // namespace check_test
}  // namespace qgpu::core_bench
