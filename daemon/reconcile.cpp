// SPDX-License-Identifier: GPL-2.0
// The difference, and the loop that applies it. Knows nothing of files, percentages or sockets.
#include "reconcile.hpp"

#include <algorithm>
#include <cerrno>

namespace qgpu {

namespace {

// Each pass may find that somebody else replaced the plan meanwhile.
constexpr int kPassesMax = 16;

bool isPermanent(const TenantStatus &tenant) {
  return tenant.id == QGPU_TENANT_NOBODY || tenant.id == QGPU_TENANT_DEFAULT;
}

const TenantStatus *findTenant(const CardSnapshot &card, const std::string &name) {
  for (const TenantStatus &tenant : card.tenants)
    if (tenant.name == name) return &tenant;
  return nullptr;
}

template <class Value>
void change(std::optional<Value> &field, const Value &wanted, const Value &has, bool &differs) {
  if (wanted == has) return;
  field = wanted;
  differs = true;
}

// Sets only what differs; false when nothing does.
bool changeTenant(TenantChange &out, const TenantSettings &wanted, const TenantSettings &has) {
  bool differs = false;
  change(out.weight, wanted.weight, has.weight, differs);
  change(out.guarantee_ppm, wanted.guarantee_ppm, has.guarantee_ppm, differs);
  change(out.ceiling_ppm, wanted.ceiling_ppm, has.ceiling_ppm, differs);
  change(out.wake_ns, wanted.wake_ns, has.wake_ns, differs);
  change(out.work_class, wanted.work_class, has.work_class, differs);
  change(out.hang_ns, wanted.hang_ns, has.hang_ns, differs);
  change(out.memory_bytes, wanted.memory_bytes, has.memory_bytes, differs);
  change(out.cgroups, wanted.cgroups, has.cgroups, differs);
  return differs;
}

size_t sizeOf(const PlanChange &plan) {
  return plan.tenants.size() + (plan.policy ? 1 : 0) + (plan.cycle_ns ? 1 : 0);
}

}  // namespace

PlanChange diff(const DesiredCard &desired, const CardSnapshot &observed,
                std::optional<uint64_t> cycle_in_force) {
  PlanChange plan;
  plan.card_index = observed.info.index;
  plan.generation = observed.info.generation;
  if (observed.info.policy != desired.policy) plan.policy = desired.policy;
  if (cycle_in_force != desired.cycle_ns) plan.cycle_ns = desired.cycle_ns;

  for (const TenantStatus &tenant : observed.tenants) {
    if (isPermanent(tenant)) continue;
    bool wanted = std::any_of(desired.tenants.begin(), desired.tenants.end(),
                              [&](const DesiredTenant &d) { return d.name == tenant.name; });
    if (wanted) continue;
    TenantChange removal;
    removal.name = tenant.name;
    removal.remove = true;
    plan.tenants.push_back(std::move(removal));
  }
  for (const DesiredTenant &tenant : desired.tenants) {
    const TenantStatus *now = findTenant(observed, tenant.name);
    TenantChange change;
    change.name = tenant.name;
    bool differs = changeTenant(change, tenant.settings, now ? now->asked : TenantSettings{});
    // One that does not exist is created even with nothing but defaults.
    if (differs || (!now && tenant.name != "default")) plan.tenants.push_back(std::move(change));
  }
  return plan;
}

Reconciler::Reconciler(Card &card, std::map<std::string, CycleRecord> &cycles,
                       std::function<void()> remember)
    : card_(card), cycles_(cycles), remember_(std::move(remember)) {}

Result<void> Reconciler::observe() {
  if (fresh_) return {};
  auto inventory = card_.inventory();
  if (!inventory) {
    observed_.clear();
    return inventory.error();
  }
  observed_ = std::move(*inventory);
  fresh_ = true;
  return {};
}

const CardSnapshot *Reconciler::find(const std::string &uuid) const {
  for (const CardSnapshot &card : observed_)
    if (card.info.uuid == uuid) return &card;
  return nullptr;
}

std::optional<uint64_t> Reconciler::cycleInForce(const CardSnapshot &card) const {
  // Before the first change of a plan there is no override, whatever an earlier load of the driver
  // had.
  if (card.info.generation <= 1) return 0;
  auto record = cycles_.find(card.info.uuid);
  if (record == cycles_.end()) return 0;
  if (!record->second.sure) return std::nullopt;
  return record->second.cycle_ns;
}

void Reconciler::merge(CardSnapshot &card, const PlanChange &change, PlanReply reply) {
  card.info.generation = reply.generation;
  if (change.policy) card.info.policy = *change.policy;
  std::erase_if(card.tenants, [&](const TenantStatus &tenant) {
    return std::any_of(change.tenants.begin(), change.tenants.end(),
                       [&](const TenantChange &c) { return c.remove && c.name == tenant.name; });
  });
  for (TenantStatus &fresh : reply.tenants) {
    auto at = std::find_if(card.tenants.begin(), card.tenants.end(),
                           [&](const TenantStatus &tenant) { return tenant.name == fresh.name; });
    if (at != card.tenants.end())
      *at = std::move(fresh);
    else
      card.tenants.push_back(std::move(fresh));
  }
}

Result<void> Reconciler::send(const PlanChange &change, const std::string &uuid) {
  if (change.cycle_ns) {
    cycles_[uuid] = {*change.cycle_ns, false};
    remember_();
  }
  ++plans_sent_;
  auto reply = card_.apply(change);
  if (!reply) return reply.error();
  if (change.cycle_ns) {
    cycles_[uuid] = {*change.cycle_ns, true};
    remember_();
  }
  auto at = std::find_if(observed_.begin(), observed_.end(),
                         [&](const CardSnapshot &card) { return card.info.uuid == uuid; });
  if (at != observed_.end()) merge(*at, change, std::move(*reply));
  return {};
}

Result<void> Reconciler::convergeCard(const DesiredCard &desired) {
  bool was_stale = false;
  int passes_without_progress = 0;
  size_t least_left = SIZE_MAX;
  for (int pass = 0; pass < kPassesMax; ++pass) {
    if (auto seen = observe(); !seen) return seen.error();
    const CardSnapshot *card = find(desired.uuid);
    if (!card) return {};  // gone meanwhile
    PlanChange change = diff(desired, *card, cycleInForce(*card));
    if (change.empty()) return {};

    // A card that says yes and does nothing must not be asked for ever.
    if (!was_stale && sizeOf(change) >= least_left && ++passes_without_progress == 2) break;
    least_left = std::min(least_left, sizeOf(change));

    auto sent = send(change, desired.uuid);
    was_stale = !sent && sent.error().err == ESTALE;
    if (!sent) {
      invalidate();
      if (!was_stale) return sent.error();
      continue;
    }
    // The reply is believed; a difference that is left is looked at afresh.
    card = find(desired.uuid);
    if (!diff(desired, *card, cycleInForce(*card)).empty()) invalidate();
  }
  return Error{EIO,
               was_stale ? "the plan is replaced by somebody else all the time"
                         : "the card takes the plan and is not as desired afterwards",
               desired.uuid};
}

std::map<std::string, Error> Reconciler::converge(const DesiredState &desired) {
  std::map<std::string, Error> refusals;
  for (const DesiredCard &card : desired.cards)
    if (auto done = convergeCard(card); !done) refusals.emplace(card.uuid, done.error());
  return refusals;
}

Result<PlanReply> Reconciler::dryRun(const DesiredCard &desired) {
  if (auto seen = observe(); !seen) return seen.error();
  const CardSnapshot *card = find(desired.uuid);
  if (!card) return Error{ENODEV, "no such card", desired.uuid};
  PlanChange change = diff(desired, *card, cycleInForce(*card));
  if (change.empty()) return PlanReply{card->info.generation, {}};
  change.dry_run = true;
  return card_.apply(change);
}

}  // namespace qgpu
