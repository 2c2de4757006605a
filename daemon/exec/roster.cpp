// SPDX-License-Identifier: GPL-2.0
#include "roster.hpp"

#include <algorithm>
#include <cerrno>
#include <set>

#include "core_params.hpp"

extern "C" {
#include "core/bound.h"
}

namespace qgpu::exec {
namespace {

core_settings settingsOf(const PlanTenant &asked, bool by_clock) {
  core_settings out{};
  out.weight = asked.weight;
  out.guarantee_ppm = asked.guarantee_ppm;
  out.ceiling_ppm = asked.ceiling_ppm;
  out.class_ = static_cast<core_class>(asked.work_class);
  out.wake_ns = asked.wake_ns;
  out.hang_ns = asked.hang_ns;
  // Guarantee and ceiling the same: windows of its own.
  if (by_clock && asked.ceiling_ppm < CORE_PPM) out.guarantee_ppm = asked.ceiling_ppm;
  return out;
}

// What the core knows and an executor does not do: nothing tells it that work keeps the engine
// which is to leave. And what cannot be enforced without knowing who has work.
Result<void> checkOne(const PlanTenant &tenant, bool by_clock) {
  if (tenant.hang_ns)
    return Error{EOPNOTSUPP, "method rm does not notice work that runs for too long",
                 "hang_timeout"};
  const std::string why = " needs the driver's context-switch trace, which cannot be had";
  if (by_clock && tenant.work_class != CORE_NORMAL)
    return Error{EOPNOTSUPP, "a class other than normal" + why, "class"};
  if (by_clock && tenant.wake_ns) return Error{EOPNOTSUPP, "a promised wait" + why, "wake_within"};
  return {};
}

const char *nameOf(core_field field) {
  switch (field) {
    case CORE_FIELD_NONE:
      return "plan";
    case CORE_FIELD_POLICY:
      return "policy";
    case CORE_FIELD_CYCLE:
      return "cycle";
    case CORE_FIELD_WEIGHT:
      return "weight";
    case CORE_FIELD_GUARANTEE:
      return "guarantee";
    case CORE_FIELD_CEILING:
      return "ceiling";
    case CORE_FIELD_CLASS:
      return "class";
    case CORE_FIELD_WAKE:
      return "wake_within";
    case CORE_FIELD_HANG:
      return "hang_timeout";
    default:
      return "setting";
  }
}

// Longer promises are none.
constexpr uint64_t kWakeMaxNs = 10'000'000'000;

Error wakeRefusal(const core_refusal &refusal, const std::string &field) {
  if (refusal.bound.ns > kWakeMaxNs)
    return {ENOSPC, "no longest wait can be promised beside these tenants", field};
  return {ENOSPC,
          "the shortest wait that can be promised is " +
              std::to_string((refusal.bound.ns + 999) / 1000) + " us" +
              (refusal.bound.by == CORE_HINDERED_BY_WEIGHTS ? ", for slices to follow the weights"
                                                            : ""),
          field};
}

Error sentenceOf(const core_refusal &refusal) {
  const std::string field = nameOf(refusal.field);
  switch (-refusal.error) {
    case ENOSPC:
      if (refusal.field == CORE_FIELD_WAKE) return wakeRefusal(refusal, field);
      return {ENOSPC,
              "guarantees add up to " + std::to_string(refusal.sum_ppm / 10000) + "." +
                  std::to_string(refusal.sum_ppm / 1000 % 10) + " % of the card",
              field};
    case EOPNOTSUPP:
      return {EOPNOTSUPP, "this " + field + " is not enforced under this policy", field};
    default:
      return {-refusal.error, "this " + field + " is outside its range", field};
  }
}

}  // namespace

// Tenants whose limits are kept by stopping them.
uint64_t gatedOf(const Plan &plan) {
  const bool all =
      plan.head.policy == QGPU_POLICY_FIXED_SHARE || plan.head.policy == QGPU_POLICY_EQUAL_SHARE;
  uint64_t gated = 0;
  for (const PlanTenant &tenant : plan.tenants) gated += all || tenant.ceiling_ppm < QGPU_PPM;
  return gated;
}

Result<void> Roster::check(const Plan &plan, uint32_t &guilty) const {
  std::vector<core_settings> settings;
  std::set<uint32_t> ids;
  guilty = kNoTenant;
  for (const PlanTenant &tenant : plan.tenants) {
    if (!ids.insert(tenant.id).second || tenant.id == kNoTenant) {
      guilty = tenant.id;
      return Error{EINVAL, "a tenant is in the plan twice", "id"};
    }
    const bool is_enforced = plan.head.policy != CORE_BEST_EFFORT;
    if (const auto may = is_enforced ? checkOne(tenant, by_clock_) : Result<void>(); !may) {
      guilty = tenant.id;
      return may;
    }
    settings.push_back(settingsOf(tenant, by_clock_));
  }
  if (plan.head.generation < plan_.generation)
    return Error{
        ESTALE, "the plan in force is of generation " + std::to_string(plan_.generation), {}};
  core_refusal refusal{};
  core_params params = core_.params;
  params.period_min_ns = periodNs(gatedOf(plan));
  if (core_check(&params, static_cast<core_policy>(plan.head.policy), plan.head.cycle_ns,
                 settings.data(), static_cast<uint32_t>(settings.size()), &refusal) == 0)
    return {};
  if (refusal.tenant < plan.tenants.size()) guilty = plan.tenants[refusal.tenant].id;
  Error error = sentenceOf(refusal);
  if (by_clock_ && error.err == ENOSPC && refusal.field == CORE_FIELD_GUARANTEE)
    error.sentence += " (without the driver's trace a ceiling is one, too)";
  return error;
}

void Roster::apply(const Plan &plan) {
  std::set<uint32_t> kept;
  for (const PlanTenant &asked : plan.tenants) kept.insert(asked.id);
  for (auto it = tenants_.begin(); it != tenants_.end();) {
    if (kept.count(it->first)) {
      ++it;
      continue;
    }
    for (const auto &tsg : tsgs_)
      if (tsg->tenant == it->second.get()) moveTsg(*tsg, nullptr);
    core_tenant_remove(&core_, &it->second->core);
    it = tenants_.erase(it);
  }
  for (const PlanTenant &asked : plan.tenants) {
    auto &tenant = tenants_[asked.id];
    const core_settings settings = settingsOf(asked, by_clock_);
    if (!tenant) {
      tenant = std::make_unique<ManagedTenant>();
      core_tenant_add(&core_, &tenant->core, &settings);
    } else {
      core_tenant_set(&core_, &tenant->core, &settings);
    }
    tenant->asked = asked;
  }
  if (plan_.policy != plan.head.policy || plan_.cycle_ns != plan.head.cycle_ns || !plan_.generation)
    core_policy_set(&core_, static_cast<core_policy>(plan.head.policy), plan.head.cycle_ns);
  promises_waits_ = std::any_of(plan.tenants.begin(), plan.tenants.end(),
                                [](const PlanTenant &asked) { return asked.wake_ns != 0; });
  plan_ = plan.head;
}

ManagedTenant *Roster::tenant(uint32_t id) const {
  const auto it = tenants_.find(id);
  return it == tenants_.end() ? nullptr : it->second.get();
}

ManagedTsg &Roster::add(ManagedTsg tsg, ManagedTenant *tenant) {
  tsgs_.push_back(std::make_unique<ManagedTsg>(std::move(tsg)));
  ManagedTsg &added = *tsgs_.back();
  added.tenant = tenant;
  core_tsg_add(&core_, &added.core, tenant ? &tenant->core : nullptr);
  core_tsg_list(&core_, &added.core, true);
  return added;
}

void Roster::moveTsg(ManagedTsg &tsg, ManagedTenant *tenant) {
  if (tsg.tenant == tenant) return;
  core_tsg_remove(&core_, &tsg.core);
  tsg.tenant = tenant;
  core_tsg_add(&core_, &tsg.core, tenant ? &tenant->core : nullptr);
  core_tsg_list(&core_, &tsg.core, true);
}

void Roster::move(const ProcessId &process, ManagedTenant *tenant) {
  for (const auto &tsg : tsgs_)
    if (tsg->process == process) moveTsg(*tsg, tenant);
}

void Roster::remove(const ProcessId &process, uint32_t handle) {
  tsgs_.remove_if([&](const std::unique_ptr<ManagedTsg> &tsg) {
    if (tsg->process != process || tsg->tsg.handle != handle) return false;
    core_tsg_remove(&core_, &tsg->core);
    return true;
  });
}

void Roster::removeProcess(const ProcessId &process) {
  tsgs_.remove_if([&](const std::unique_ptr<ManagedTsg> &tsg) {
    if (tsg->process != process) return false;
    core_tsg_remove(&core_, &tsg->core);
    return true;
  });
}

ManagedTsg *Roster::find(const ProcessId &process, uint32_t handle) {
  for (const auto &tsg : tsgs_)
    if (tsg->process == process && tsg->tsg.handle == handle) return tsg.get();
  return nullptr;
}

}  // namespace qgpu::exec
