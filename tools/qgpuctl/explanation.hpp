// SPDX-License-Identifier: GPL-2.0
// What one tenant was promised on a card, what it got, and why it is less: from one card of a
// status, its promises computed here by the scheduling core. No input, no output.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "result.hpp"

namespace qgpu::ctl {

// Everything of `qgpuctl explain --json`: names are stable, units are in them. status: what
// readStatus() gives; card: uuid or index, empty = all. ENOENT: no such tenant, ENODEV: no such
// card, or not on it.
Result<nlohmann::json> explanationOf(const nlohmann::json &status, const std::string &tenant,
                                     const std::string &card);

// The same for people.
std::string explanationText(const nlohmann::json &explanation);

// All tenants of these cards, a line each, with why they got what they got.
Result<std::string> whysText(const nlohmann::json &status, const std::string &card);

}  // namespace qgpu::ctl
