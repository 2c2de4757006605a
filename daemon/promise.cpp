// SPDX-License-Identifier: GPL-2.0
#include "promise.hpp"

#include <algorithm>
#include <deque>
#include <new>

extern "C" {
#include "core/core.h"
}

namespace qgpu {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kSliceMaxNs = 8'556'380'160;

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

// A core of its own with these tenants, all of whom have work, and its plan.
class Plan {
 public:
  Plan(const DesiredCard &card, const std::vector<const DesiredTenant *> &active,
       uint64_t switch_ns) {
    core_params params;
    core_params_default(&params);
    params.switch_ns = switch_ns;
    params.slice_min_ns = 1;
    params.slice_max_ns = kSliceMaxNs;
    params.slice_round = asItIs;
    if (core_init(&core_, &params, static_cast<u32>(active.size()), 1, 0)) throw std::bad_alloc();
    core_policy_set(&core_, static_cast<core_policy>(card.policy), card.cycle_ns);
    for (const DesiredTenant *tenant : active) {
      Member &member = members_.emplace_back();
      const core_settings settings = coreSettings(tenant->settings);
      core_tenant_add(&core_, &member.tenant, &settings);
      core_tsg_add(&core_, &member.tsg, &member.tenant);
      core_tsg_list(&core_, &member.tsg, true);
      core_work(&core_, &member.tsg, 0, true);
    }
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
        out.wait_ns = stretched(rotation_ns_ - tenant.cycle_slice_ns + switches_ns_);
        out.off_ppm = spread(tenant.cycle_slice_ns, rotation_ns_, rotation_ns_ + switches_ns_);
        break;
      case CORE_RANKED:
        // While online sleeps; what it has while online works is its share, whenever that comes.
        out.wait_ns = view.share_ppm ? stretched(turns_ns_ - turn(tenant)) : 0;
        out.off_ppm = spread(turn(tenant), turns_ns_, turns_ns_);
        break;
      case CORE_CLOCKED:
        out.wait_ns = 2 * (tenant.period_ns - tenant.budget_ns);
        out.off_ppm = spread(tenant.budget_ns, tenant.period_ns, 2 * tenant.period_ns);
        break;
      case CORE_BESIDE:
        out.wait_ns = core_.other_slice_ns + 2 * core_.params.switch_ns + others_ns(tenant);
        break;
    }
    return out;
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

  uint64_t cost() const { return core_window_cost_ns(&core_); }

  void survey() {
    for (const Member &member : members_) {
      const core_tenant &tenant = member.tenant;
      if (tenant.place == CORE_ROTATES && tenant.share_ppm) {
        rotation_ns_ += tenant.cycle_slice_ns;
        switches_ns_ += core_.params.switch_ns;
      } else if (tenant.place == CORE_RANKED && tenant.share_ppm) {
        turns_ns_ += turn(tenant) + cost();
      } else if (tenant.place == CORE_CLOCKED && tenant.period_ns) {
        clock_ppm_ += cost() * CORE_PPM / tenant.period_ns;
        clock_used_ppm_ += (tenant.budget_ns + cost()) * CORE_PPM / tenant.period_ns;
        clock_ns_ += tenant.budget_ns + cost();
      }
    }
    if (switches_ns_ <= core_.params.switch_ns) switches_ns_ = 0;  // alone nobody is switched
  }

  static uint64_t turn(const core_tenant &tenant) {
    return std::max<uint64_t>(tenant.cycle_slice_ns, CORE_TENURE_NS);
  }

  // Windows on the clock come in between.
  uint64_t stretched(uint64_t wait_ns) const {
    if (!clock_ns_ || clock_used_ppm_ >= CORE_PPM) return wait_ns + clock_ns_;
    return (wait_ns + clock_ns_) * CORE_PPM / (CORE_PPM - clock_used_ppm_);
  }

  // Slices of the other online tenants, and their switches; windows that must not wait.
  uint64_t others_ns(const core_tenant &self) const {
    uint64_t ns = 0, longest_ns = 0;
    for (const Member &member : members_) {
      if (&member.tenant == &self) continue;
      if (member.tenant.place == CORE_BESIDE) ns += member.tsg.planned_ns + core_.params.switch_ns;
      if (member.tenant.place == CORE_CLOCKED)
        longest_ns = std::max<uint64_t>(longest_ns, member.tenant.budget_ns + cost());
    }
    return ns + longest_ns;
  }

  // phi * (1 - phi) of a cycle that takes @round_ns, over one second.
  static uint32_t spread(uint64_t part_ns, uint64_t cycle_ns, uint64_t round_ns) {
    if (!cycle_ns) return 0;
    const double phi = static_cast<double>(part_ns) / static_cast<double>(cycle_ns);
    return static_cast<uint32_t>(phi * (1 - phi) * static_cast<double>(round_ns) /
                                 static_cast<double>(kSecondNs) * CORE_PPM);
  }

  struct core core_ {};
  std::deque<Member> members_;
  uint64_t rotation_ns_ = 0, switches_ns_ = 0, turns_ns_ = 0;
  uint64_t clock_ns_ = 0, clock_ppm_ = 0, clock_used_ppm_ = 0;
};

CardPromise promiseOf(const DesiredCard &card, const std::vector<const DesiredTenant *> &active,
                      uint64_t switch_ns) {
  CardPromise out;
  const Plan plan(card, active, switch_ns);
  for (size_t i = 0; i < active.size(); ++i) {
    out.tenants.push_back(plan.promise(i));
    out.tenants.back().name = active[i]->name;
  }
  out.loss_ppm = plan.lossPpm();
  return out;
}

// For each figure the worse of what is known and what this set comes to.
void keepWorst(ComputedPromises &out, const ActiveSet &set, const CardPromise &of_set) {
  CardPromise &worst = out.worst;
  worst.loss_ppm = std::max(worst.loss_ppm, of_set.loss_ppm);
  auto promise = of_set.tenants.begin();
  for (size_t i = 0; i < worst.tenants.size(); ++i) {
    if (!set.has(i)) continue;
    TenantPromise &mine = worst.tenants[i];
    if (promise->wait_ns > mine.wait_ns) out.longest_wait[i] = set;
    mine.share_ppm = std::min(mine.share_ppm, promise->share_ppm);
    mine.wait_ns = std::max(mine.wait_ns, promise->wait_ns);
    mine.off_ppm = std::max(mine.off_ppm, promise->off_ppm);
    ++promise;
  }
}

using Tenants = std::vector<const DesiredTenant *>;

Tenants membersOf(const Tenants &all, const ActiveSet &set) {
  if (set.pair) return {all[set.pair->first], all[set.pair->second]};
  Tenants members = all;
  if (set.without) members.erase(members.begin() + static_cast<long>(*set.without));
  return members;
}

}  // namespace

ComputedPromises promisesOf(const DesiredCard &card, uint64_t switch_ns) {
  Tenants all;
  for (const DesiredTenant &tenant : card.tenants)
    if (tenant.name != "default") all.push_back(&tenant);
  ComputedPromises out;
  if (all.empty()) return out;
  out.all = promiseOf(card, all, switch_ns);
  out.worst = out.all;
  out.longest_wait.resize(all.size());
  const auto look = [&](const ActiveSet &set) {
    keepWorst(out, set, promiseOf(card, membersOf(all, set), switch_ns));
  };
  size_t pairs = 0;
  for (size_t i = 0; i < all.size() && all.size() > 1; ++i) {
    look({i, {}});
    for (size_t j = i + 1; j < all.size() && pairs < kPairsMax; ++j, ++pairs)
      look({{}, std::pair(i, j)});
  }
  return out;
}

}  // namespace qgpu
