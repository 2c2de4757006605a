// SPDX-License-Identifier: GPL-2.0
#include "remedy.hpp"

#include <linux/qgpu.h>

#include <algorithm>

namespace qgpu::ctl {

using Json = nlohmann::json;

namespace {

constexpr uint64_t kTenthPpm = 1'000, kStepPpm = 100'000, kLeastPpm = 10'000;

std::string text(const Json &json, const char *key) { return json.value(key, std::string()); }

uint64_t askedOf(const Json &tenant, const char *key, uint64_t otherwise) {
  return tenant.at("asked").value(key, otherwise);
}

uint64_t guaranteePpm(const Json &tenant) { return askedOf(tenant, "guarantee_ppm", 0); }

uint64_t usePpm(const Json &tenant) {
  return tenant.value("measured", Json::object()).value("use_ppm", uint64_t{0});
}

// " --OPTION PERCENT", in tenths as they are told everywhere.
std::string percentOption(const char *option, uint64_t ppm) {
  const uint64_t tenths = ppm / kTenthPpm;
  return std::string(" --") + option + " " + std::to_string(tenths / 10) +
         (tenths % 10 ? "." + std::to_string(tenths % 10) : "");
}

std::string setOf(const Json &tenant) { return "qgpuctl tenant set " + text(tenant, "name"); }

std::string look(const Json &card) {
  return "qgpuctl log --card " + std::to_string(card.value("index", 0u));
}

// While others have all there is: the largest guarantee is lowered, of another than this one.
std::string lessForAnother(const Json &card, const Json &tenant) {
  const Json *largest = nullptr;
  for (const Json &other : card.at("tenants"))
    if (text(other, "name") != text(tenant, "name") &&
        (!largest || guaranteePpm(other) > guaranteePpm(*largest)))
      largest = &other;
  if (!largest || guaranteePpm(*largest) <= kStepPpm) return "qgpuctl explain";
  return setOf(*largest) + percentOption("guarantee", guaranteePpm(*largest) - kStepPpm);
}

// Half of what the busiest online tenant takes; a ceiling cannot be below its guarantee.
std::string lessForOnline(const Json &card) {
  const Json *busiest = nullptr;
  for (const Json &tenant : card.at("tenants"))
    if (text(tenant, "place") == "beside-all" && (!busiest || usePpm(tenant) > usePpm(*busiest)))
      busiest = &tenant;
  if (!busiest) return "qgpuctl explain";
  const uint64_t half_ppm = std::max(usePpm(*busiest) / 2, kLeastPpm);
  const uint64_t ceiling_ppm = std::max(half_ppm, guaranteePpm(*busiest));
  if (ceiling_ppm >= usePpm(*busiest) && half_ppm < ceiling_ppm)
    return setOf(*busiest) + percentOption("guarantee", half_ppm);
  return setOf(*busiest) + percentOption("ceiling", ceiling_ppm);
}

// What all have been guaranteed and its own ceiling leave room for.
std::string moreGuaranteed(const Json &card, const Json &tenant) {
  uint64_t sum_ppm = 0;
  for (const Json &one : card.at("tenants")) sum_ppm += guaranteePpm(one);
  const uint64_t own_ppm = guaranteePpm(tenant),
                 most_ppm =
                     std::min<uint64_t>(askedOf(tenant, "ceiling_ppm", QGPU_PPM),
                                        own_ppm + QGPU_PPM - std::min<uint64_t>(sum_ppm, QGPU_PPM));
  if (most_ppm < own_ppm + kTenthPpm) return lessForAnother(card, tenant);
  return setOf(tenant) + percentOption("guarantee", std::min(own_ppm + kStepPpm, most_ppm));
}

std::string moreForIt(const Json &card, const Json &tenant) {
  const std::string policy = text(card, "policy");
  if (policy == "equal-share")
    return "qgpuctl policy " + std::to_string(card.value("index", 0u)) + " burst-share";
  if (policy == "fixed-share") return moreGuaranteed(card, tenant);
  const uint64_t weight = askedOf(tenant, "weight", QGPU_WEIGHT_DEFAULT);
  if (weight >= QGPU_WEIGHT_MAX) return look(card);
  return setOf(tenant) + " --weight " +
         std::to_string(std::min<uint64_t>(2 * weight, QGPU_WEIGHT_MAX));
}

}  // namespace

std::string remedyOf(const Json &card, const Json &tenant, const std::string &reason) {
  const std::string name = text(tenant, "name"), index = std::to_string(card.value("index", 0u));
  const std::string of_class = text(tenant.at("asked"), "class");
  const bool may_be_online = text(card, "policy") == "burst-share" && of_class != "online";
  if (reason.starts_with("card-") || reason == "plan-refused" || reason == "not-measured")
    return "qgpuctl doctor";
  if (reason == "best-effort") return "qgpuctl policy " + index + " burst-share";
  if (name != "default" && (reason == "no-cgroup" || reason == "not-attached"))
    return "qgpuctl run --tenant " + name + " -- COMMAND";
  if (reason == "new-plan") return "qgpuctl explain " + name + " --card " + index;
  if (reason == "ceiling") return setOf(tenant) + " --ceiling 100";
  if (reason == "partly-idle" && may_be_online) return setOf(tenant) + " --class online";
  if (reason == "online-first") return lessForOnline(card);
  if (reason == "nothing-left" && of_class == "offline") return setOf(tenant) + " --class normal";
  if (reason == "nothing-left") return lessForAnother(card, tenant);
  if (reason == "as-promised") return moreForIt(card, tenant);
  return look(card);
}

}  // namespace qgpu::ctl
