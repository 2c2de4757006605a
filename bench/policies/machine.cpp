// SPDX-License-Identifier: GPL-2.0
//
// machine.cpp - tenants with programs on the simulated card (machine.hpp)
#include "policies/machine.hpp"

#include "policies/policy.hpp"

namespace qgpu::bench {

constexpr uint32_t kMaxTenants = 128;

Tenant::Tenant(Machine &machine, size_t index, const TenantAsk &ask, scenario::WorldTenant &world,
               uint64_t seed)
    : machine_(machine),
      index_(index),
      share_(ask.share),
      online_(ask.online),
      world_(world),
      program_(ask.program ? ask.program(seed) : nullptr) {
  world_.channel().onComplete([this](fakes::SimChannel &, const chip_completion &completion) {
    completed(completion.time_ns);
  });
}

void Tenant::launch(const fakes::Kernel &kernel) {
  const uint64_t now = machine_.nowNs();
  if (outstanding_++ == 0) {
    wakes_.push_back(now);
    work_.push_back({now, ~0ull});
  }
  held_.push_back(kernel);
  pump();
}

void Tenant::pump() {
  while (!held_.empty() && machine_.policy().mayLaunch(machine_, *this, held_.front())) {
    const fakes::Kernel kernel = held_.front();
    held_.pop_front();
    world_.channel().launch(kernel);
  }
}

void Tenant::completed(uint64_t now_ns) {
  if (--outstanding_ == 0) work_.back().to_ns = now_ns;
  machine_.policy().completed(machine_, *this);
  program_->completed(*this);
}

Spans Tenant::work(uint64_t now_ns) const {
  Spans work = work_;
  if (hasWork()) work.back().to_ns = now_ns;
  return work;
}

Machine::Machine(const Workload &workload, Policy &policy, uint64_t seed)
    : workload_(workload),
      policy_(policy),
      seed_(seed),
      world_({.policy = CORE_BEST_EFFORT, .tsg_max = kMaxTenants, .seed = seed}) {
  for (const TenantAsk &ask : workload.tenants) {
    scenario::WorldTenant &world = world_.addTenant();
    tenants_.push_back(std::make_unique<Tenant>(*this, tenants_.size(), ask, world,
                                                seed * 1000 + tenants_.size()));
  }
  for (hw_mem &list : lists_) list = card().allocate(16 * kMaxTenants * 2);
}

void Machine::putList(const std::vector<Entry> &entries) {
  hw &hardware = world_.hardware();
  std::vector<hw_image_tsg> image;
  for (const Entry &e : entries) {
    const scenario::WorldTsg &tsg = e.tenant->worldTsg();
    image.push_back({.tsg_id = tsg.turn.tsg_id,
                     .channel_count = tsg.turn.channel_count,
                     .slice_ns = e.slice_ns,
                     .channels = tsg.channels.data()});
  }
  slot_ = !slot_;
  u32 length = 0;
  if (hardware.ops->image_write(&lists_[slot_], image.data(), static_cast<u32>(image.size()),
                                &length) ||
      hardware.ops->submit(&hardware, 0, &lists_[slot_], length))
    throw std::runtime_error("the chip did not take a list");
}

void Machine::putAll(const std::function<uint64_t(const Tenant &)> &slice_ns) {
  std::vector<Entry> entries;
  for (auto &tenant : tenants_) entries.push_back({tenant.get(), slice_ns(*tenant)});
  putList(entries);
}

Tenant *Machine::onEngine() {
  hw_status status;
  hw &hardware = world_.hardware();
  if (hardware.ops->status(&hardware, 0, &status)) throw std::runtime_error("no status");
  if (status.state != HW_ENGINE_RUNNING && status.state != HW_ENGINE_SWITCHING) return nullptr;
  for (auto &tenant : tenants_)
    if (tenant->tsg().id() == status.tsg_id) return tenant.get();
  return nullptr;
}

void Machine::preempt(Tenant &tenant) { card().preempt(tenant.tsg()); }

std::vector<Spans> Machine::ran() {
  std::vector<Spans> ran(tenants_.size());
  std::vector<size_t> tenant_of(CHIP_TSGS, SIZE_MAX);
  std::vector<uint64_t> recorded(tenants_.size());
  for (const auto &tenant : tenants_) tenant_of[tenant->tsg().id()] = tenant->index();
  fakes::SimCard &card = world_.card();
  for (const fakes::Ran &r : card.records()) {
    const size_t i = tenant_of[r.tsg];
    if (r.engine != 0 || i == SIZE_MAX) continue;
    ran[i].push_back({r.from_ns, r.to_ns});
    recorded[i] += r.to_ns - r.from_ns;
  }
  // What runs now is not in the record yet.
  for (const auto &tenant : tenants_) {
    const uint64_t missing = card.runNs(tenant->tsg()) - recorded[tenant->index()];
    if (missing) ran[tenant->index()].push_back({nowNs() - missing, nowNs()});
  }
  return ran;
}

}  // namespace qgpu::bench
