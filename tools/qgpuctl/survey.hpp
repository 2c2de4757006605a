// SPDX-License-Identifier: GPL-2.0
// What a card's registers say, of a dump as the module makes it (kmod/pci.c): lines "offset value" in
// hexadecimal, and "name text".
#pragma once

#include <string>

#include "connection.hpp"

namespace qgpu::ctl {

// Identity, topology, limits and the state of its host as one object; "registers" has all that was read.
Json surveyOf(const std::string &dump);

}  // namespace qgpu::ctl
