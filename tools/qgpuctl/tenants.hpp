// SPDX-License-Identifier: GPL-2.0
// Which tenants a status knows, for whoever is asked about one. No input, no output.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "result.hpp"

namespace qgpu::ctl {

// ENOENT, with the names there are, when neither a card nor the configuration has this tenant.
Result<void> checkTenant(const nlohmann::json &status, const std::string &name);

}  // namespace qgpu::ctl
