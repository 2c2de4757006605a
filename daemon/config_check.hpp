// SPDX-License-Identifier: GPL-2.0
// All that is wrong with a configuration, in one pass: what could not be read, and what the rest
// promises and cannot keep. For --check, the start, a reload and every change at run time.
#pragma once

#include <vector>

#include "card.hpp"
#include "config.hpp"
#include "state.hpp"

namespace qgpu {

constexpr size_t kConfigProblemsMax = 100;  // that are told one by one

// By line. Checked for the cards of the inventory and for those that the file names. What may only
// follow from a setting that could not be read is left out.
std::vector<ConfigProblem> checkConfig(const ConfigIr &config,
                                       const std::vector<ConfigProblem> &read, const Edits &edits,
                                       std::vector<CardInfo> inventory);

}  // namespace qgpu
