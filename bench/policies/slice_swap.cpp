// SPDX-License-Identifier: GPL-2.0
//
// slice_swap.cpp - GPreempt's way: slices of 1 s and 1 us, and channels that are disabled
//
// Source: GPreempt (USENIX ATC 2025) and its published code: the latency-critical context gets a
// time slice of 1 s, a best-effort one of 1 us, so the latter leaves at once when the former has
// work, and costs nothing while it has none; controls to disable channels are there beside.
//
// GPreempt knows two priorities and no shares. What is added here to have any, from the same two
// means: the tenants with work take turns of share * 70 ms, 2 ms at least. Whose turn it is has
// 1 s, so nobody cuts it; the next one stays enabled with 1 us and fills its gaps; all others are
// disabled, since two with 1 us would only switch. With online tenants these have 1 s always, and
// one of the others at a time is enabled, with 1 us.
//
// Simplifications: a change of slices is one submit and takes no longer than that (the driver's
// control takes 0.3 ms and more); the hint ahead of work that hides its switch is left out.
#include <algorithm>

#include "policies/policy.hpp"

namespace qgpu::bench {
namespace {

constexpr uint64_t kLongNs = kSecond, kShortNs = 1024;
constexpr uint64_t kRoundNs = 70 * kMilli, kTurnMinNs = 2 * kMilli;

class SliceSwap : public Policy {
 public:
  uint64_t start(Machine &machine) override {
    enabled_.assign(machine.tenants().size(), true);
    for (auto &tenant : machine.tenants()) {
      (tenant->online() ? online_ : others_).push_back(tenant.get());
      if (!tenant->online()) shares_ += tenant->share();
    }
    current_ = others_.size() - 1;
    return machine.nowNs();
  }

  uint64_t tick(Machine &machine) override {
    const size_t former = current_;
    current_ = nextWithWork(current_);
    const size_t deputy = nextWithWork(current_);
    Tenant *now = others_[current_], *next = others_[deputy];

    std::vector<Machine::Entry> list;
    for (Tenant *tenant : online_) list.push_back({tenant, kLongNs});
    list.push_back({now, online_.empty() ? kLongNs : kShortNs});
    for (Tenant *tenant : others_)
      if (tenant != now) list.push_back({tenant, kShortNs});
    for (Tenant *tenant : others_)
      setEnabled(*tenant, tenant == now || (online_.empty() && tenant == next));
    machine.putList(list);
    if (others_[former] != now && machine.onEngine() == others_[former])
      machine.preempt(*others_[former]);
    return machine.nowNs() +
           std::max(kTurnMinNs, static_cast<uint64_t>(now->share() / shares_ * kRoundNs));
  }

 private:
  size_t nextWithWork(size_t from) const {
    for (size_t i = 1; i <= others_.size(); i++) {
      const size_t at = (from + i) % others_.size();
      if (others_[at]->hasWork()) return at;
    }
    return (from + 1) % others_.size();
  }
  void setEnabled(Tenant &tenant, bool enabled) {
    if (enabled_[tenant.index()] == enabled) return;
    enabled_[tenant.index()] = enabled;
    if (enabled) {
      tenant.world().channel().enable();
      tenant.world().channel().ring();  // what was rung meanwhile is forgotten
    } else {
      tenant.world().channel().disable();
    }
  }

  std::vector<Tenant *> online_, others_;
  std::vector<bool> enabled_;
  double shares_ = 0;
  size_t current_ = 0;
};

}  // namespace

std::unique_ptr<Policy> makeSliceSwap() { return std::make_unique<SliceSwap>(); }

}  // namespace qgpu::bench
