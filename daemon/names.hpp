// SPDX-License-Identifier: GPL-2.0
// The contract's enumerations as words and times with their unit, for configuration, log, JSON and
// command line. Numbers that this version does not know are shown as "unknown-N", never dropped.
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
std::string placeName(uint32_t place);
std::string sourceName(uint32_t source);
std::string eventName(uint32_t kind);
std::string seenName(uint32_t seen);
std::string endName(uint32_t end);
std::string windowName(uint32_t window);

std::optional<uint32_t> policyFromName(std::string_view name);
std::optional<uint32_t> classFromName(std::string_view name);

// "12ms", "500us", "1.5s": a number and ns, us, ms or s; nullopt when it is none of these or no
// whole number of ns.
std::optional<uint64_t> durationFromText(std::string_view text);
// The same the other way round, in the largest unit that is not below one: "1.5ms".
std::string durationText(uint64_t ns);

// Why this is no tenant's name, for a person; null when it is one. The rule is the kernel's
// (QGPU_NAME_MAX): names go into paths, tables and the kernel.
const char *tenantNameMistake(std::string_view name);

}  // namespace qgpu
