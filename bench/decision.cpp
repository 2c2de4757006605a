// SPDX-License-Identifier: GPL-2.0
//
// decision.cpp - real time of one decision of the core: charge, pick, arm
//
// 2 ... 1000 tenants of which 30 % change between having work and none all the time, under
// rotation and under exclusive windows. One decision = a look that charges, one observation of
// another TSG's work, pick, and the time of the next look. A decision that also makes a plan, O(n)
// and at most every max(5 ms, C/4), is timed in columns of its own. Reading the clock is in the
// figures.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <random>
#include <vector>

#include "quantile.hpp"

extern "C" {
#include "core/core.h"
#include "hw/hw_ops.h"
}

namespace {

using Clock = std::chrono::steady_clock;
using qgpu::bench::quantile;

struct Tenant {
  core_tenant core;
  core_tsg tsg;
};

core_params params() {
  core_params p;
  core_params_default(&p);
  p.slice_min_ns = 1024;
  p.slice_max_ns = 8'556'380'160;
  p.slice_round = tu104_ops.slice_round;
  return p;
}

double nsOf(Clock::duration d) { return std::chrono::duration<double, std::nano>(d).count(); }

struct Result {
  double p50, p99, max, plan_p50, plan_p99;
  size_t plans;
};

Result measure(core_policy policy, unsigned n) {
  std::mt19937_64 random(n);
  struct core core;
  const core_params p = params();
  uint64_t now = 1'000'000'000'000;
  core_init(&core, &p, n, 1, now);
  core_policy_set(&core, policy, 0);
  std::vector<std::unique_ptr<Tenant>> tenants;
  for (unsigned i = 0; i < n; i++) {
    tenants.push_back(std::make_unique<Tenant>());
    core_settings settings;
    core_settings_default(&settings);
    settings.weight = 1 + static_cast<u32>(random() % 1000);
    settings.guarantee_ppm = policy == CORE_FIXED_SHARE ? CORE_PPM / n : 0;
    core_tenant_add(&core, &tenants[i]->core, &settings);
    core_tsg_add(&core, &tenants[i]->tsg, &tenants[i]->core);
    core_tsg_list(&core, &tenants[i]->tsg, true);
    core_work(&core, &tenants[i]->tsg, now, true);
  }
  core_plan_make(&core, now);
  core_pick(&core, now);

  const unsigned changing = std::max(1u, n * 3 / 10);
  std::vector<double> decisions, plans;
  for (int i = 0; i < 300'000; i++) {
    // Who computes: whoever the window admits; the rotation has no TSG of its own.
    const bool owned = core.window.owner && core.window.owner->tsgs;
    core_tsg *on = owned ? core.window.owner->tsgs : &tenants[random() % n]->tsg;
    Tenant &other = *tenants[random() % changing];
    const bool has_work = random() % 2;
    const uint64_t planned_ns = core.planned_at_ns;
    const auto begin = Clock::now();
    core_look(&core, now, CORE_SEEN_TSG, on);
    core_work(&core, &other.tsg, now, has_work);
    const bool stale = core_pick(&core, now);
    const uint64_t next = core_next_ns(&core, now);
    const auto end = Clock::now();
    (core.planned_at_ns == planned_ns ? decisions : plans).push_back(nsOf(end - begin));
    if (stale) core_taken(&core, now, on, 0);
    now = std::max(next, now + 1);
  }
  core_fini(&core);
  return {quantile(decisions, 0.5),
          quantile(decisions, 0.99),
          *std::max_element(decisions.begin(), decisions.end()),
          quantile(plans, 0.5),
          quantile(plans, 0.99),
          plans.size()};
}

}  // namespace

int main() {
  std::printf("%-12s %8s %9s %9s %9s %10s %12s %12s\n", "policy", "tenants", "P50 ns", "P99 ns",
              "max ns", "plans", "plan P50 us", "plan P99 us");
  double worst = 0;
  for (const auto &[name, policy] :
       {std::pair{"burst-share", CORE_BURST_SHARE}, std::pair{"fixed-share", CORE_FIXED_SHARE}})
    for (const unsigned n : {2u, 8u, 32u, 128u, 512u, 1000u}) {
      const Result r = measure(policy, n);
      std::printf("%-12s %8u %9.0f %9.0f %9.0f %10zu %12.1f %12.1f\n", name, n, r.p50, r.p99, r.max,
                  r.plans, r.plan_p50 / 1e3, r.plan_p99 / 1e3);
      worst = std::max(worst, r.p99);
    }
  std::printf("decision: worst=%.0f ns\n", worst);
  return worst >= 1000;
}
