// SPDX-License-Identifier: GPL-2.0
//
// our_rule.cpp - qgpu: kmod/turn.c and kmod/core/ as they are, over the TU104 layer
//
// Nothing is modelled: this is the code of the module, run by World as the module's worker runs
// it. What core_check() does not enforce yet is not asked of it, and said so.
#include <cmath>

#include "policies/policy.hpp"

namespace qgpu::bench {
namespace {

core_policy policyOf(Promise promise) {
  switch (promise) {
    case Promise::kWeights:
    case Promise::kOnline:
      return CORE_BURST_SHARE;
    case Promise::kFixed:
      return CORE_FIXED_SHARE;
    case Promise::kEqual:
      return CORE_EQUAL_SHARE;
  }
  throw std::logic_error("promise");
}

core_settings settingsOf(Promise promise, double share, bool online) {
  core_settings settings;
  core_settings_default(&settings);
  switch (promise) {
    case Promise::kWeights:
      settings.weight = static_cast<u32>(std::lround(share * 10'000));
      break;
    case Promise::kOnline:
      settings.class_ = online ? CORE_ONLINE : CORE_OFFLINE;
      break;
    case Promise::kFixed:
      settings.guarantee_ppm = static_cast<u32>(std::lround(share * CORE_PPM));
      settings.ceiling_ppm = settings.guarantee_ppm;
      break;
    case Promise::kEqual:
      break;
  }
  return settings;
}

class OurRule : public Policy {
 public:
  std::optional<std::string> refuses(const Workload &workload) const override {
    std::vector<core_settings> settings;
    for (const TenantAsk &ask : workload.tenants)
      settings.push_back(settingsOf(workload.promise, ask.share, ask.online));
    const core_params params = scenario::World::params();
    core_refusal refusal;
    if (core_check(&params, policyOf(workload.promise), 0, settings.data(),
                   static_cast<u32>(settings.size()), &refusal))
      throw std::logic_error("the bench asks for what the core refuses");
    return {};
  }
  uint64_t start(Machine &machine) override {
    turn *turn = machine.world().scheduler();
    const Promise promise = machine.workload().promise;
    turn_policy_set(turn, policyOf(promise), 0);
    for (auto &tenant : machine.tenants()) {
      const core_settings settings = settingsOf(promise, tenant->share(), tenant->online());
      turn_tenant_set(turn, &tenant->world().core, &settings);
    }
    machine.world().start();
    return kNever;
  }
  void runTo(Machine &machine, uint64_t ns) override {
    machine.world().runTo(ns);
    if (machine.world().lastError()) throw std::runtime_error("the chip refused our rule");
  }
};

}  // namespace

std::unique_ptr<Policy> makeOurRule() { return std::make_unique<OurRule>(); }

}  // namespace qgpu::bench
