// SPDX-License-Identifier: GPL-2.0
// Whom one look at a status calls starved: the same for every view. No input, no output.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace qgpu::ctl {

// Of the time delivered to tenants: what the plan gives it now, or else its guarantee.
uint64_t askedPpm(const nlohmann::json &tenant);
// What it got of it in the last second.
uint64_t gotPpm(const nlohmann::json &tenant);

// It had work nearly all of the last second, and got less than nine tenths of what it is to have,
// or hardly anything because nothing is left to it.
bool isStarved(const nlohmann::json &tenant);

// "starved: web, batch; why: qgpuctl explain web"; empty when nobody of this card is.
std::string starvedText(const nlohmann::json &card);

}  // namespace qgpu::ctl
