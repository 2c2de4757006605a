// SPDX-License-Identifier: GPL-2.0
#include "starved.hpp"

#include <algorithm>

#include "screen.hpp"

namespace qgpu::ctl {

using Json = nlohmann::json;

namespace {

constexpr uint64_t kNearlyAlwaysPpm = 900'000, kHardlyAnythingPpm = 10'000;

uint64_t numberIn(const Json &json, const char *part, const char *key) {
  auto found = json.find(part);
  return found == json.end() ? 0 : found->value(key, uint64_t{0});
}

}  // namespace

uint64_t entitledPpm(const Json &tenant) {
  const uint64_t share_ppm = numberIn(tenant, "effective", "share_ppm");
  return share_ppm ? share_ppm : numberIn(tenant, "asked", "guarantee_ppm");
}

uint64_t gotPpm(const Json &tenant) { return numberIn(tenant, "measured", "share_ppm"); }

uint64_t longestWaitNs(const Json &measured) {
  const uint64_t over_ns = measured.value("wait_max_ns", uint64_t{0});
  return std::max(over_ns, measured.value("wait_longest_ns", uint64_t{0}));
}

bool isStarved(const Json &tenant) {
  if (!numberIn(tenant, "measured", "interval_ns")) return false;
  if (tenant.at("measured").value("new_plan", false)) return false;
  if (numberIn(tenant, "measured", "work_ppm") <= kNearlyAlwaysPpm) return false;
  const uint64_t entitled_ppm = entitledPpm(tenant);
  return entitled_ppm ? gotPpm(tenant) * 10 < entitled_ppm * 9
                      : gotPpm(tenant) < kHardlyAnythingPpm;
}

std::string starvationText(const Json &tenant) {
  const uint64_t waiting_ns = numberIn(tenant, "measured", "waiting_ns");
  return "had work for " + percent(numberIn(tenant, "measured", "work_ppm")) + " of the last " +
         duration(numberIn(tenant, "measured", "interval_ns")) + " and got " +
         percent(gotPpm(tenant)) + " of the card, entitled to " + percent(entitledPpm(tenant)) +
         (waiting_ns ? "; it has been waiting for " + duration(waiting_ns) : "");
}

std::string starvedText(const Json &card) {
  std::string names, first;
  for (const Json &tenant : card.value("tenants", Json::array())) {
    if (!isStarved(tenant)) continue;
    const std::string name = tenant.value("name", std::string());
    if (first.empty()) first = name;
    names += (names.empty() ? "" : ", ") + name;
    if (const uint64_t waiting_ns = numberIn(tenant, "measured", "waiting_ns"))
      names += " (waits for " + duration(waiting_ns) + ")";
  }
  return names.empty() ? "" : "starved: " + names + "; why: qgpuctl explain " + first;
}

}  // namespace qgpu::ctl
