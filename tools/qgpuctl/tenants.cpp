// SPDX-License-Identifier: GPL-2.0
#include "tenants.hpp"

#include <cerrno>
#include <set>

namespace qgpu::ctl {

Result<void> checkTenant(const nlohmann::json &status, const std::string &name) {
  using Json = nlohmann::json;
  std::set<std::string> names;
  const auto add = [&](const Json &tenants) {
    for (const Json &tenant : tenants) names.insert(tenant.value("name", std::string()));
  };
  add(status.value("configured", Json::array()));
  for (const Json &card : status.at("cards")) add(card.at("tenants"));
  if (names.count(name)) return {};
  std::string known;
  for (const std::string &one : names) known += (known.empty() ? "; there are: " : ", ") + one;
  return Error{ENOENT, "no such tenant" + known, name};
}

}  // namespace qgpu::ctl
