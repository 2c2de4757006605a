// SPDX-License-Identifier: GPL-2.0
//
// policy.hpp - one way of sharing the card, as bench/policies.cpp drives it: our rule, or a model
// of somebody else's. A policy acts through the knobs that the real one has: the list in the slot
// with its slices, enable bits, preemption, or holding launches back. It never looks at the
// record; what it may know is said in its file.
#ifndef QGPU_BENCH_POLICIES_POLICY_HPP
#define QGPU_BENCH_POLICIES_POLICY_HPP

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "policies/machine.hpp"

namespace qgpu::bench {

class Policy {
 public:
  static constexpr uint64_t kNever = ~0ull;

  virtual ~Policy() = default;
  // Why it cannot be asked this at all, or not yet; nothing = it can, however well.
  virtual std::optional<std::string> refuses(const Workload &workload) const {
    (void)workload;
    return {};
  }
  // The tenants exist and have no work yet. Return: when to tick() first.
  virtual uint64_t start(Machine &machine) = 0;
  // Registers and lists may be used here; the clock may move. Return: when next.
  virtual uint64_t tick(Machine &machine) {
    (void)machine;
    return kNever;
  }
  // Hooks in the tenants' programs; called from events: no register that takes time.
  // A launch: may it go to the ring? If not, the program stands still until Tenant::pump().
  virtual bool mayLaunch(Machine &machine, Tenant &tenant, const fakes::Kernel &kernel) {
    (void)machine, (void)tenant, (void)kernel;
    return true;
  }
  virtual void completed(Machine &machine, Tenant &tenant) { (void)machine, (void)tenant; }
  virtual void runTo(Machine &machine, uint64_t ns) {
    while (machine.nowNs() < ns) {
      machine.card().advanceTo(std::max(machine.nowNs(), std::min(ns, next_ns_)));
      if (machine.nowNs() >= next_ns_) next_ns_ = tick(machine);
    }
  }
  void begin(Machine &machine) { next_ns_ = start(machine); }

 private:
  uint64_t next_ns_ = kNever;
};

// Each in its file, which says where it comes from and what was left out.
std::unique_ptr<Policy> makeOurRule();
std::unique_ptr<Policy> makeRoundRobin(uint32_t slice_units);
std::unique_ptr<Policy> makeWeightedSlices();
enum class GridShare { kEqual, kFixed };
enum class GridOrder { kStrict, kLeastTime };
std::unique_ptr<Policy> makeGrid(GridShare share, GridOrder order);
std::unique_ptr<Policy> makeTokenBucket();
std::unique_ptr<Policy> makeStride();
std::unique_ptr<Policy> makeSliceSwap();

}  // namespace qgpu::bench

#endif
