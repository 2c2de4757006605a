// SPDX-License-Identifier: GPL-2.0
#include "names.hpp"

#include <linux/qgpu.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <span>

#include "card.hpp"

namespace qgpu {

namespace {

using Name = std::pair<uint32_t, std::string_view>;

constexpr std::array kMethods = {
    Name{QGPU_METHOD_NONE, "none"},
    Name{QGPU_METHOD_IMAGES, "images"},
    Name{QGPU_METHOD_GATES, "gates"},
    Name{QGPU_METHOD_RM, "rm"},
};
constexpr std::array kPolicies = {
    Name{QGPU_POLICY_BEST_EFFORT, "best-effort"},
    Name{QGPU_POLICY_EQUAL_SHARE, "equal-share"},
    Name{QGPU_POLICY_FIXED_SHARE, "fixed-share"},
    Name{QGPU_POLICY_BURST_SHARE, "burst-share"},
};
constexpr std::array kClasses = {
    Name{QGPU_CLASS_NORMAL, "normal"},
    Name{QGPU_CLASS_ONLINE, "online"},
    Name{QGPU_CLASS_OFFLINE, "offline"},
};
constexpr std::array kStates = {
    Name{QGPU_CARD_OK, "ok"},
    Name{QGPU_CARD_DEGRADED, "degraded"},
    Name{QGPU_CARD_LOST, "lost"},
};
constexpr std::array kSources = {
    Name{QGPU_SOURCE_WINDOW, "window"},
    Name{QGPU_SOURCE_TRACE, "trace"},
    Name{QGPU_SOURCE_SAMPLED, "sampled"},
    Name{QGPU_SOURCE_INFERRED, "inferred"},
};
constexpr std::array kEvents = {
    Name{QGPU_EVENT_CARD_ADDED, "card-added"},
    Name{QGPU_EVENT_CARD_REMOVED, "card-removed"},
    Name{QGPU_EVENT_CARD_STATE, "card-state"},
    Name{QGPU_EVENT_PLAN, "plan"},
    Name{QGPU_EVENT_TENANT_APPEARED, "tenant-appeared"},
    Name{QGPU_EVENT_TENANT_GONE, "tenant-gone"},
    Name{QGPU_EVENT_TSG_BOUND, "tsg-bound"},
    Name{QGPU_EVENT_PREEMPT_REFUSED, "preempt-refused"},
    Name{kRmEventProcessControlled, "process-controlled"},
    Name{kRmEventProcessGone, "process-gone"},
    Name{kRmEventProcessBlind, "process-blind"},
    Name{kRmEventControlRefused, "control-refused"},
    Name{kRmEventForeignChange, "foreign-change"},
    Name{kRmEventQuarantine, "quarantine"},
    Name{kRmEventNoProgress, "no-progress"},
    Name{kRmEventWorkerRestarted, "worker-restarted"},
    Name{kRmEventTraceLost, "trace-lost"},
};

std::string nameOf(std::span<const Name> names, uint32_t number) {
  for (const auto &[known, name] : names)
    if (known == number) return std::string(name);
  return "unknown-" + std::to_string(number);
}

std::optional<uint32_t> numberOf(std::span<const Name> names, std::string_view wanted) {
  for (const auto &[number, name] : names)
    if (name == wanted) return number;
  return std::nullopt;
}

}  // namespace

std::string methodName(uint32_t method) { return nameOf(kMethods, method); }
std::string policyName(uint32_t policy) { return nameOf(kPolicies, policy); }
std::string className(uint32_t work_class) { return nameOf(kClasses, work_class); }
std::string cardStateName(uint32_t state) { return nameOf(kStates, state); }
std::string sourceName(uint32_t source) { return nameOf(kSources, source); }
std::string eventName(uint32_t kind) { return nameOf(kEvents, kind); }

std::optional<uint32_t> policyFromName(std::string_view name) { return numberOf(kPolicies, name); }
std::optional<uint32_t> classFromName(std::string_view name) { return numberOf(kClasses, name); }

bool isTenantName(std::string_view name) {
  if (name.empty() || name.size() >= QGPU_NAME_MAX || name == "." || name == "..") return false;
  return std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return (c < 0x80 && std::isalnum(c)) || c == '.' || c == '_' || c == '-';
  });
}

}  // namespace qgpu
