// SPDX-License-Identifier: GPL-2.0
// ConfigIr + run-time edits + inventory -> DesiredState. Pure: no files, no sockets, no clock.
#include "policy.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>

#include "names.hpp"
#include "promise.hpp"

namespace qgpu {

namespace {

constexpr uint32_t kTenthsOfWhole = 1000;
constexpr uint32_t kPpmPerTenth = QGPU_PPM / kTenthsOfWhole;
constexpr size_t kNamesInSentence = 8;

std::string quoted(const std::string &text) {
  std::string out = "\"";
  out += text;
  out += '"';
  return out;
}

std::string tenthsText(uint32_t tenths) {
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " %";
}

// `without` is the word for 0: a time of 0 would say nothing.
Result<uint64_t> timeFromText(const std::string &text, const std::string &without,
                              uint64_t max_ns) {
  if (text == without) return uint64_t{0};
  auto ns = durationFromText(text);
  if (!ns)
    return Error{
        EINVAL,
        "is \"" + text + "\", must be a time such as \"2ms\" or \"500us\", or \"" + without + "\"",
        ""};
  if (*ns == 0 || *ns > max_ns)
    return Error{ERANGE,
                 "is \"" + text + "\", must be more than 0 and at most \"" + durationText(max_ns) +
                     "\", or \"" + without + "\"",
                 ""};
  return *ns;
}

// What holds for one tenant on one card, with the line that the last word came from.
struct Resolved {
  uint32_t weight = QGPU_WEIGHT_DEFAULT;
  Located<uint32_t> guarantee_tenths;
  Located<uint32_t> ceiling_tenths{kTenthsOfWhole, 0};
  Located<uint32_t> work_class{QGPU_CLASS_NORMAL, 0};
  Located<uint64_t> wake_ns;
  Located<uint64_t> hang_ns;
};

void overlay(Resolved &resolved, const TenantNumbers &numbers) {
  if (numbers.weight) resolved.weight = numbers.weight->value;
  if (numbers.guarantee_tenths) resolved.guarantee_tenths = *numbers.guarantee_tenths;
  if (numbers.ceiling_tenths) resolved.ceiling_tenths = *numbers.ceiling_tenths;
  if (numbers.work_class) resolved.work_class = *numbers.work_class;
  if (numbers.wake_ns) resolved.wake_ns = *numbers.wake_ns;
  if (numbers.hang_ns) resolved.hang_ns = *numbers.hang_ns;
}

// An edit has no line of its own: that of the file stays.
void overlay(Resolved &resolved, const TenantEdit &edit) {
  if (edit.weight) resolved.weight = *edit.weight;
  if (edit.guarantee_tenths) resolved.guarantee_tenths.value = *edit.guarantee_tenths;
  if (edit.ceiling_tenths) resolved.ceiling_tenths.value = *edit.ceiling_tenths;
  if (edit.work_class) resolved.work_class.value = *edit.work_class;
  if (edit.wake_ns) resolved.wake_ns.value = *edit.wake_ns;
  if (edit.hang_ns) resolved.hang_ns.value = *edit.hang_ns;
}

const TenantOnCard *overrideOf(const TenantEntry &tenant, const CardInfo &card) {
  const TenantOnCard *found = nullptr;
  for (const TenantOnCard &on_card : tenant.cards) {
    if (on_card.selector == card.uuid) return &on_card;
    if (selects(on_card.selector, card)) found = &on_card;
  }
  return found;
}

Resolved resolve(const TenantEntry &tenant, const CardInfo &card, const Edits &edits) {
  Resolved resolved;
  resolved.guarantee_tenths.line = resolved.ceiling_tenths.line = tenant.line;
  resolved.work_class.line = resolved.wake_ns.line = resolved.hang_ns.line = tenant.line;
  overlay(resolved, tenant.numbers);
  if (const TenantOnCard *on_card = overrideOf(tenant, card)) overlay(resolved, on_card->numbers);
  // An edit for all cards first, then one for this card: the narrower one wins.
  for (const std::string &scope : {std::string(), card.uuid}) {
    const TenantEdit *edit = edits.find(tenant.name, scope);
    if (edit) overlay(resolved, *edit);
    if (scope.empty() && card.uuid.empty()) break;
  }
  return resolved;
}

class CardCompiler {
 public:
  CardCompiler(const ConfigIr &config, const Edits &edits, const CgroupIds &cgroups,
               std::vector<ConfigProblem> &problems)
      : config_(config), edits_(edits), cgroups_(cgroups), problems_(problems) {}

  DesiredCard compile(const CardInfo &card, const CardEntry &entry) {
    DesiredCard desired{card.index,     card.uuid, entry.policy.value,
                        entry.cycle_ns, {},        entry.method};
    if (const CardEdit *edit = edits_.findCard(card.uuid)) desired.policy = edit->policy;

    std::vector<Asked> asked;
    bool has_default = false;
    for (const TenantEntry &tenant : config_.tenants) {
      has_default = has_default || tenant.name == "default";
      asked.push_back({tenant, resolve(tenant, card, edits_)});
      checkTenant(tenant, asked.back().resolved, desired, card);
      desired.tenants.push_back({tenant.name, settings(tenant, asked.back().resolved)});
    }
    if (!has_default) desired.tenants.push_back({"default", {}});
    checkGuarantees(asked, card);
    if (desired.policy == QGPU_POLICY_BURST_SHARE) checkWakes(asked, desired, card);
    return desired;
  }

 private:
  struct Asked {
    const TenantEntry &tenant;
    Resolved resolved;
  };

  void problem(int line, std::string key, std::string reason, int err = EINVAL) {
    ConfigProblem found{config_.file, line, std::move(key), std::move(reason), err};
    // One mistake in one line is one problem, however many cards it concerns.
    for (const ConfigProblem &known : problems_)
      if (known.line == found.line && known.key == found.key) return;
    problems_.push_back(std::move(found));
  }

  void checkGuarantees(const std::vector<Asked> &asked, const CardInfo &card) {
    uint32_t sum_tenths = 0;
    int line_over = 0;
    std::vector<std::string> promises;
    for (const auto &[tenant, resolved] : asked) {
      const auto &[tenths, line] = resolved.guarantee_tenths;
      if (tenths == 0) continue;
      promises.push_back("\"" + tenant.name + "\" " + tenthsText(tenths));
      sum_tenths += tenths;
      if (sum_tenths > kTenthsOfWhole && line_over == 0) line_over = line;
    }
    if (sum_tenths > kTenthsOfWhole)
      problem(line_over, "tenant",
              "guarantees on card " + cardText(card) + " are " + tenthsText(sum_tenths) +
                  " together, over 100 %: " + listText(promises),
              ENOSPC);
  }

  // A wait that no plan of this card can keep.
  void checkWakes(const std::vector<Asked> &asked, const DesiredCard &desired,
                  const CardInfo &card) {
    const auto is_asked = [](const Asked &one) { return one.resolved.wake_ns.value != 0; };
    if (std::none_of(asked.begin(), asked.end(), is_asked)) return;
    const auto bounds = wakeBoundsOf(desired, switchNsOf(desired.method, card.switch_ns));
    for (size_t i = 0; i < asked.size(); ++i) {
      const auto &[wake_ns, line] = asked[i].resolved.wake_ns;
      if (wake_ns == 0 || wake_ns >= bounds[i].ns) continue;
      problem(line, "tenant." + asked[i].tenant.name + ".wake_within",
              quoted(durationText(wake_ns)) + " cannot be kept on card " + cardText(card) + " (" +
                  besideText(asked, asked[i], desired) + "): " + boundText(bounds[i]),
              ENOSPC);
    }
  }

  static std::string boundText(const WakeBound &bound) {
    switch (bound.by) {
      case Hindrance::kOnline:
        return "no wait can be promised beside online tenants";
      case Hindrance::kShares:
        return "no wait can be promised to it, since the others may leave it nothing";
      case Hindrance::kWindows:
        return "no wait can be promised beside windows that may take all the time";
      case Hindrance::kSwitches:
      case Hindrance::kWeights:
        break;
    }
    if (bound.ns > kWakeMaxNs) return "no wait of 10s or less can be";
    // Whole microseconds.
    const std::string least = quoted(durationText((bound.ns + 999) / 1000 * 1000)) + " at least";
    return "must be " + least +
           (bound.by == Hindrance::kWeights ? ", or slices could not follow the weights" : "");
  }

  // Who makes its wait longer.
  static std::string besideText(const std::vector<Asked> &asked, const Asked &self,
                                const DesiredCard &desired) {
    const std::vector<std::string> online = namesOf(asked, isOnline);
    const std::vector<std::string> clocked = namesOf(asked, hasWindows);
    const std::string windows =
        clocked.empty() ? "" : ", windows on the clock of " + listText(clocked);
    if (hasWindows(self)) return "it has windows on the clock";
    if (isOnline(self))
      return std::to_string(online.size()) + " online tenant" + (online.size() == 1 ? "" : "s") +
             windows;
    if (!online.empty()) return "online: " + listText(online);
    // Who belongs to no tenant is not touched under rm, nor counted.
    const bool counted = desired.method == CardMethod::kModule;
    return std::to_string(desired.tenants.size() - !counted) + " tenants" +
           (counted ? ", \"default\" counted" : "") + windows;
  }

  template <typename Which>
  static std::vector<std::string> namesOf(const std::vector<Asked> &asked, Which which) {
    std::vector<std::string> names;
    for (const Asked &a : asked)
      if (which(a)) names.push_back(quoted(a.tenant.name));
    return names;
  }

  static bool hasWindows(const Asked &asked) {
    const Resolved &resolved = asked.resolved;
    return !isOnline(asked) && resolved.ceiling_tenths.value < kTenthsOfWhole &&
           resolved.ceiling_tenths.value == resolved.guarantee_tenths.value;
  }

  static bool isOnline(const Asked &asked) {
    return asked.resolved.work_class.value == QGPU_CLASS_ONLINE;
  }

  void checkTenant(const TenantEntry &tenant, const Resolved &resolved, const DesiredCard &desired,
                   const CardInfo &card) {
    const std::string key = "tenant." + tenant.name;
    const uint32_t guarantee = resolved.guarantee_tenths.value;
    const uint32_t ceiling = resolved.ceiling_tenths.value;
    if (ceiling < guarantee)
      problem(resolved.ceiling_tenths.line, key + ".ceiling",
              "the ceiling " + tenthsText(ceiling) + " is below the guarantee " +
                  tenthsText(guarantee));
    if (desired.policy == QGPU_POLICY_FIXED_SHARE && guarantee == 0 && tenant.name != "default")
      problem(resolved.guarantee_tenths.line, key + ".guarantee",
              quoted(tenant.name) + " has no guarantee: under fixed-share on card " +
                  cardText(card) + " it would never run");
    checkEnforced(key, resolved, desired);
  }

  // Best-effort promises nothing: what waits for another policy may stand. Windows on the clock
  // come when it is their time, for everybody. An executor does not notice work that runs for too
  // long.
  void checkEnforced(const std::string &key, const Resolved &resolved, const DesiredCard &desired) {
    if (desired.policy == QGPU_POLICY_BEST_EFFORT) return;
    auto refuse = [&](int line, const char *name, const std::string &what,
                      const std::string &where) {
      problem(line, key + "." + name,
              what + " is not enforced " + where + " and is therefore refused", EOPNOTSUPP);
    };
    if (desired.policy != QGPU_POLICY_BURST_SHARE) {
      const std::string where = "under " + policyName(desired.policy);
      if (resolved.work_class.value != QGPU_CLASS_NORMAL)
        refuse(resolved.work_class.line, "class",
               "class = \"" + className(resolved.work_class.value) + "\"", where);
      if (resolved.wake_ns.value)
        refuse(resolved.wake_ns.line, "wake_within", "wake_within", where);
    }
    if (desired.method == CardMethod::kRm && resolved.hang_ns.value)
      refuse(resolved.hang_ns.line, "hang_timeout", "hang_timeout", "by method rm");
  }

  TenantSettings settings(const TenantEntry &tenant, const Resolved &resolved) const {
    TenantSettings settings;
    settings.weight = resolved.weight;
    settings.guarantee_ppm = resolved.guarantee_tenths.value * kPpmPerTenth;
    settings.ceiling_ppm = resolved.ceiling_tenths.value * kPpmPerTenth;
    settings.work_class = resolved.work_class.value;
    settings.wake_ns = resolved.wake_ns.value;
    settings.hang_ns = resolved.hang_ns.value;
    if (auto ids = cgroups_.find(tenant.name); ids != cgroups_.end())
      settings.cgroups = ids->second;
    return settings;
  }

  static std::string cardText(const CardInfo &card) {
    return card.uuid.empty() ? card.name : card.uuid;
  }

  static std::string listText(const std::vector<std::string> &items) {
    std::string text;
    for (size_t i = 0; i < items.size() && i < kNamesInSentence; ++i)
      text += (i ? ", " : "") + items[i];
    if (items.size() > kNamesInSentence)
      text += " and " + std::to_string(items.size() - kNamesInSentence) + " more";
    return text;
  }

  const ConfigIr &config_;
  const Edits &edits_;
  const CgroupIds &cgroups_;
  std::vector<ConfigProblem> &problems_;
};

}  // namespace

const DesiredCard *DesiredState::find(const std::string &uuid) const {
  for (const DesiredCard &card : cards)
    if (card.uuid == uuid) return &card;
  return nullptr;
}

Result<uint32_t> tenthsFromPercent(double percent) {
  if (!(percent >= 0 && percent <= 100)) return Error{ERANGE, "must be 0 to 100 percent", ""};
  double tenths = percent * 10;
  double whole = std::round(tenths);
  if (whole == 0 && percent != 0) return Error{ERANGE, "is less than 0.1 percent and not 0", ""};
  if (std::abs(tenths - whole) > 1e-6) return Error{EINVAL, "must be in steps of 0.1 percent", ""};
  return static_cast<uint32_t>(whole);
}

Result<uint32_t> ceilingFromPercent(double percent) {
  auto tenths = tenthsFromPercent(percent);
  if (tenths && *tenths == 0) return Error{ERANGE, "is 0: such a tenant could never run", ""};
  return tenths;
}

Result<uint32_t> workClassFromText(const std::string &text) {
  if (auto work_class = classFromName(text)) return *work_class;
  return Error{EINVAL, "is \"" + text + "\", must be normal, online or offline", ""};
}

Result<uint64_t> wakeFromText(const std::string &text) {
  return timeFromText(text, "none", kWakeMaxNs);
}

Result<uint64_t> hangFromText(const std::string &text) {
  return timeFromText(text, "off", kHangMaxNs);
}

std::string percentText(uint32_t ppm) {
  return tenthsText((ppm + kPpmPerTenth / 2) / kPpmPerTenth);
}

bool selects(const std::string &selector, const CardInfo &card) {
  return selector == card.uuid || selector == std::to_string(card.index);
}

const CardEntry *entryOf(const ConfigIr &config, const CardInfo &card) {
  const CardEntry *by_index = nullptr;
  const CardEntry *all = nullptr;
  for (const CardEntry &entry : config.cards) {
    if (!card.uuid.empty() && entry.match == card.uuid) return &entry;
    if (entry.match == std::to_string(card.index)) by_index = &entry;
    if (entry.match == "all") all = &entry;
  }
  return by_index ? by_index : all;
}

std::vector<CardInfo> placeholderInventory(const ConfigIr &config) {
  std::vector<std::string> selectors;
  for (const CardEntry &entry : config.cards) selectors.push_back(entry.match);
  for (const TenantEntry &tenant : config.tenants)
    for (const TenantOnCard &on_card : tenant.cards) selectors.push_back(on_card.selector);

  std::vector<CardInfo> inventory;
  for (const std::string &selector : selectors) {
    CardInfo card;
    card.name = "\"" + selector + "\"";
    bool is_index = !selector.empty() && selector.size() < 10 &&
                    selector.find_first_not_of("0123456789") == std::string::npos;
    // No real card has this index: "all" must not catch the override of another one.
    card.index = is_index ? static_cast<uint32_t>(std::stoul(selector)) : UINT32_MAX;
    if (!is_index && selector != "all") card.uuid = selector;
    bool known = std::any_of(inventory.begin(), inventory.end(),
                             [&](const CardInfo &other) { return other.name == card.name; });
    if (!known) inventory.push_back(std::move(card));
  }
  return inventory;
}

PolicyOutcome compute(const ConfigIr &config, const Edits &edits,
                      const std::vector<CardInfo> &inventory, const CgroupIds &cgroups) {
  PolicyOutcome outcome;
  CardCompiler compiler(config, edits, cgroups, outcome.problems);
  for (const CardInfo &card : inventory)
    if (const CardEntry *entry = entryOf(config, card))
      outcome.state.cards.push_back(compiler.compile(card, *entry));
  std::stable_sort(outcome.problems.begin(), outcome.problems.end(),
                   [](const ConfigProblem &a, const ConfigProblem &b) { return a.line < b.line; });
  return outcome;
}

}  // namespace qgpu
