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
constexpr std::array kPlaces = {
    Name{QGPU_PLACE_ROTATES, "rotates"},
    Name{QGPU_PLACE_RANKED, "windows-by-lag"},
    Name{QGPU_PLACE_CLOCKED, "windows-on-the-clock"},
    Name{QGPU_PLACE_BESIDE, "beside-all"},
};
constexpr std::array kSources = {
    Name{QGPU_SOURCE_WINDOW, "window"},
    Name{QGPU_SOURCE_TRACE, "trace"},
    Name{QGPU_SOURCE_SAMPLED, "sampled"},
    Name{QGPU_SOURCE_INFERRED, "inferred"},
    Name{kRmSourceNvml, "nvml"},
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
    Name{QGPU_EVENT_HANG, "hang"},
    Name{kRmEventProcessControlled, "process-controlled"},
    Name{kRmEventProcessGone, "process-gone"},
    Name{kRmEventProcessBlind, "process-blind"},
    Name{kRmEventControlRefused, "control-refused"},
    Name{kRmEventForeignChange, "foreign-change"},
    Name{kRmEventQuarantine, "quarantine"},
    Name{kRmEventNoProgress, "no-progress"},
    Name{kRmEventWorkerRestarted, "worker-restarted"},
    Name{kRmEventTraceLost, "trace-lost"},
    Name{kRmEventStalled, "stalled"},
};

constexpr std::array kSeen = {Name{QGPU_SEEN_IDLE, "idle"}, Name{QGPU_SEEN_SWITCH, "switch"},
                              Name{QGPU_SEEN_NOBODY, "nobody"}, Name{QGPU_SEEN_TENANT, "tenant"}};
constexpr std::array kEnds = {Name{QGPU_END_SLICE, "slice"}, Name{QGPU_END_NO_WORK, "no-work"},
                              Name{QGPU_END_WINDOW, "window"}, Name{QGPU_END_BUDGET, "budget"},
                              Name{QGPU_END_TAIL, "tail"}};
constexpr std::array kWindows = {
    Name{QGPU_WINDOW_DRIVER, "driver"}, Name{QGPU_WINDOW_ROTATION, "rotation"},
    Name{QGPU_WINDOW_EXCLUSIVE, "exclusive"}, Name{QGPU_WINDOW_ONLINE, "online"},
    Name{QGPU_WINDOW_QUIET, "quiet"}};

struct Unit {
  std::string_view name;
  uint64_t ns;
};
constexpr std::array kUnits = {Unit{"s", 1'000'000'000}, Unit{"ms", 1'000'000}, Unit{"us", 1000},
                               Unit{"ns", 1}};
// More digits than any time that is accepted has.
constexpr size_t kDigitsMax = 9;

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
std::string placeName(uint32_t place) { return nameOf(kPlaces, place); }
std::string sourceName(uint32_t source) { return nameOf(kSources, source); }
std::string eventName(uint32_t kind) { return nameOf(kEvents, kind); }
std::string seenName(uint32_t seen) { return nameOf(kSeen, seen); }
std::string endName(uint32_t end) { return nameOf(kEnds, end); }
std::string windowName(uint32_t window) { return nameOf(kWindows, window); }

std::optional<uint32_t> policyFromName(std::string_view name) { return numberOf(kPolicies, name); }
std::optional<uint32_t> classFromName(std::string_view name) { return numberOf(kClasses, name); }

std::optional<uint64_t> durationFromText(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789";
  size_t end = text.find_first_not_of("0123456789.");
  if (end == std::string_view::npos) return std::nullopt;
  const auto unit = std::find_if(kUnits.begin(), kUnits.end(),
                                 [&](const Unit &u) { return u.name == text.substr(end); });
  const std::string_view number = text.substr(0, end);
  const std::string_view whole = number.substr(0, number.find('.'));
  if (unit == kUnits.end() || whole.empty() || whole.size() > kDigitsMax) return std::nullopt;
  uint64_t ns = 0;
  for (char c : whole) ns = ns * 10 + static_cast<uint64_t>(c - '0');
  ns *= unit->ns;
  if (whole.size() == number.size()) return ns;
  const std::string_view fraction = number.substr(whole.size() + 1);
  if (fraction.empty() || fraction.find_first_not_of(kDigits) != std::string_view::npos)
    return std::nullopt;
  uint64_t place_ns = unit->ns;
  for (char c : fraction) {
    if (place_ns % 10 != 0) return std::nullopt;
    place_ns /= 10;
    ns += place_ns * static_cast<uint64_t>(c - '0');
  }
  return ns;
}

std::string durationText(uint64_t ns) {
  const auto unit = std::find_if(kUnits.begin(), kUnits.end(),
                                 [&](const Unit &u) { return ns >= u.ns || u.ns == 1; });
  std::string text = std::to_string(ns / unit->ns);
  if (ns % unit->ns) {
    // The digits behind the point: those of the rest, with their leading zeros.
    std::string rest = std::to_string(unit->ns + ns % unit->ns).substr(1);
    text += "." + rest.substr(0, rest.find_last_not_of('0') + 1);
  }
  return text + std::string(unit->name);
}

const char *tenantNameMistake(std::string_view name) {
  const bool is_word = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return (c < 0x80 && std::isalnum(c)) || c == '.' || c == '_' || c == '-';
  });
  if (!is_word || name.empty() || name.size() >= QGPU_NAME_MAX)
    return "a tenant's name has 1 to 63 of A-Z a-z 0-9 . _ -";
  if (name == "." || name == "..") return "a tenant's name is not . or ..: names become folders";
  if (name == "nobody") return "this name is taken: nobody owns the kernel's own channels";
  return nullptr;
}

}  // namespace qgpu
