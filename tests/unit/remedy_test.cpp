// SPDX-License-Identifier: GPL-2.0
// What is proposed against a reason can be done: within what a policy takes, and a change.
#include "tools/qgpuctl/remedy.hpp"

#include <gtest/gtest.h>
#include <linux/qgpu.h>

namespace qgpu::ctl {
namespace remedy_test {

using Json = nlohmann::json;

struct Asked {
  const char *name = "a", *klass = "normal";
  double guarantee = 0, ceiling = 100, use = 0;
  unsigned weight = 100;
};

unsigned ppm(double percent) { return static_cast<unsigned>(percent * 10'000 + 0.5); }

Json tenantOf(const Asked &of) {
  return {{"name", of.name},
          {"place", std::string(of.klass) == "online" ? "beside-all" : "rotates"},
          {"asked",
           {{"class", of.klass},
            {"guarantee_ppm", ppm(of.guarantee)},
            {"ceiling_ppm", ppm(of.ceiling)},
            {"weight", of.weight}}},
          {"measured", {{"use_ppm", ppm(of.use)}}}};
}

std::string remedy(const char *policy, const char *reason, const std::vector<Asked> &tenants) {
  Json card = {{"index", 3}, {"policy", policy}, {"tenants", Json::array()}};
  for (const Asked &of : tenants) card["tenants"].push_back(tenantOf(of));
  return remedyOf(card, card["tenants"][0], reason);
}

TEST(Remedy, AnOnlineTenantIsGivenLessWithinItsGuarantee) {
  const Asked lab{.name = "lab", .klass = "offline"};
  const auto with = [&](double guarantee, double use) {
    return remedy("burst-share", "online-first",
                  {lab, {.name = "web", .klass = "online", .guarantee = guarantee, .use = use}});
  };
  EXPECT_EQ(with(0, 81), "qgpuctl tenant set web --ceiling 40.5");
  EXPECT_EQ(with(50, 80), "qgpuctl tenant set web --ceiling 50");
  EXPECT_EQ(with(90, 80), "qgpuctl tenant set web --guarantee 40");
  EXPECT_EQ(with(0, 0), "qgpuctl tenant set web --ceiling 1");
  EXPECT_EQ(remedy("burst-share", "online-first", {lab}), "qgpuctl explain");
}

TEST(Remedy, GuaranteesStayWithinTheCardAndTheCeiling) {
  const auto with = [](const Asked &a, double others) {
    return remedy("fixed-share", "as-promised", {a, {.name = "b", .guarantee = others}});
  };
  EXPECT_EQ(with({.guarantee = 30}, 40), "qgpuctl tenant set a --guarantee 40");
  EXPECT_EQ(with({.guarantee = 12.5}, 40), "qgpuctl tenant set a --guarantee 22.5");
  EXPECT_EQ(with({.guarantee = 50}, 47.5), "qgpuctl tenant set a --guarantee 52.5");
  EXPECT_EQ(with({.guarantee = 30, .ceiling = 35}, 40), "qgpuctl tenant set a --guarantee 35");
  EXPECT_EQ(with({.guarantee = 50}, 50), "qgpuctl tenant set b --guarantee 40");
  EXPECT_EQ(with({.guarantee = 95}, 5), "qgpuctl explain");
}

TEST(Remedy, WhoIsIdleForATimeIsMadeOnlineWhereThatIsTaken) {
  EXPECT_EQ(remedy("burst-share", "partly-idle", {{}}), "qgpuctl tenant set a --class online");
  EXPECT_EQ(remedy("burst-share", "partly-idle", {{.klass = "online"}}), "qgpuctl log --card 3");
  EXPECT_EQ(remedy("fixed-share", "partly-idle", {{}}), "qgpuctl log --card 3");
  EXPECT_EQ(remedy("equal-share", "partly-idle", {{}}), "qgpuctl log --card 3");
}

TEST(Remedy, AWeightAtItsMostIsNotRaised) {
  EXPECT_EQ(remedy("burst-share", "as-promised", {{.weight = QGPU_WEIGHT_MAX - 1}}),
            "qgpuctl tenant set a --weight " + std::to_string(QGPU_WEIGHT_MAX));
  EXPECT_EQ(remedy("burst-share", "as-promised", {{.weight = QGPU_WEIGHT_MAX}}),
            "qgpuctl log --card 3");
  EXPECT_EQ(remedy("equal-share", "as-promised", {{}}), "qgpuctl policy 3 burst-share");
}

TEST(Remedy, WhatIsGuaranteedToAnotherIsLowered) {
  EXPECT_EQ(
      remedy("burst-share", "nothing-left", {{.guarantee = 90}, {.name = "b", .guarantee = 60}}),
      "qgpuctl tenant set b --guarantee 50");
  EXPECT_EQ(remedy("burst-share", "nothing-left", {{.klass = "offline"}}),
            "qgpuctl tenant set a --class normal");
}

}  // namespace remedy_test
}  // namespace qgpu::ctl
