// SPDX-License-Identifier: GPL-2.0
// From what the administrator wrote to what each card shall do: the only place that turns
// percentages into parts per million, and where impossible promises are refused.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "card.hpp"
#include "config.hpp"
#include "state.hpp"

namespace qgpu {

struct DesiredTenant {
  std::string name;
  TenantSettings settings;
};

struct DesiredCard {
  uint32_t index = 0;
  std::string uuid;
  uint32_t policy = QGPU_POLICY_BURST_SHARE;
  uint64_t cycle_ns = 0;               // override, 0 = computed
  std::vector<DesiredTenant> tenants;  // "default" included
  CardMethod method = CardMethod::kModule;
};

struct DesiredState {
  std::vector<DesiredCard> cards;  // only those that the configuration names

  const DesiredCard *find(const std::string &uuid) const;
};

// Cgroup v2 ids of each tenant.
using CgroupIds = std::map<std::string, std::vector<uint64_t>>;

struct PolicyOutcome {
  DesiredState state;  // complete only when there are no problems
  std::vector<ConfigProblem> problems;
};

// Tenths of a percent; ERANGE or EINVAL with a sentence when it is not 0 to 100 in steps of 0.1.
Result<uint32_t> tenthsFromPercent(double percent);
// The same for a ceiling, which cannot be 0.
Result<uint32_t> ceilingFromPercent(double percent);
// enum qgpu_class
Result<uint32_t> workClassFromText(const std::string &text);
// ns: "500us", "2ms"; "none" = 0, "off" = 0. EINVAL or ERANGE with a sentence.
Result<uint64_t> wakeFromText(const std::string &text);
Result<uint64_t> hangFromText(const std::string &text);
// Longer ones promise nothing: the same limits as the driver's.
constexpr uint64_t kWakeMaxNs = 10'000'000'000;
constexpr uint64_t kHangMaxNs = 3'600'000'000'000;

// "33.3 %", rounded to the nearest tenth.
std::string percentText(uint32_t ppm);

PolicyOutcome compute(const ConfigIr &config, const Edits &edits,
                      const std::vector<CardInfo> &inventory, const CgroupIds &cgroups);

// One made-up card for each [[card]], so that a file can be checked on a machine without cards.
std::vector<CardInfo> placeholderInventory(const ConfigIr &config);

// Whether a card's uuid or index is meant.
bool selects(const std::string &selector, const CardInfo &card);

// The entry that governs a card: by uuid, else by index, else "all"; null = not to be touched.
const CardEntry *entryOf(const ConfigIr &config, const CardInfo &card);

}  // namespace qgpu
