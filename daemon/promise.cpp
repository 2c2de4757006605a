// SPDX-License-Identifier: GPL-2.0
#include "promise.hpp"

#include <algorithm>
#include <deque>
#include <new>
#include <tuple>

#include "exec/core_params.hpp"

extern "C" {
#include "core/bound.h"
}

namespace qgpu {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kSliceMinNs = 1024, kSliceMaxNs = 8'556'380'160;

// T4-class.
constexpr uint64_t kModuleSwitchNs = 100'000;

// Each costs a plan.
constexpr size_t kPairsMax = 4096;

u64 asItIs(u64 slice_ns) { return slice_ns; }

core_settings coreSettings(const TenantSettings &settings) {
  core_settings out;
  core_settings_default(&out);
  out.weight = settings.weight;
  out.guarantee_ppm = settings.guarantee_ppm;
  out.ceiling_ppm = settings.ceiling_ppm;
  out.class_ = static_cast<core_class>(settings.work_class);
  out.wake_ns = settings.wake_ns;
  return out;
}

// As who enforces on this card plans with.
core_params paramsOf(const DesiredCard &card, uint64_t switch_ns) {
  core_params params;
  if (card.method == CardMethod::kRm) {
    const bool all =
        card.policy == QGPU_POLICY_FIXED_SHARE || card.policy == QGPU_POLICY_EQUAL_SHARE;
    uint64_t gated = 0;
    for (const DesiredTenant &tenant : card.tenants)
      gated += tenant.name != "default" && (all || tenant.settings.ceiling_ppm < QGPU_PPM);
    params = exec::coreParams({}, gated);
    params.switch_ns = switch_ns;
    params.slice_round = asItIs;
    return params;
  }
  core_params_default(&params);
  params.switch_ns = switch_ns;
  params.slice_min_ns = kSliceMinNs;
  params.slice_max_ns = kSliceMaxNs;
  params.slice_round = asItIs;
  return params;
}

using Tenants = std::vector<const DesiredTenant *>;

// Does the core that enforces know of it? Under rm it does not of processes of no tenant.
bool isKnown(const DesiredCard &card, const DesiredTenant &tenant) {
  return card.method == CardMethod::kModule || tenant.name != "default";
}

// A core of its own with tenants that have work and some that sleep, and its plan.
class Plan {
 public:
  Plan(const DesiredCard &card, const Tenants &active, const Tenants &asleep, uint64_t switch_ns) {
    const core_params params = paramsOf(card, switch_ns);
    if (core_init(&core_, &params, static_cast<u32>(active.size() + asleep.size()), 1, 0))
      throw std::bad_alloc();
    core_policy_set(&core_, static_cast<core_policy>(card.policy), card.cycle_ns);
    for (const DesiredTenant *tenant : active) core_work(&core_, &add(*tenant), 0, true);
    for (const DesiredTenant *tenant : asleep) add(*tenant);
    core_plan_make(&core_, 0);
    survey();
  }
  ~Plan() { core_fini(&core_); }
  Plan(const Plan &) = delete;
  Plan &operator=(const Plan &) = delete;

  TenantPromise promise(size_t i) const {
    const core_tenant &tenant = members_[i].tenant;
    TenantPromise out;
    core_view view;
    core_tenant_view(&tenant, &view);
    out.share_ppm = view.share_ppm;
    if (core_.policy == CORE_BEST_EFFORT) return out;
    switch (tenant.place) {
      case CORE_ROTATES:
        if (tenant.share_ppm) out.wait_ns = wait(rotation_ns_ - sliceNs(i), visits_);
        out.off_ppm = spread(sliceNs(i), rotation_ns_, rotation_ns_ + switches_ns_);
        break;
      case CORE_RANKED:  // beside online: whenever the turns that it leaves come
        out.off_ppm = spread(turn(tenant), turns_ns_, turns_ns_);
        break;
      case CORE_CLOCKED:
        out.wait_ns = clockedWait(tenant);
        out.off_ppm = spread(tenant.budget_ns, tenant.period_ns, 2 * tenant.period_ns);
        break;
      case CORE_BESIDE:
        out.wait_ns =
            core_.other_slice_ns + 2 * core_.params.switch_ns + beside_ns(tenant) + load_.burst_ns;
        break;
    }
    return out;
  }

  // Who wakes beside those at work is in their rotation, and waits for all of them; a lone one has
  // its whole cycle. 0 = the rotation is not all that is in its way.
  uint64_t wakerWait() const {
    if (core_.policy != CORE_BURST_SHARE || turns_ns_) return 0;
    return wait(rotation_ns_, visits_ + 1);
  }
  // Its part of a round of the rotation; 0 = it is in none.
  uint64_t sliceNs(size_t i) const {
    const Member &member = members_[i];
    const bool rotates = member.tenant.place == CORE_ROTATES && member.tenant.share_ppm;
    return rotates ? member.tsg.planned_ns : 0;
  }
  // Of others that have @slices_ns together, @visits with its own; windows on the clock come in
  // between. 0 = no wait is long enough.
  uint64_t wait(uint64_t slices_ns, size_t visits) const {
    uint64_t wait_ns = 0;
    if (visits > 1)
      wait_ns = core_wait_rotating_ns(&core_.params, static_cast<u32>(visits), slices_ns);
    wait_ns = core_load_stretch(&load_, wait_ns);
    return wait_ns == UINT64_MAX ? 0 : wait_ns;
  }

  uint32_t lossPpm() const {
    const uint64_t round_ns = rotation_ns_ + switches_ns_;
    uint64_t loss = round_ns ? switches_ns_ * CORE_PPM / round_ns : 0;
    if (turns_ns_ && core_.sharing_count >= 2)
      loss = cost() * core_.sharing_count * CORE_PPM / turns_ns_;
    return static_cast<uint32_t>(std::min<uint64_t>(loss + clock_ppm_, CORE_PPM));
  }

 private:
  struct Member {
    core_tenant tenant;
    core_tsg tsg;
  };

  core_tsg &add(const DesiredTenant &tenant) {
    Member &member = members_.emplace_back();
    const core_settings settings = coreSettings(tenant.settings);
    core_tenant_add(&core_, &member.tenant, &settings);
    core_tsg_add(&core_, &member.tsg, &member.tenant);
    core_tsg_list(&core_, &member.tsg, true);
    return member.tsg;
  }

  uint64_t cost() const { return core_window_cost_ns(&core_); }

  void survey() {
    for (const Member &member : members_) {
      const core_tenant &tenant = member.tenant;
      if (tenant.place == CORE_ROTATES && tenant.share_ppm) {
        rotation_ns_ += member.tsg.planned_ns;
        visits_++;
      } else if (tenant.place == CORE_RANKED && tenant.share_ppm) {
        turns_ns_ += turn(tenant) + cost();
      } else if (tenant.place == CORE_CLOCKED && tenant.period_ns && core_tenant_awake(&tenant)) {
        clock_ppm_ += cost() * CORE_PPM / tenant.period_ns;
        core_load_window(&load_, &core_.params, tenant.budget_ns, tenant.period_ns);
      }
    }
    if (visits_ > 1) switches_ns_ = visits_ * core_.params.switch_ns;  // alone nobody is switched
  }

  uint64_t clockedWait(const core_tenant &self) const {
    uint64_t longest_ns = 0;
    for (const Member &member : members_)
      if (&member.tenant != &self && member.tenant.place == CORE_CLOCKED)
        longest_ns = std::max<uint64_t>(longest_ns, 2 * member.tenant.budget_ns);
    return core_wait_clocked_ns(&core_.params, self.budget_ns, self.period_ns, longest_ns);
  }

  uint64_t turn(const core_tenant &tenant) const {
    return std::max<uint64_t>(tenant.cycle_slice_ns, core_.params.tenure_ns);
  }

  // Slices of the other online tenants and their switches.
  uint64_t beside_ns(const core_tenant &self) const {
    uint64_t ns = 0;
    for (const Member &member : members_)
      if (&member.tenant != &self && member.tenant.place == CORE_BESIDE)
        ns += member.tsg.planned_ns + core_.params.switch_ns;
    return ns;
  }

  // phi * (1 - phi) of a cycle that takes @round_ns, over one second.
  static uint32_t spread(uint64_t part_ns, uint64_t cycle_ns, uint64_t round_ns) {
    if (!cycle_ns) return 0;
    const double phi = static_cast<double>(part_ns) / static_cast<double>(cycle_ns);
    return static_cast<uint32_t>(phi * (1 - phi) * static_cast<double>(round_ns) /
                                 static_cast<double>(kSecondNs) * CORE_PPM);
  }

  struct core core_ {};
  std::deque<Member> members_;  // the active first
  uint64_t rotation_ns_ = 0, switches_ns_ = 0, turns_ns_ = 0, clock_ppm_ = 0;
  size_t visits_ = 0;  // in a round of the rotation
  core_load load_{};
};

bool isSame(const TenantSettings &a, const TenantSettings &b) {
  return std::tie(a.weight, a.guarantee_ppm, a.ceiling_ppm, a.wake_ns, a.work_class) ==
         std::tie(b.weight, b.guarantee_ppm, b.ceiling_ppm, b.wake_ns, b.work_class);
}

// In all that a plan is made of.
bool isSame(const DesiredCard &a, const DesiredCard &b) {
  const auto same = [](const DesiredTenant &x, const DesiredTenant &y) {
    return x.name == y.name && isSame(x.settings, y.settings);
  };
  return std::tie(a.method, a.policy, a.cycle_ns) == std::tie(b.method, b.policy, b.cycle_ns) &&
         std::equal(a.tenants.begin(), a.tenants.end(), b.tenants.begin(), b.tenants.end(), same);
}

ActiveSet swapped(ActiveSet set, size_t a, size_t b) {
  auto swap = [&](size_t &i) { i = i == a ? b : i == b ? a : i; };
  if (set.without) swap(*set.without);
  if (set.pair) {
    swap(set.pair->first);
    swap(set.pair->second);
  }
  return set;
}

// The promises of one card, set by set.
class Sets {
 public:
  Sets(const DesiredCard &card, uint64_t switch_ns) : card_(card), switch_ns_(switch_ns) {
    for (const DesiredTenant &tenant : card.tenants) {
      if (tenant.name != "default")
        all_.push_back(&tenant);
      else if (isKnown(card, tenant))
        idle_.push_back(&tenant);
      waits_are_kept_ = waits_are_kept_ || tenant.settings.wake_ns;
    }
    if (!waits_are_kept_) idle_.clear();
    for (size_t i = 0; i < all_.size(); ++i) kindOf(i).push_back(i);
    out.beside_online = card.policy == QGPU_POLICY_BURST_SHARE &&
                        std::any_of(all_.begin(), all_.end(), [](const DesiredTenant *tenant) {
                          return tenant->settings.work_class == QGPU_CLASS_ONLINE;
                        });
  }

  void compute() {
    if (all_.empty()) return;
    begin();
    if (all_.size() == 1) return;
    for (const Kind &kind : kinds_) {
      look({kind.front(), {}});
      look({{}, std::pair(kind.front(), kind.front())});
    }
    lookAtPairs();
    for (const Kind &kind : kinds_) level(kind);
  }

  ComputedPromises out;

 private:
  using Kind = std::vector<size_t>;  // tenants of the same settings

  Kind &kindOf(size_t i) {
    for (Kind &kind : kinds_)
      if (isSame(all_[kind.front()]->settings, all_[i]->settings)) return kind;
    return kinds_.emplace_back();
  }

  // Those of the largest shares first, so that with whom each is worst off is among them.
  void lookAtPairs() {
    std::vector<const Kind *> partners;
    for (const Kind &kind : kinds_) partners.push_back(&kind);
    auto share = [&](const Kind *kind) { return out.all.tenants[kind->front()].share_ppm; };
    std::stable_sort(partners.begin(), partners.end(),
                     [&](const Kind *a, const Kind *b) { return share(a) > share(b); });
    size_t looked = 0;
    for (size_t p = 0; p < partners.size(); ++p) {
      for (size_t i = p; i < partners.size(); ++i, ++looked) {
        if (i == p && partners[p]->size() < 2) continue;
        if (looked >= kPairsMax) {
          out.every_pair = false;
          return;
        }
        look({{}, std::pair(partners[p]->front(), partners[i]->at(i == p))});
      }
    }
  }

  // Does the plan of others depend on it while it sleeps? What was promised has room for everybody.
  bool mattersAsleep(const DesiredTenant &tenant) const {
    return waits_are_kept_ || tenant.settings.work_class == QGPU_CLASS_ONLINE;
  }

  // What one of them may come to, every one may.
  void level(const Kind &kind) {
    auto &worst = out.worst.tenants;
    const size_t longest = *std::max_element(kind.begin(), kind.end(), [&](size_t a, size_t b) {
      return worst[a].wait_ns < worst[b].wait_ns;
    });
    TenantPromise common = worst[longest];
    for (const size_t i : kind) {
      common.share_ppm = std::min(common.share_ppm, worst[i].share_ppm);
      common.off_ppm = std::max(common.off_ppm, worst[i].off_ppm);
    }
    for (const size_t i : kind) {
      if (worst[i].wait_ns < common.wait_ns)
        out.longest_wait[i] = swapped(out.longest_wait[longest], longest, i);
      common.name = worst[i].name;
      worst[i] = common;
    }
  }

  void begin() {
    const Plan plan(card_, all_, idle_, switch_ns_);
    out.plans++;
    for (size_t i = 0; i < all_.size(); ++i) {
      out.all.tenants.push_back(plan.promise(i));
      out.all.tenants.back().name = all_[i]->name;
      slices_ns_.push_back(plan.sliceNs(i));
    }
    out.all.loss_ppm = plan.lossPpm();
    out.worst = out.all;
    out.longest_wait.resize(all_.size());
  }

  // For each figure the worse of what is known and what this set comes to.
  void look(const ActiveSet &set) {
    Tenants active, asleep = idle_;
    for (size_t i = 0; i < all_.size(); ++i)
      if (set.has(i))
        active.push_back(all_[i]);
      else if (mattersAsleep(*all_[i]))
        asleep.push_back(all_[i]);
    if (active.empty()) return;
    const Plan plan(card_, active, asleep, switch_ns_);
    out.plans++;
    const uint64_t waker_ns = plan.wakerWait();
    out.worst.loss_ppm = std::max(out.worst.loss_ppm, plan.lossPpm());
    for (size_t i = 0, at = 0; i < all_.size(); ++i) {
      TenantPromise &worst = out.worst.tenants[i];
      if (!set.has(i)) {
        if (slices_ns_[i]) keepWait(i, set, waker_ns);
        continue;
      }
      const TenantPromise promise = plan.promise(at++);
      keepWait(i, set, promise.wait_ns);
      worst.share_ppm = std::min(worst.share_ppm, promise.share_ppm);
      worst.off_ppm = std::max(worst.off_ppm, promise.off_ppm);
    }
    if (set.without) mix(plan, set);
  }

  // One falls asleep or wakes while everybody else works: in that round each has one visit, of
  // either plan.
  void mix(const Plan &fewer, const ActiveSet &set) {
    std::vector<uint64_t> longer_ns;
    uint64_t round_ns = 0;
    size_t visits = 0;
    for (size_t i = 0, at = 0; i < all_.size(); ++i) {
      longer_ns.push_back(set.has(i) ? std::max(slices_ns_[i], fewer.sliceNs(at++))
                                     : slices_ns_[i]);
      round_ns += longer_ns.back();
      visits += longer_ns.back() != 0;
    }
    for (size_t i = 0; i < all_.size(); ++i)
      if (slices_ns_[i] && slices_ns_[*set.without])
        keepWait(i, set, fewer.wait(round_ns - longer_ns[i], visits));
  }

  void keepWait(size_t i, const ActiveSet &set, uint64_t wait_ns) {
    if (wait_ns <= out.worst.tenants[i].wait_ns) return;
    out.worst.tenants[i].wait_ns = wait_ns;
    out.longest_wait[i] = set;
  }

  const DesiredCard &card_;
  uint64_t switch_ns_;
  Tenants all_;
  Tenants idle_;  // never has work, and is counted
  bool waits_are_kept_ = false;
  std::deque<Kind> kinds_;
  std::vector<uint64_t> slices_ns_;  // with everybody at work
};

}  // namespace

std::vector<WakeBound> wakeBoundsOf(const DesiredCard &card, uint64_t switch_ns) {
  const core_params params = paramsOf(card, switch_ns);
  std::vector<core_settings> settings;
  for (const DesiredTenant &tenant : card.tenants)
    if (isKnown(card, tenant)) settings.push_back(coreSettings(tenant.settings));
  core_crowd crowd;
  core_crowd_of(&crowd, &params, settings.data(), static_cast<u32>(settings.size()));
  std::vector<WakeBound> bounds;
  const core_settings *known = settings.data();
  for (const DesiredTenant &tenant : card.tenants) {
    const core_settings stranger = coreSettings(tenant.settings);
    const core_wake_bound bound =
        core_wake_bound_of(&crowd, isKnown(card, tenant) ? known++ : &stranger);
    bounds.push_back({bound.ns, static_cast<Hindrance>(bound.by)});
  }
  return bounds;
}

uint64_t switchNsOf(CardMethod method, uint64_t told_ns) {
  if (told_ns) return told_ns;
  return method == CardMethod::kRm ? exec::CardParams{}.switch_ns : kModuleSwitchNs;
}

ComputedPromises promisesOf(const DesiredCard &card, uint64_t switch_ns) {
  Sets sets(card, switch_ns);
  sets.compute();
  return std::move(sets.out);
}

const ComputedPromises &PromiseBook::of(const DesiredCard &card, uint64_t switch_ns) {
  for (const Entry &entry : entries_)
    if (entry.switch_ns == switch_ns && isSame(entry.card, card)) return entry.promises;
  entries_.push_back({card, switch_ns, promisesOf(card, switch_ns)});
  return entries_.back().promises;
}

size_t PromiseBook::plans() const {
  size_t plans = 0;
  for (const Entry &entry : entries_) plans += entry.promises.plans;
  return plans;
}

}  // namespace qgpu
