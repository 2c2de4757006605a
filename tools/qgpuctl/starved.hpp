// SPDX-License-Identifier: GPL-2.0
// Whom one look at a status calls starved: the same for every view. No input, no output.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace qgpu::ctl {

// Of the time delivered to tenants what it is entitled to: what the plan gives it now among those
// that have work, or else its guarantee.
uint64_t entitledPpm(const nlohmann::json &tenant);
// What it got of it in the last interval that was measured.
uint64_t gotPpm(const nlohmann::json &tenant);

// The longest single wait since counting began, the one that is on with it.
uint64_t longestWaitNs(const nlohmann::json &measured);

// It had work nearly all of the interval, and got less than nine tenths of what it is entitled to,
// or hardly anything because nothing is left to it. An interval in which the plan changed is of no
// one plan: nobody is judged by it.
bool isStarved(const nlohmann::json &tenant);

// "had work for 99.8 % of the last 1.0 s and got 0.0 % of the card, entitled to 25.0 %; it has been
// waiting for 12.0 s"
std::string starvationText(const nlohmann::json &tenant);

// "starved: web (waits for 12.0 s), batch; why: qgpuctl explain web"; empty when nobody of this
// card is.
std::string starvedText(const nlohmann::json &card);

}  // namespace qgpu::ctl
