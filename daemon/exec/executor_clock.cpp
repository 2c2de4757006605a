// SPDX-License-Identifier: GPL-2.0
// Without the driver's trace: nothing tells who has work. Slices hold shares all the same, and
// limits are windows on the clock (Roster::goByClock). What is charged is inferred: everybody that
// may run does, in proportion to the slices. Run times that are shown are NVML's where there is
// one; nothing is decided by them.
#include <linux/qgpu.h>

#include <algorithm>

#include "executor.hpp"

namespace qgpu::exec {
namespace {

// NVML has a sample of each process about six times a second.
constexpr uint64_t kUtilisationNs = 500'000'000;
// What its figures may be off by, of the time that is counted: they are whole percents of samples,
// and two that share the card may each have had work all the time.
constexpr uint64_t kUtilisationErrorPart = 20;

}  // namespace

uint32_t Executor::source() const {
  if (trace_) return QGPU_SOURCE_TRACE;
  return utilisation_ ? kSourceNvml : uint32_t{QGPU_SOURCE_INFERRED};
}

void Executor::openUtilisation() {
  auto opened = Utilisation::open(options_.uuid, options_.nvml);
  utilisation_ = opened ? std::move(*opened) : nullptr;
  utilisation_ns_ = options_.now_ns();
}

void Executor::sayByClock() {
  degraded_ = std::string("no context-switch trace: run times are ") +
              (utilisation_ ? "NVML's" : "inferred") + ", limits windows by the clock (" +
              no_trace_ + ")";
}

// The plan that is in force is set again: with what of it can be enforced so, or not at all, which
// is said.
void Executor::goByClock(const std::string &why) {
  trace_.reset();
  calibration_->end();
  openUtilisation();
  since_ns_ = options_.now_ns();  // other counters from here on
  roster_->goByClock();
  no_trace_ = why;
  sayByClock();
  if (!roster_->plan().generation) return;
  Plan plan{roster_->plan(), {}};
  for (const auto &[id, tenant] : roster_->tenants()) plan.tenants.push_back(tenant->asked);
  uint32_t guilty = kNoTenant;
  if (const auto may = roster_->check(plan, guilty); !may) {
    degraded_ = "nothing is enforced: " + may.error().sentence;
    plan.head.policy = QGPU_POLICY_BEST_EFFORT;
  }
  roster_->apply(plan);
}

// Everybody that may run does, in proportion to the slices. Of each that may be wrong by all that
// it was charged, or by all that it was not.
void Executor::infer(uint64_t now_ns) {
  uint64_t sum = 0, at = core_.looked_ns;
  if (now_ns <= at) return;
  const uint64_t span = now_ns - at;
  for (const auto &tsg : roster_->tsgs())
    if (tsg->tenant && !tsg->gated) sum += tsg->sliceUs();
  for (const auto &tsg : roster_->tsgs()) {
    if (!tsg->tenant || tsg->gated) continue;
    const uint64_t part_ns = sum ? span * tsg->sliceUs() / sum : 0;
    core_look(&core_, at, CORE_SEEN_TSG, &tsg->core);
    at += part_ns;
    core_look(&core_, at, CORE_SEEN_TSG, &tsg->core);
    tsg->tenant->inferred_err_ns += std::max(part_ns, span - part_ns);
  }
  // Two looks at one instant make an edge.
  if (!sum)
    for (const uint64_t edge_ns : {at, now_ns})
      core_look(&core_, edge_ns, CORE_SEEN_NOBODY, nullptr);
  // Who is stopped may be waiting.
  for (const auto &tsg : roster_->tsgs())
    if (tsg->tenant) core_work(&core_, &tsg->core, core_.looked_ns, true);
}

void Executor::turnUtilisation() {
  const uint64_t now_ns = options_.now_ns();
  if (!utilisation_ || now_ns < utilisation_ns_ + kUtilisationNs) return;
  const auto parts = utilisation_->read();
  if (!parts) {
    utilisation_.reset();
    since_ns_ = now_ns;
    no_trace_ += "; " + parts.error().sentence;
    sayByClock();
    return;
  }
  noteUtilisation(*parts, now_ns - utilisation_ns_);
  utilisation_ns_ = now_ns;
}

// By process, whatever TSGs it has. Together they had no more than all of the time.
void Executor::noteUtilisation(const std::map<uint32_t, double> &parts, uint64_t span_ns) {
  double all = 0;
  for (const auto &[pid, part] : parts) all += part;
  for (const auto &[id, managed] : processes_) {
    ManagedTenant *tenant = roster_->tenant(managed.tenant_id);
    if (!tenant) continue;
    const auto it = parts.find(static_cast<uint32_t>(id.pid));
    const double part = it == parts.end() ? 0 : it->second / std::max(all, 1.0);
    tenant->nvml_run_ns += static_cast<uint64_t>(part * static_cast<double>(span_ns));
    tenant->nvml_err_ns += span_ns / kUtilisationErrorPart;
  }
}

}  // namespace qgpu::exec
