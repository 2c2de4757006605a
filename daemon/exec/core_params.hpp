// SPDX-License-Identifier: GPL-2.0
// The scheduling core's parameters under method rm: with these the executor plans, and with these
// qgpud says what a configuration comes to.
#pragma once

#include <cstdint>

#include "card_params.hpp"

extern "C" {
#include "core/core.h"
}

namespace qgpu::exec {

// Of a window that follows others.
constexpr uint64_t kWindowNs = 50'000'000;

// At least this between two windows of a tenant, of whom so many are stopped now and then: changing
// a window takes a millisecond for each.
uint64_t periodNs(uint64_t gated);

core_params coreParams(const CardParams &card, uint64_t gated);

}  // namespace qgpu::exec
