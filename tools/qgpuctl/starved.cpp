// SPDX-License-Identifier: GPL-2.0
#include "starved.hpp"

namespace qgpu::ctl {

using Json = nlohmann::json;

namespace {

constexpr uint64_t kNearlyAlwaysPpm = 900'000, kHardlyAnythingPpm = 10'000;

uint64_t numberIn(const Json &json, const char *part, const char *key) {
  auto found = json.find(part);
  return found == json.end() ? 0 : found->value(key, uint64_t{0});
}

}  // namespace

uint64_t askedPpm(const Json &tenant) {
  const uint64_t share_ppm = numberIn(tenant, "effective", "share_ppm");
  return share_ppm ? share_ppm : numberIn(tenant, "asked", "guarantee_ppm");
}

uint64_t gotPpm(const Json &tenant) { return numberIn(tenant, "measured", "share_ppm"); }

bool isStarved(const Json &tenant) {
  if (!numberIn(tenant, "measured", "interval_ns")) return false;
  if (numberIn(tenant, "measured", "work_ppm") <= kNearlyAlwaysPpm) return false;
  const uint64_t asked_ppm = askedPpm(tenant);
  return asked_ppm ? gotPpm(tenant) * 10 < asked_ppm * 9 : gotPpm(tenant) < kHardlyAnythingPpm;
}

std::string starvedText(const Json &card) {
  std::string names, first;
  for (const Json &tenant : card.value("tenants", Json::array())) {
    if (!isStarved(tenant)) continue;
    const std::string name = tenant.value("name", std::string());
    if (first.empty()) first = name;
    names += (names.empty() ? "" : ", ") + name;
  }
  return names.empty() ? "" : "starved: " + names + "; why: qgpuctl explain " + first;
}

}  // namespace qgpu::ctl
