// SPDX-License-Identifier: GPL-2.0
// What an admin would type against a reason that `qgpuctl explain` gives. No input, no output.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace qgpu::ctl {

// The command that changes it for this tenant of this card, as a status has both, or shows more
// where no setting would.
std::string remedyOf(const nlohmann::json &card, const nlohmann::json &tenant,
                     const std::string &reason);

}  // namespace qgpu::ctl
