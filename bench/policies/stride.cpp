// SPDX-License-Identifier: GPL-2.0
//
// stride.cpp - stride scheduling (Waldspurger and Weihl, 1995) of whole kernels
//
// Source: the textbook rule, as user-space schedulers of kernels apply it (a daemon or hook that
// admits launches one by one). Each tenant has a pass; the runnable one with the least pass
// launches one kernel, alone on the card; when it is done, its pass grows by the time it took
// divided by its share. A waker's pass is raised to the present one. Nothing is cut.
//
// Simplifications: the scheduler learns of a completion and admits the next kernel within 5 us;
// it measures a kernel from launch to completion, the switch of contexts included; the list holds
// all with CUDA's slice, which a lone runnable context does not feel.
#include <algorithm>

#include "policies/policy.hpp"

namespace qgpu::bench {
namespace {

constexpr uint64_t kRoundTripNs = 5'000;
constexpr uint64_t kCudaSliceNs = 2048 * 1024;

class Stride : public Policy {
 public:
  uint64_t start(Machine &machine) override {
    machine.putAll([](const Tenant &) { return kCudaSliceNs; });
    pass_.assign(machine.tenants().size(), 0);
    return kNever;
  }

  bool mayLaunch(Machine &machine, Tenant &tenant, const fakes::Kernel &) override {
    if (admitted_ == &tenant) {
      admitted_ = nullptr;
      running_ = true;
      launched_ns_ = machine.nowNs();
      return true;
    }
    if (tenant.outstanding() == 1)  // it had no work before
      pass_[tenant.index()] = std::max(pass_[tenant.index()], now_);
    consider(machine);
    return false;
  }

  void completed(Machine &machine, Tenant &tenant) override {
    running_ = false;
    pass_[tenant.index()] += static_cast<double>(machine.nowNs() - launched_ns_) / tenant.share();
    consider(machine);
  }

 private:
  // Decide after a round trip; what arrives until then takes part.
  void consider(Machine &machine) {
    if (running_ || deciding_) return;
    deciding_ = true;
    machine.card().at(machine.nowNs() + kRoundTripNs, [this, &machine] {
      deciding_ = false;
      decide(machine);
    });
  }

  void decide(Machine &machine) {
    Tenant *best = nullptr;
    for (auto &tenant : machine.tenants())
      if (!tenant->held().empty() && (!best || pass_[tenant->index()] < pass_[best->index()]))
        best = tenant.get();
    if (!best) return;
    now_ = pass_[best->index()];
    admitted_ = best;
    best->pump();
  }

  std::vector<double> pass_;
  double now_ = 0;
  Tenant *admitted_ = nullptr;
  bool running_ = false, deciding_ = false;
  uint64_t launched_ns_ = 0;
};

}  // namespace

std::unique_ptr<Policy> makeStride() { return std::make_unique<Stride>(); }

}  // namespace qgpu::bench
