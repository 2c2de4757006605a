// SPDX-License-Identifier: GPL-2.0
#include "config_size.hpp"

#include <linux/qgpu.h>

#include <algorithm>
#include <cerrno>
#include <map>

namespace qgpu {

namespace {

int lineOf(const toml::source_region &source) { return static_cast<int>(source.begin.line); }

// The line of the first that is one too many; 0 = none is.
int lineOver(std::vector<int> lines, size_t max) {
  if (lines.size() <= max) return 0;
  std::nth_element(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(max), lines.end());
  return lines[max];
}

// What the tenants name, by the lines where they do.
struct Named {
  std::vector<int> tenants;  // without "default"
  std::vector<int> cgroups;
  std::map<std::string_view, int> cards;  // with settings of their own: where first

  void add(std::string_view name, int line, const toml::table &tenant) {
    if (name != "default") tenants.push_back(line);
    if (const toml::array *list = tenant["cgroup"].as_array())
      for (const toml::node &element : *list) cgroups.push_back(lineOf(element.source()));
    if (const toml::table *own = tenant["card"].as_table())
      for (const auto &[key, node] : *own) cards.emplace(key.str(), lineOf(key.source()));
  }
};

}  // namespace

std::vector<ConfigProblem> sizeProblems(const toml::table &root, const std::string &file) {
  std::vector<ConfigProblem> problems;
  auto limit = [&](const std::vector<int> &lines, size_t max, const char *key, const char *what) {
    if (int line = lineOver(lines, max))
      problems.push_back({file, line, key,
                          std::to_string(lines.size()) + " " + what + ", at most " +
                              std::to_string(max) + " can be",
                          E2BIG});
  };
  std::vector<int> cards;
  if (const toml::array *list = root["card"].as_array())
    for (const toml::node &element : *list) cards.push_back(lineOf(element.source()));
  limit(cards, kConfigCardsMax, "card", "tables [[card]]");

  Named named;
  if (const toml::table *tenants = root["tenant"].as_table())
    for (const auto &[key, node] : *tenants)
      if (const toml::table *tenant = node.as_table())
        named.add(key.str(), lineOf(key.source()), *tenant);
  limit(named.tenants, QGPU_TENANTS_MAX - 1, "tenant", "tenants");
  limit(named.cgroups, kConfigCgroupsMax, "tenant", "cgroups");
  std::vector<int> own;
  for (const auto &[selector, line] : named.cards) own.push_back(line);
  limit(own, kConfigCardsMax, "tenant", "cards with settings of their own");
  return problems;
}

}  // namespace qgpu
