// SPDX-License-Identifier: GPL-2.0
#include "config_check.hpp"

#include <algorithm>
#include <string_view>

#include "config_size.hpp"
#include "policy.hpp"

namespace qgpu {

namespace {

// Settings on which no other one's refusal depends.
constexpr std::string_view kAlone[] = {"weight", "ceiling",      "wake_within",
                                       "memory", "hang_timeout", "cgroup"};

std::string_view lastPart(std::string_view key) { return key.substr(key.rfind('.') + 1); }

// Whether what is found may only follow from what could not be read: of the same tenant the same
// setting, one on which others depend, or an unknown one, which may be any of them misspelt.
bool mayFollow(const ConfigProblem &found, const ConfigProblem &read) {
  const std::string_view key = found.key, what = lastPart(key), read_what = lastPart(read.key);
  const std::string_view tenant = key.substr(0, key.size() - what.size());  // "tenant.a."
  if (tenant.empty() || !std::string_view(read.key).starts_with(tenant)) return false;
  return read_what == what ||
         std::find(std::begin(kAlone), std::end(kAlone), read_what) == std::end(kAlone);
}

// Whether something of this [[card]] could not be read: then it is not known what holds there.
bool isUnread(const ConfigIr &config, const CardEntry &entry,
              const std::vector<ConfigProblem> &read) {
  int next_line = INT32_MAX;
  for (const CardEntry &other : config.cards)
    if (other.line > entry.line) next_line = std::min(next_line, other.line);
  return std::any_of(read.begin(), read.end(), [&](const ConfigProblem &problem) {
    return problem.key.starts_with("card") && problem.line >= entry.line &&
           problem.line < next_line;
  });
}

void tellTheFirst(std::vector<ConfigProblem> &problems) {
  if (problems.size() <= kConfigProblemsMax) return;
  const std::string more = std::to_string(problems.size() - kConfigProblemsMax);
  const std::string file = problems.front().file;
  problems.resize(kConfigProblemsMax);
  problems.push_back({file, 0, "", "has " + more + " more mistakes", EINVAL});
}

}  // namespace

std::vector<ConfigProblem> checkConfig(const ConfigIr &config,
                                       const std::vector<ConfigProblem> &read, const Edits &edits,
                                       std::vector<CardInfo> inventory) {
  const std::vector<CardInfo> placeholders = placeholderInventory(config);
  inventory.insert(inventory.end(), placeholders.begin(), placeholders.end());
  if (!read.empty())
    std::erase_if(inventory, [&](const CardInfo &card) {
      const CardEntry *entry = entryOf(config, card);
      return entry && isUnread(config, *entry, read);
    });

  std::vector<ConfigProblem> problems = read;
  for (ConfigProblem &found : compute(config, edits, inventory, CgroupIds{}).problems)
    if (std::none_of(read.begin(), read.end(),
                     [&](const ConfigProblem &problem) { return mayFollow(found, problem); }))
      problems.push_back(std::move(found));
  std::stable_sort(problems.begin(), problems.end(),
                   [](const ConfigProblem &a, const ConfigProblem &b) { return a.line < b.line; });
  tellTheFirst(problems);
  return problems;
}

}  // namespace qgpu
