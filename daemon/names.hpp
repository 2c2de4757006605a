// SPDX-License-Identifier: GPL-2.0
// The contract's enumerations as words, for configuration, log, JSON and command line. Numbers that
// this version does not know are shown as "unknown-N", never dropped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace qgpu {

std::string methodName(uint32_t method);
std::string policyName(uint32_t policy);
std::string className(uint32_t work_class);
std::string cardStateName(uint32_t state);
std::string sourceName(uint32_t source);
std::string eventName(uint32_t kind);

std::optional<uint32_t> policyFromName(std::string_view name);
std::optional<uint32_t> classFromName(std::string_view name);

// Tenant names go into paths, tables and the kernel: [A-Za-z0-9._-]{1,63}, and not "." or "..".
bool isTenantName(std::string_view name);

}  // namespace qgpu
