// SPDX-License-Identifier: GPL-2.0
#include "config_check.hpp"

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "policy.hpp"

namespace qgpu {

namespace {

constexpr std::string_view kSettings[] = {"cgroup", "weight",      "guarantee",    "ceiling",
                                          "class",  "wake_within", "hang_timeout", "memory"};

template <size_t N>
bool isOneOf(std::string_view word, const std::string_view (&words)[N]) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

// Whether a setting is judged by another one too.
bool dependsOn(std::string_view setting, std::string_view other) {
  constexpr std::string_view kOfWait[] = {"class", "guarantee", "ceiling"};
  if (setting == "ceiling") return other == "guarantee";
  return setting == "wake_within" && isOneOf(other, kOfWait);
}

std::string_view lastPart(std::string_view key) { return key.substr(key.rfind('.') + 1); }

// Whether what is found may only follow from what could not be read: of the same tenant the same
// setting, one that it depends on, or an unknown one, which may be any of them misspelt.
bool mayFollow(const ConfigProblem &found, const ConfigProblem &read) {
  const std::string_view key = found.key, what = lastPart(key), other = lastPart(read.key);
  const std::string_view tenant = key.substr(0, key.size() - what.size());  // "tenant.a."
  if (tenant.empty() || !std::string_view(read.key).starts_with(tenant)) return false;
  return other == what || dependsOn(what, other) || !isOneOf(other, kSettings);
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
