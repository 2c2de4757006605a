// SPDX-License-Identifier: GPL-2.0
//
// machine.hpp - a card of the chip model with tenants that run programs, under some policy; keeps
// who had work when. The card, its registers' cost and its record are those of the scenario
// tests' World; only our own rule starts the scheduler in it.
#ifndef QGPU_BENCH_POLICIES_MACHINE_HPP
#define QGPU_BENCH_POLICIES_MACHINE_HPP

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "judge.hpp"
#include "scenario/world.hpp"

namespace qgpu::bench {

using scenario::kMicro;
using scenario::kMilli;
using scenario::kSecond;

class Policy;
class Machine;
class Tenant;

// What a tenant does with the card; one object a tenant.
class Program {
 public:
  virtual ~Program() = default;
  virtual void start(Tenant &tenant) = 0;
  virtual void completed(Tenant &tenant) = 0;
};
using MakeProgram = std::function<std::unique_ptr<Program>(uint64_t seed)>;

struct TenantAsk {
  double share;  // of what its workload says
  bool online;
  MakeProgram program;  // empty: present, never any work
};

// What the shares of a workload mean; see judge.hpp.
enum class Promise {
  kWeights,  // of what is delivered, among those with work
  kOnline,   // online tenants first, the rest by weight
  kFixed,    // of wall time, a fixed share each
  kEqual,    // of wall time, 1/N each of those present
};

struct Workload {
  std::string name;
  Promise promise;
  std::vector<TenantAsk> tenants;
  uint64_t settle_ns, watch_ns;
  // Two or more that saturate with work that can be cut: its error counts for the last line.
  bool saturating_cuttable;
};

class Tenant {
 public:
  Tenant(Machine &machine, size_t index, const TenantAsk &ask, scenario::WorldTenant &world,
         uint64_t seed);

  size_t index() const { return index_; }
  double share() const { return share_; }
  bool online() const { return online_; }
  scenario::WorldTenant &world() { return world_; }
  fakes::SimTsg &tsg() { return *world_.tsgs.front()->sim; }
  const scenario::WorldTsg &worldTsg() const { return *world_.tsgs.front(); }
  Machine &machine() { return machine_; }

  void start() {
    if (program_) program_->start(*this);
  }
  // The program wants @kernel to run; it goes to the ring when the policy lets it.
  void launch(const fakes::Kernel &kernel);
  // Let the program go on launching if the policy lets it now.
  void pump();
  // Kernels launched by the program and not completed, held back or not.
  uint64_t outstanding() const { return outstanding_; }
  bool hasWork() const { return outstanding_ != 0; }
  const std::deque<fakes::Kernel> &held() const { return held_; }

  // For the judge.
  Spans work(uint64_t now_ns) const;
  const std::vector<uint64_t> &wakes() const { return wakes_; }

 private:
  void completed(uint64_t now_ns);

  Machine &machine_;
  size_t index_;
  double share_;
  bool online_;
  scenario::WorldTenant &world_;
  std::unique_ptr<Program> program_;
  std::deque<fakes::Kernel> held_;
  uint64_t outstanding_ = 0;
  Spans work_;
  std::vector<uint64_t> wakes_;
};

class Machine {
 public:
  Machine(const Workload &workload, Policy &policy, uint64_t seed);

  scenario::World &world() { return world_; }
  fakes::SimCard &card() { return world_.card(); }
  Policy &policy() { return policy_; }
  const Workload &workload() const { return workload_; }
  uint64_t seed() const { return seed_; }
  uint64_t nowNs() const { return world_.nowNs(); }
  std::vector<std::unique_ptr<Tenant>> &tenants() { return tenants_; }
  Tenant &tenant(size_t i) { return *tenants_.at(i); }

  // --- knobs for policies that write lists; only from tick() or start() ---
  struct Entry {
    Tenant *tenant;
    uint64_t slice_ns;
  };
  // Put a list in the slot; returns when the chip took it.
  void putList(const std::vector<Entry> &entries);
  // All tenants, in order.
  void putAll(const std::function<uint64_t(const Tenant &)> &slice_ns);
  // Whose context computes or is not yet off; null = nobody's.
  Tenant *onEngine();
  // Ask it to leave; a kernel that cannot be cut stays until its end.
  void preempt(Tenant &tenant);
  static uint64_t longestSliceNs() { return scenario::World::params().slice_max_ns; }

  // Spans in which each tenant ran, up to now, by the chip's record.
  std::vector<Spans> ran();

 private:
  const Workload &workload_;
  Policy &policy_;
  uint64_t seed_;
  scenario::World world_;
  std::vector<std::unique_ptr<Tenant>> tenants_;
  hw_mem lists_[2];
  unsigned slot_ = 0;
};

}  // namespace qgpu::bench

#endif
