// SPDX-License-Identifier: GPL-2.0
#include <gtest/gtest.h>

#include "unit/core_bench.hpp"

namespace qgpu::core_bench {
namespace {

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
        Refused{"wake", CORE_BURST_SHARE, [](core_settings &s) { s.wake_ns = kMilli; }, 0,
                CORE_FIELD_NONE},
        Refused{"wake in windows", CORE_FIXED_SHARE, [](core_settings &s) { s.wake_ns = kMilli; },
                -EOPNOTSUPP, CORE_FIELD_WAKE},
        Refused{"wake of three that take 600 us to switch", CORE_BURST_SHARE,
                [](core_settings &s) { s.wake_ns = 599 * kMicro; }, -ENOSPC, CORE_FIELD_WAKE},
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
  EXPECT_EQ(refusal.bound_ns, 400 * kMicro);
  EXPECT_EQ(core_check(&kParams, static_cast<core_policy>(4), 0, &one, 1, &refusal), -ERANGE);
  EXPECT_EQ(refusal.field, CORE_FIELD_POLICY);
  EXPECT_EQ(core_check(&kParams, CORE_BURST_SHARE, 1, &one, 1, &refusal), -ERANGE);
  EXPECT_EQ(refusal.field, CORE_FIELD_CYCLE);
  EXPECT_EQ(core_check(&kParams, CORE_BURST_SHARE, 2 * kSecond, &one, 1, &refusal), -ERANGE);
  EXPECT_EQ(core_check(&kParams, CORE_BURST_SHARE, 30 * kMilli, &one, 1, &refusal), 0);
  EXPECT_EQ(core_check(&kParams, CORE_BURST_SHARE, 0, nullptr, 0, &refusal), 0);
}

}  // namespace
}  // namespace qgpu::core_bench
