// SPDX-License-Identifier: GPL-2.0
// ConfigIr + run-time edits + inventory -> DesiredState. Pure: no files, no sockets, no clock.
#include "policy.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <numeric>

#include "names.hpp"

namespace qgpu {

namespace {

constexpr uint32_t kTenthsOfWhole = 1000;
constexpr uint32_t kPpmPerTenth = QGPU_PPM / kTenthsOfWhole;
constexpr size_t kNamesInSentence = 8;

std::string tenthsText(uint32_t tenths) {
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " %";
}

bool selects(const std::string &selector, const CardInfo &card) {
  return selector == card.uuid || selector == std::to_string(card.index);
}

// What holds for one tenant on one card, with the line that the last word came from.
struct Resolved {
  uint32_t weight = QGPU_WEIGHT_DEFAULT;
  Located<uint32_t> guarantee_tenths;
  Located<uint32_t> ceiling_tenths{kTenthsOfWhole, 0};
};

void overlay(Resolved &resolved, const TenantNumbers &numbers) {
  if (numbers.weight) resolved.weight = numbers.weight->value;
  if (numbers.guarantee_tenths) resolved.guarantee_tenths = *numbers.guarantee_tenths;
  if (numbers.ceiling_tenths) resolved.ceiling_tenths = *numbers.ceiling_tenths;
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
  resolved.guarantee_tenths.line = tenant.line;
  overlay(resolved, tenant.numbers);
  if (const TenantOnCard *on_card = overrideOf(tenant, card)) overlay(resolved, on_card->numbers);
  // An edit for all cards first, then one for this card: the narrower one wins.
  for (const std::string &scope : {std::string(), card.uuid}) {
    const TenantEdit *edit = edits.find(tenant.name, scope);
    if (!edit) continue;
    if (edit->weight) resolved.weight = *edit->weight;
    if (edit->guarantee_tenths) resolved.guarantee_tenths.value = *edit->guarantee_tenths;
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

    uint32_t sum_tenths = 0;
    int line_over = 0;
    std::vector<std::string> promises;
    bool has_default = false;
    for (const TenantEntry &tenant : config_.tenants) {
      has_default = has_default || tenant.name == "default";
      Resolved resolved = resolve(tenant, card, edits_);
      checkTenant(tenant, resolved, desired.policy, entry.method, card);
      if (resolved.guarantee_tenths.value > 0) {
        promises.push_back("\"" + tenant.name + "\" " +
                           tenthsText(resolved.guarantee_tenths.value));
        sum_tenths += resolved.guarantee_tenths.value;
        if (sum_tenths > kTenthsOfWhole && line_over == 0)
          line_over = resolved.guarantee_tenths.line;
      }
      desired.tenants.push_back({tenant.name, settings(tenant, resolved)});
      if (enforcesCeiling(desired.policy, entry.method))
        desired.tenants.back().settings.ceiling_ppm = resolved.ceiling_tenths.value * kPpmPerTenth;
    }
    if (!has_default) desired.tenants.push_back({"default", {}});
    if (sum_tenths > kTenthsOfWhole)
      problem(line_over, "tenant",
              "guarantees on card " + cardText(card) + " are " + tenthsText(sum_tenths) +
                  " together, over 100 %: " + listText(promises),
              ENOSPC);
    return desired;
  }

 private:
  void problem(int line, std::string key, std::string reason, int err = EINVAL) {
    ConfigProblem found{config_.file, line, std::move(key), std::move(reason), err};
    // One mistake in one line is one problem, however many cards it concerns.
    for (const ConfigProblem &known : problems_)
      if (known.line == found.line && known.key == found.key) return;
    problems_.push_back(std::move(found));
  }

  // An executor holds whoever has used up a ceiling; the module's plan has no words for one yet.
  static bool enforcesCeiling(uint32_t policy, CardMethod method) {
    return method == CardMethod::kRm && policy == QGPU_POLICY_BURST_SHARE;
  }

  void checkTenant(const TenantEntry &tenant, const Resolved &resolved, uint32_t policy,
                   CardMethod method, const CardInfo &card) {
    std::string key = "tenant." + tenant.name;
    uint32_t guarantee = resolved.guarantee_tenths.value;
    uint32_t ceiling = resolved.ceiling_tenths.value;
    int ceiling_line = resolved.ceiling_tenths.line;
    if (ceiling < guarantee) {
      problem(ceiling_line, key + ".ceiling",
              "the ceiling " + tenthsText(ceiling) + " is below the guarantee " +
                  tenthsText(guarantee));
    } else if (enforcesCeiling(policy, method)) {
      // Any ceiling that is not below the guarantee will do.
    } else if (ceiling < kTenthsOfWhole && policy != QGPU_POLICY_FIXED_SHARE) {
      problem(ceiling_line, key + ".ceiling",
              "a ceiling below 100 % under " + policyName(policy) +
                  " is not enforced in this version and is therefore refused",
              EOPNOTSUPP);
    } else if (ceiling < kTenthsOfWhole && ceiling != guarantee) {
      problem(ceiling_line, key + ".ceiling",
              "under fixed-share the ceiling is the guarantee (" + tenthsText(guarantee) +
                  "): leave it out");
    }
    if (policy == QGPU_POLICY_FIXED_SHARE && guarantee == 0 && tenant.name != "default")
      problem(
          resolved.guarantee_tenths.line, key + ".guarantee",
          "has no guarantee: under fixed-share on card " + cardText(card) + " it would never run");
  }

  TenantSettings settings(const TenantEntry &tenant, const Resolved &resolved) const {
    TenantSettings settings;
    settings.weight = resolved.weight;
    settings.guarantee_ppm = resolved.guarantee_tenths.value * kPpmPerTenth;
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
  if (std::abs(tenths - whole) > 1e-6) return Error{EINVAL, "must be in steps of 0.1 percent", ""};
  return static_cast<uint32_t>(whole);
}

std::string percentText(uint32_t ppm) {
  return tenthsText((ppm + kPpmPerTenth / 2) / kPpmPerTenth);
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

std::vector<ComputedShare> sharesWhenAllBusy(const DesiredCard &card) {
  std::vector<ComputedShare> shares;
  std::vector<uint64_t> weights;
  uint64_t guaranteed_ppm = 0;
  for (const DesiredTenant &tenant : card.tenants) {
    if (tenant.name == "default") continue;
    // These two know no settings: all are alike.
    bool alike = card.policy == QGPU_POLICY_BEST_EFFORT || card.policy == QGPU_POLICY_EQUAL_SHARE;
    shares.push_back({tenant.name, alike ? 0 : tenant.settings.guarantee_ppm});
    weights.push_back(alike ? 1 : tenant.settings.weight);
    guaranteed_ppm += shares.back().share_ppm;
  }
  uint64_t total_weight = std::accumulate(weights.begin(), weights.end(), uint64_t{0});
  if (card.policy == QGPU_POLICY_FIXED_SHARE || total_weight == 0 || guaranteed_ppm > QGPU_PPM)
    return shares;

  // The rest by weight; what rounding leaves goes to the largest fractions.
  uint64_t rest_ppm = QGPU_PPM - guaranteed_ppm;
  uint64_t left_ppm = rest_ppm;
  std::vector<std::pair<uint64_t, size_t>> fractions;
  for (size_t i = 0; i < shares.size(); ++i) {
    uint64_t product = rest_ppm * weights[i];
    shares[i].share_ppm += static_cast<uint32_t>(product / total_weight);
    left_ppm -= product / total_weight;
    fractions.emplace_back(product % total_weight, i);
  }
  std::stable_sort(fractions.begin(), fractions.end(),
                   [](const auto &a, const auto &b) { return a.first > b.first; });
  for (size_t i = 0; i < left_ppm; ++i) ++shares[fractions[i].second].share_ppm;
  return shares;
}

}  // namespace qgpu
