// SPDX-License-Identifier: GPL-2.0
// What RmExecutor shows of its card: identity, state and its reason, tenants, counters. Asks the
// executor nothing but its counters.
#include <algorithm>
#include <cerrno>
#include <set>

#include "rm_executor.hpp"

namespace qgpu {

namespace {

// Who waits for counters serves nobody meanwhile; reading them takes the executor no control.
constexpr uint64_t kStatsNs = 50 * kMillisecondNs;
static_assert(exec::kSourceNvml == kRmSourceNvml);
// No plan's policy: whoever compares finds a difference.
constexpr uint32_t kPolicyUnknown = UINT32_MAX;

Histogram waitsOf(const exec::TenantStats &tenant) {
  Histogram waits;
  std::copy(std::begin(tenant.wait_bins), std::end(tenant.wait_bins), waits.bins.begin());
  waits.sum_ns = tenant.wait_sum_ns;
  return waits;
}

}  // namespace

std::vector<Sample> RmExecutor::samples() {
  refreshStats(kStatsNs);
  std::vector<Sample> samples;
  const exec::StatsReply &head = stats_.head;
  if (head.time_ns == sampled_ns_) return samples;
  sampled_ns_ = head.time_ns;
  Sample common;
  common.card_index = card_.minor;
  common.time_ns = head.time_ns;
  common.since_ns = head.since_ns;
  common.generation = generation_;
  for (const exec::TenantStats &tenant : stats_.tenants) {
    Sample sample = common;
    sample.tenant_id = tenant.id;
    sample.run_ns = tenant.run_ns;
    sample.run_err_ns = tenant.run_err_ns;
    sample.source = tenant.source;
    sample.wait_ns = tenant.wait_ns;
    sample.visits = tenant.visits;
    sample.windows = tenant.windows;
    sample.preempts = tenant.preempts;
    sample.overruns = tenant.overruns;
    sample.throttled_ns = tenant.throttled_ns;
    sample.wait_max_ns = tenant.wait_max_ns;
    sample.hangs = tenant.hangs;
    if (tenant.source == QGPU_SOURCE_TRACE) sample.waits = waitsOf(tenant);
    samples.push_back(sample);
  }
  Sample nobody = common;
  nobody.tenant_id = QGPU_TENANT_NOBODY;
  nobody.run_ns = head.nobody_ns + head.removed_ns;
  nobody.source = head.source;
  samples.push_back(nobody);
  common.source = head.source;
  common.switch_ns = head.switch_ns;
  common.idle_ns = head.idle_ns;
  common.removed_ns = head.removed_ns;
  samples.push_back(common);
  return samples;
}

std::string RmExecutor::nameOf(uint32_t tenant_id) const {
  for (const auto &[name, tenant] : plan_.tenants)
    if (tenant.id == tenant_id) return name;
  return "";
}

bool RmExecutor::isSettling() const {
  if (!link_.connected() || overdue() || !conflict_.empty()) return false;
  if (!greeted_) return true;
  return plan_.policy && !refusal_ && told_generation_ != generation_;
}

std::optional<Error> RmExecutor::trouble() const {
  if (!conflict_.empty()) return Error{EBUSY, conflict_, card_.uuid};
  if (!link_.connected()) {
    Error error = lost_.value_or(Error{ENOTCONN, "no executor is running for this card", ""});
    error.sentence +=
        "; the plan is kept and told to it when it is there (qgpu-exec@" + card_.uuid + ".service)";
    return error;
  }
  if (overdue())
    return Error{ETIMEDOUT, "the executor does not answer; the plan is kept", card_.uuid};
  if (hello_.status.error)
    return Error{hello_.status.error, std::string(hello_.status.sentence), ""};
  if (refusal_)
    return Error{refusal_->err, "the executor refuses the plan: " + refusal_->sentence,
                 refusal_->item};
  if (isSettling()) return Error{EAGAIN, "the executor is being told the plan", card_.uuid};
  if (hello_.card_state != QGPU_CARD_OK) {
    std::string sentence = std::string(hello_.status.sentence);
    if (const std::string tenant = nameOf(hello_.status.tenant_id); !tenant.empty())
      sentence = "tenant " + tenant + ": " + sentence;
    return Error{EIO, sentence.empty() ? "the executor says so" : sentence, card_.uuid};
  }
  return std::nullopt;
}

std::optional<ExecutorInfo> RmExecutor::executorInfo() const {
  if (!link_.connected() || !greeted_) return std::nullopt;
  ExecutorInfo info;
  info.driver = hello_.driver;
  info.profile = hello_.profile;
  info.source = stats_.head.source;
  info.restarts = hello_.worker_restarts;
  info.controls = stats_.head.controls;
  info.controls_refused = stats_.head.refused;
  info.lost_records = stats_.head.lost_records;
  const exec::CardConstants &card = stats_.head.constants;
  info.costs = {card.visit_ns, card.gap_ns, card.slice_short_ns, card.duty_bias_ns,
                card.measured_s};
  for (const exec::TenantStats &tenant : stats_.tenants) {
    info.processes += tenant.processes;
    info.foreign_changes += tenant.foreign_changes;
  }
  for (const exec::ObjectStats &object : stats_.objects)
    info.gap_ns = std::max(info.gap_ns, object.uncontrolled_ns);
  return info;
}

CardInfo RmExecutor::info() const {
  CardInfo info;
  info.index = card_.minor;
  info.uuid = card_.uuid;
  info.name = card_.name;
  info.simulated = card_.name.starts_with("Simulated");
  info.method = QGPU_METHOD_RM;
  if (auto error = trouble()) {
    info.state = hello_.card_state == QGPU_CARD_LOST ? QGPU_CARD_LOST : QGPU_CARD_DEGRADED;
    info.reason = error->sentence;
  }
  info.policy = plan_.policy.value_or(kPolicyUnknown);
  info.generation = shownGeneration();
  info.switch_ns = hello_.switch_ns;
  info.cycle_ns = stats_.head.cycle_ns;
  info.slice_min_ns = hello_.slice_min_ns;
  info.slice_max_ns = hello_.slice_max_ns;
  info.tenants = static_cast<uint32_t>(plan_.tenants.size());
  info.tsgs = static_cast<uint32_t>(stats_.objects.size());
  info.executor = executorInfo();
  return info;
}

TenantStatus RmExecutor::statusOf(const std::string &name, const Tenant &tenant) const {
  TenantStatus status;
  status.id = tenant.id;
  status.name = name;
  status.asked = tenant.asked;
  for (const exec::TenantStats &stats : stats_.tenants) {
    if (stats.id != tenant.id || !link_.connected()) continue;
    status.share_ppm = stats.share_ppm;
    status.slice_ns = stats.slice_ns;
    status.window_ns = stats.window_ns;
    status.awake = stats.awake != 0;
    status.tsgs = stats.tsgs;
    status.copy_tsgs = stats.copy_tsgs;
    status.place = stats.place;
  }
  std::set<uint32_t> pids;
  for (const exec::ObjectStats &object : stats_.objects)
    if (object.tenant_id == tenant.id && link_.connected())
      pids.insert(static_cast<uint32_t>(object.pid));
  status.pids.assign(pids.begin(), pids.end());
  return status;
}

CardSnapshot RmExecutor::snapshot() {
  refreshStats(kStatsNs);
  CardSnapshot snapshot{info(), {}};
  for (const auto &[name, tenant] : plan_.tenants)
    snapshot.tenants.push_back(statusOf(name, tenant));
  return snapshot;
}

}  // namespace qgpu
