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
  core_.on_visit = nullptr;
  calibration_->giveUp({EOPNOTSUPP, "the driver's trace was lost meanwhile: " + why, {}});
  openUtilisation();
  beginCounting();
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
    plan.head.generation =
        0;  // it is not what was asked: whoever takes over here asks for that again
  }
  roster_->apply(plan);
}

// Two looks at one instant make an edge.
void Executor::inferNobody(uint64_t until_ns) {
  core_look(&core_, core_.looked_ns, CORE_SEEN_NOBODY, nullptr);
  core_look(&core_, until_ns, CORE_SEEN_NOBODY, nullptr);
}

// Everybody that may run does, in proportion to the slices. Of each that may be wrong by all that
// it was charged, or by all that it was not. Who is let run alone does not compute at once.
void Executor::infer(uint64_t now_ns) {
  if (now_ns <= core_.looked_ns) return;
  uint64_t sum = 0, count = 0, begins_ns = 0;
  for (const auto &tsg : roster_->tsgs()) {
    if (!tsg->tenant || tsg->gated) continue;
    sum += tsg->sliceUs();
    count++;
    if (tsg->opened_ns) begins_ns = tsg->opened_ns + options_.params.duty_bias_ns;
  }
  if (!sum) inferNobody(now_ns);
  if (count == 1 && begins_ns > core_.looked_ns) inferNobody(std::min(begins_ns, now_ns));
  uint64_t at = core_.looked_ns;
  const uint64_t span = now_ns - at;
  for (const auto &tsg : roster_->tsgs()) {
    if (!tsg->tenant || tsg->gated || !sum) continue;
    const uint64_t part_ns = span * tsg->sliceUs() / sum;
    core_look(&core_, at, CORE_SEEN_TSG, &tsg->core);
    at += part_ns;
    core_look(&core_, at, CORE_SEEN_TSG, &tsg->core);
    tsg->tenant->inferred_err_ns += std::max(part_ns, span - part_ns);
  }
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
    beginCounting();
    no_trace_ += "; " + parts.error().sentence;
    if (roster_->plan().generation) sayByClock();  // else nothing is enforced, which is said
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
