// SPDX-License-Identifier: GPL-2.0
// Which attribute of a request the kernel means by an offset, in the configuration's words.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace qgpu::netlink {

// "plan, tenant a, weight"; empty when the offset hits none.
std::string attributeAt(std::span<const uint8_t> request, uint32_t offset);
// The same for an attribute that is missing in the nest at the offset (0 = top level).
std::string missingAttribute(std::span<const uint8_t> request, uint32_t nest_offset, uint32_t type);

}  // namespace qgpu::netlink
