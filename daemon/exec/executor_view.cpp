// SPDX-License-Identifier: GPL-2.0
// What the executor tells of its card: counters, TSGs, who was on the engine. Decides nothing.
#include <linux/qgpu.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

#include "executor.hpp"

namespace qgpu::exec {
namespace {

// Edges are known to this.
constexpr uint64_t kEdgeErrorNs = 5'000;
// What a sum of times is off by beside that: one part in so many.
constexpr uint64_t kSumErrorPart = 400;

static_assert(QGPU_HIST_BINS == CORE_HIST_BINS);
static_assert(int{CORE_SEEN_TSG} == int{QGPU_SEEN_TENANT});
static_assert(int{CORE_END_TAIL} == int{QGPU_END_TAIL});
static_assert(int{CORE_WINDOW_QUIET} == int{QGPU_WINDOW_QUIET});

uint64_t cpuNs() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1'000'000'000 +
         static_cast<uint64_t>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
}

ObjectStats statsOf(const ManagedTsg &tsg, const CardParams &params) {
  ObjectStats out{};
  out.pid = tsg.process.pid;
  out.tenant_id = tsg.tenant ? tsg.tenant->asked.id : kNoTenant;
  out.tsg_id = tsg.tsg.id;
  out.runlist = tsg.tsg.runlist();
  out.channels = static_cast<uint32_t>(tsg.tsg.channels.size());
  out.gated = tsg.gated;
  out.slice_ns = tsg.sliceUs() * params.slice_unit_ns;
  out.found_ns = tsg.found_us * params.slice_unit_ns;
  out.uncontrolled_ns = tsg.uncontrolled_ns;
  return out;
}

// What was counted since counting began.
core_counters countersOf(const core &core, ManagedTenant &tenant) {
  core_counters out{};
  const core_counters &before = tenant.counted_before;
  core_tenant_counters(&core, &tenant.core, &out);
  out.run_ns -= before.run_ns;
  out.wait_ns -= before.wait_ns;
  out.throttled_ns -= before.throttled_ns;
  out.windows -= before.windows;
  out.preempts -= before.preempts;
  out.overruns -= before.overruns;
  return out;
}

// What is not of its processes and TSGs.
TenantStats statsOf(const core &core, ManagedTenant &tenant) {
  TenantStats out{};
  core_view view{};
  const core_counters counters = countersOf(core, tenant);
  core_tenant_view(&tenant.core, &view);
  out.id = tenant.asked.id;
  out.share_ppm = view.share_ppm;
  out.window_ns = view.window_ns;
  out.awake = view.awake;
  out.run_ns = counters.run_ns;
  out.wait_ns = counters.wait_ns;
  out.throttled_ns = counters.throttled_ns;
  out.windows = counters.windows;
  out.preempts = counters.preempts;
  out.overruns = counters.overruns;
  out.hangs = counters.hangs;
  out.place = tenant.core.place;
  out.gates = tenant.gates;
  out.foreign_changes = tenant.foreign_changes;
  return out;
}

// Only the trace tells when somebody began to wait.
void addWaits(const core &core, ManagedTenant &tenant, TenantStats &out) {
  core_counters counters{};
  core_tenant_counters(&core, &tenant.core, &counters);
  out.wait_max_ns = counters.wait_max_ns;
  std::copy(std::begin(counters.waits.bins), std::end(counters.waits.bins), out.wait_bins);
  out.wait_sum_ns = counters.waits.sum_ns;
}

}  // namespace

// From here on, with what is there as zero.
void Executor::beginCounting() {
  since_ns_ = options_.now_ns();
  totals_before_ = core_.totals;
  removed_ns_ = 0;
  for (const auto &[id, tenant] : roster_->tenants()) {
    core_tenant_counters(&core_, &tenant->core, &tenant->counted_before);
    tenant->visits_before += visitsOf(*tenant);
    tenant->inferred_err_ns = tenant->nvml_run_ns = tenant->nvml_err_ns = 0;
  }
}

uint64_t Executor::visitsOf(const ManagedTenant &tenant) const {
  uint64_t visits = tenant.past_visits - tenant.visits_before;
  for (const auto &tsg : roster_->tsgs()) {
    if (tsg->tenant != &tenant) continue;
    const auto *visitor = account_->visitor(static_cast<uint32_t>(tsg->process.pid));
    if (visitor && visitor->tsg == &tsg->core) visits += visitor->visits;
  }
  return visits;
}

uint64_t Executor::runNs(ManagedTenant &tenant) const {
  return utilisation_ ? tenant.nvml_run_ns : countersOf(core_, tenant).run_ns;
}

// Before this plan is set: what those ran that it no longer has.
void Executor::noteRemoved(const Plan &plan) {
  for (const auto &[id, tenant] : roster_->tenants()) {
    const bool stays = std::any_of(plan.tenants.begin(), plan.tenants.end(),
                                   [&](const PlanTenant &asked) { return asked.id == id; });
    if (!stays) removed_ns_ += runNs(*tenant);
  }
}

StatsReply Executor::cardStats() const {
  StatsReply out{};
  out.status = shortfall();
  out.time_ns = options_.now_ns();
  out.since_ns = since_ns_;
  out.generation = roster_->plan().generation;
  out.cycle_ns = core_.cycle_ns;
  // NVML tells of processes alone.
  if (!utilisation_) {
    out.switch_ns = core_.totals.switch_ns - totals_before_.switch_ns;
    out.idle_ns = core_.totals.idle_ns - totals_before_.idle_ns;
    out.nobody_ns = core_.totals.nobody_ns - totals_before_.nobody_ns;
  }
  out.removed_ns = removed_ns_;
  out.controls = controls_->counts().issued;
  out.refused = controls_->counts().refused;
  out.lost_records = trace_ ? trace_->lost() : 0;
  out.cpu_ns = cpuNs();
  out.source = source();
  out.card_state = out.status.sentence[0] ? QGPU_CARD_DEGRADED : QGPU_CARD_OK;
  out.constants = options_.params.constants();
  return out;
}

Stats Executor::stats() {
  Stats out{cardStats(), {}, {}};
  std::map<uint32_t, TenantStats> tenants;
  for (const auto &[id, tenant] : roster_->tenants()) {
    TenantStats &t = tenants[id] = statsOf(core_, *tenant);
    t.run_ns = runNs(*tenant);
    t.visits = visitsOf(*tenant);
    t.source = out.head.source;
    t.run_err_ns = trace_         ? kEdgeErrorNs * t.visits + t.run_ns / kSumErrorPart
                   : utilisation_ ? tenant->nvml_err_ns
                                  : tenant->inferred_err_ns;
    if (trace_) addWaits(core_, *tenant, t);
  }
  for (const auto &[id, managed] : processes_)
    if (const auto it = tenants.find(managed.tenant_id); it != tenants.end()) {
      it->second.processes++;
      for (const Tsg &tsg : managed.process->tsgs()) it->second.copy_tsgs += !tsg.compute();
    }
  for (const auto &tsg : roster_->tsgs()) {
    if (out.objects.size() < kMaxObjects) out.objects.push_back(statsOf(*tsg, options_.params));
    if (!tsg->tenant) continue;
    TenantStats &t = tenants[tsg->tenant->asked.id];
    t.tsgs++;
    if (tsg->written_us && tsg->core.awake)
      t.slice_ns = tsg->written_us * options_.params.slice_unit_ns;
  }
  for (const auto &[id, t] : tenants) out.tenants.push_back(t);
  return out;
}

// ---- who was on the engine ----

void Executor::listen() {
  core_.listener = this;
  core_.seen_from_ns = core_.looked_ns;
  core_.on_visit = [](void *self, const core_visit *visit) {
    static_cast<Executor *>(self)->noteVisit(*visit);
  };
}

// The core's times are the card's. Where one time ends the next begins, whatever is known by then
// of how far the two clocks are apart.
LogEntry Executor::entryOf(const core_visit &visit) const {
  const auto idOf = [&](const core_tenant *tenant) {
    for (const auto &[id, managed] : roster_->tenants())
      if (&managed->core == tenant) return id;
    return kNoTenant;
  };
  LogEntry entry{};
  entry.to_ns = visit.to_ns - card_ahead_ns_;
  const uint64_t from_ns = logged_ns_ ? logged_ns_ : visit.from_ns - card_ahead_ns_;
  entry.from_ns = std::min(from_ns, entry.to_ns);
  entry.tenant_id = idOf(visit.tenant);
  entry.due_id = idOf(visit.due);
  entry.seen = static_cast<uint8_t>(visit.seen);
  entry.end = static_cast<uint8_t>(visit.end);
  entry.window = static_cast<uint8_t>(visit.kind);
  return entry;
}

void Executor::noteVisit(const core_visit &visit) {
  const LogEntry entry = entryOf(visit);
  logged_ns_ = entry.to_ns;
  log_.add(entry);
}

LogEntry Executor::ongoing() const {
  core_visit visit;
  core_visit_now(&core_, &visit);
  LogEntry entry = entryOf(visit);
  entry.ongoing = 1;
  return entry;
}

Log Executor::log(uint64_t from_serial) const {
  if (trace_) return log_.read(from_serial, ongoing());
  const Error error{
      EOPNOTSUPP, "without the driver's trace nobody knows who runs: there is no log", {}};
  Log out{};
  out.head.status = makeStatus(&error);
  return out;
}

}  // namespace qgpu::exec
