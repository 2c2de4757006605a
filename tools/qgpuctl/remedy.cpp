// SPDX-License-Identifier: GPL-2.0
#include "remedy.hpp"

#include <linux/qgpu.h>

#include <algorithm>

namespace qgpu::ctl {

using Json = nlohmann::json;

namespace {

constexpr uint64_t kPercentPpm = 10'000, kStepPercent = 10;

std::string text(const Json &json, const char *key) { return json.value(key, std::string()); }

uint64_t guaranteeOf(const Json &tenant) {
  return tenant.at("asked").value("guarantee_ppm", uint64_t{0}) / kPercentPpm;
}

uint64_t useOf(const Json &tenant) {
  return tenant.value("measured", Json::object()).value("use_ppm", uint64_t{0}) / kPercentPpm;
}

std::string setOf(const Json &tenant) { return "qgpuctl tenant set " + text(tenant, "name") + " "; }

// Its own guarantee cannot be raised while others have all there is: the largest is lowered.
std::string lessForAnother(const Json &card) {
  const Json &tenants = card.at("tenants");
  const auto largest = std::max_element(
      tenants.begin(), tenants.end(),
      [](const Json &a, const Json &b) { return guaranteeOf(a) < guaranteeOf(b); });
  if (largest == tenants.end() || guaranteeOf(*largest) <= kStepPercent) return "qgpuctl explain";
  return setOf(*largest) + "--guarantee " + std::to_string(guaranteeOf(*largest) - kStepPercent);
}

// Half of what the busiest online tenant takes.
std::string lessForOnline(const Json &card) {
  const Json *busiest = nullptr;
  for (const Json &tenant : card.at("tenants"))
    if (text(tenant, "place") == "beside-all" && (!busiest || useOf(tenant) > useOf(*busiest)))
      busiest = &tenant;
  if (!busiest) return "qgpuctl explain";
  return setOf(*busiest) + "--ceiling " +
         std::to_string(std::max<uint64_t>(useOf(*busiest) / 2, 1));
}

std::string moreForIt(const Json &card, const Json &tenant) {
  const std::string policy = text(card, "policy");
  if (policy == "equal-share")
    return "qgpuctl policy " + std::to_string(card.value("index", 0u)) + " burst-share";
  if (policy == "fixed-share")
    return setOf(tenant) + "--guarantee " +
           std::to_string(std::min<uint64_t>(guaranteeOf(tenant) + kStepPercent, 100));
  const uint64_t weight = tenant.at("asked").value("weight", uint64_t{QGPU_WEIGHT_DEFAULT});
  return setOf(tenant) + "--weight " +
         std::to_string(std::min<uint64_t>(2 * weight, QGPU_WEIGHT_MAX));
}

}  // namespace

std::string remedyOf(const Json &card, const Json &tenant, const std::string &reason) {
  const std::string name = text(tenant, "name"), index = std::to_string(card.value("index", 0u));
  const bool is_offline = text(tenant.at("asked"), "class") == "offline";
  if (reason.starts_with("card-") || reason == "plan-refused" || reason == "not-measured")
    return "qgpuctl doctor";
  if (reason == "best-effort") return "qgpuctl policy " + index + " burst-share";
  if (name != "default" && (reason == "no-cgroup" || reason == "not-attached"))
    return "qgpuctl run --tenant " + name + " -- COMMAND";
  if (reason == "new-plan") return "qgpuctl explain " + name + " --card " + index;
  if (reason == "ceiling") return setOf(tenant) + "--ceiling 100";
  if (reason == "partly-idle") return setOf(tenant) + "--class online";
  if (reason == "online-first") return lessForOnline(card);
  if (reason == "nothing-left" && is_offline) return setOf(tenant) + "--class normal";
  if (reason == "nothing-left") return lessForAnother(card);
  if (reason == "as-promised") return moreForIt(card, tenant);
  return "qgpuctl log --card " + index;
}

}  // namespace qgpu::ctl
