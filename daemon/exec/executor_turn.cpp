// SPDX-License-Identifier: GPL-2.0
// What the executor does by itself, turn by turn: looks for objects, reads the trace, finds out who
// has work, lets the core decide, has that enforced.
//
// Who has work: a START says yes. No START for longer than a round of all others takes says no, if
// it was free to run. One that holds the engine alone makes no records; then a preemption tells:
// with work there is an END and a START, without there is none, and nothing is lost.
#include <linux/qgpu.h>

#include <algorithm>
#include <random>

#include "executor.hpp"

namespace qgpu::exec {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kTurnMaxNs = 50 * kMs, kBusyTurnMaxNs = 10 * kMs, kTurnMinNs = 20'000;
constexpr uint64_t kReadBackNs = 1000 * kMs;
constexpr uint64_t kEndedLookNs = 100 * kMs;
// Between two probes of a holder that is alone: with work a probe costs it 0.2 ms, without nothing.
constexpr uint64_t kProbeBusyNs = 400 * kMs, kProbeIdleNs = 100 * kMs, kProbeSoonNs = 20 * kMs;
constexpr uint64_t kProbeAgainNs = 1 * kMs;
// In a window of its own; then not again for so many windows, if it had work.
constexpr uint64_t kProbeWindowNs = 3 * kMs;
constexpr unsigned kProbeSkip = 7;
// Beyond a round of the others, before it is taken to have no work.
constexpr uint64_t kAbsenceSlackNs = 5 * kMs;

uint64_t jitter(uint64_t ns) {
  static std::minstd_rand random{1};
  return ns / 2 + random() % ns;
}

}  // namespace

ManagedTsg *Executor::byPid(uint32_t pid) {
  for (const auto &tsg : roster_->tsgs())
    if (static_cast<uint32_t>(tsg->process.pid) == pid) return tsg.get();
  return nullptr;
}

// Its objects as they are now, compared with those that are managed.
void Executor::updateObjects(const ProcessId &id, Managed &managed, uint64_t now_ns) {
  const Process &process = *managed.process;
  std::vector<uint32_t> gone;
  for (const auto &tsg : roster_->tsgs()) {
    if (tsg->process != id) continue;
    const auto &now = process.tsgs();
    const auto same = std::find_if(now.begin(), now.end(), [&](const Tsg &t) {
      return t.handle == tsg->tsg.handle && t.id == tsg->tsg.id;
    });
    if (same == now.end())
      gone.push_back(tsg->tsg.handle);
    else
      tsg->tsg = *same;
  }
  for (const uint32_t handle : gone) {
    const auto pid = static_cast<uint32_t>(id.pid);
    const Visitor *visitor = account_->visitor(pid);
    if (visitor && visitor->tsg == &roster_->find(id, handle)->core) account_->forget(pid);
    roster_->remove(id, handle);
  }
  const Stored stored = store_->load();
  for (const Tsg &tsg : process.tsgs()) {
    if (!tsg.compute() || roster_->find(id, tsg.handle)) continue;
    ManagedTsg fresh;
    fresh.process = id;
    fresh.of = process.foreign();
    fresh.tsg = tsg;
    fresh.uncontrolled_ns = now_ns - process.namedNs();
    const auto us = controls_->timesliceUs(fresh.of, tsg);
    if (!us) continue;
    const uint64_t found = stored.foundUs(id, tsg.handle);
    fresh.found_us = found ? found : *us;
    fresh.written_us = found && found != *us ? *us : 0;
    ManagedTsg &added = roster_->add(std::move(fresh), roster_->tenant(managed.tenant_id));
    if (!account_->visitor(static_cast<uint32_t>(id.pid)))
      account_->know(static_cast<uint32_t>(id.pid), &added.core);
    // Names who holds the engine now.
    if (trace_ && roster_->enforcing()) (void)controls_->preempt(added.of, added.tsg);
  }
  save();
}

void Executor::release(const ProcessId &id, Managed &managed) {
  const auto pid = static_cast<uint32_t>(id.pid);
  const Visitor *visitor = account_->visitor(pid);
  if (ManagedTenant *tenant = roster_->tenant(managed.tenant_id); tenant && visitor)
    tenant->past_visits += visitor->visits;
  account_->forget(pid);
  enforcer_->forget(id);
  roster_->removeProcess(id);
}

void Executor::turnProcesses(uint64_t now_ns) {
  const bool look_ended = now_ns >= ended_look_ns_;
  if (look_ended) ended_look_ns_ = now_ns + kEndedLookNs;
  std::vector<ProcessId> gone;
  for (auto &[id, managed] : processes_) {
    Process &process = *managed.process;
    const auto before = process.state();
    const bool changed = process.step(now_ns);
    if (process.state() == Process::State::kEnded ||
        (look_ended && own_->io().ended(process.pidfd()))) {
      gone.push_back(id);
      continue;
    }
    if (!changed) continue;
    if (process.state() == Process::State::kBlind) {
      report(EventKind::kProcessBlind, managed.tenant_id, id.pid, process.why());
    } else if (process.state() == Process::State::kControlled) {
      updateObjects(id, managed, now_ns);
      if (before != Process::State::kControlled)
        report(EventKind::kProcessControlled, managed.tenant_id, id.pid, "",
               process.controlledNs() - process.namedNs());
    }
  }
  for (const ProcessId &id : gone) {
    report(EventKind::kProcessGone, processes_[id].tenant_id, id.pid, "");
    release(id, processes_[id]);
    processes_.erase(id);
  }
  if (!gone.empty()) save();
}

void Executor::turnTrace(uint64_t now_ns) {
  if (!trace_) {
    infer(now_ns);
    return;
  }
  const RmOutcome out = trace_->flush();
  records_.clear();
  trace_->read(records_);
  if (!records_.empty()) record_ns_ = now_ns;
  account_->take(records_);
  // A flush that failed leaves records for later: nothing is known of now.
  if (out.ok()) account_->upTo(now_ns);
  flushed_ns_ = now_ns;
  if (trace_->lost() != lost_) {
    report(EventKind::kTraceLost, kNoTenant, 0, "records of the context-switch trace were lost",
           trace_->lost() - lost_);
    lost_ = trace_->lost();
  }
}

// Without a trace: everybody has work, and runs in proportion to the slices.
void Executor::infer(uint64_t now_ns) {
  uint64_t sum = 0, at = core_.looked_ns;
  if (now_ns <= at) return;
  const uint64_t span = now_ns - at;
  for (const auto &tsg : roster_->tsgs())
    if (tsg->tenant && !tsg->gated) sum += tsg->sliceUs();
  for (const auto &tsg : roster_->tsgs()) {
    if (!tsg->tenant || tsg->gated) continue;
    core_look(&core_, at, CORE_SEEN_TSG, &tsg->core);
    at += span * tsg->sliceUs() / sum;
    core_look(&core_, at, CORE_SEEN_TSG, &tsg->core);
  }
}

// Who was free to run for a round of all others and did not has no work.
void Executor::observeAbsence(uint64_t now_ns) {
  if (!trace_) return;
  uint64_t round_ns = 0;
  for (const auto &tsg : roster_->tsgs())
    if (!tsg->gated && tsg->core.has_work)
      round_ns += tsg->sliceUs() * options_.params.slice_unit_ns + options_.params.switch_ns;
  for (const auto &tsg : roster_->tsgs()) {
    const auto pid = static_cast<uint32_t>(tsg->process.pid);
    if (!tsg->tenant || tsg->gated || !tsg->core.awake || account_->holder() == pid) continue;
    const Visitor *visitor = account_->visitor(pid);
    if (!visitor || visitor->tsg != &tsg->core) continue;
    const uint64_t since = std::max({visitor->last_start_ns, visitor->last_end_ns, tsg->opened_ns});
    const uint64_t bound = (account_->holderIdle() ? 0 : round_ns * 5 / 4) + kAbsenceSlackNs;
    if (now_ns > since + bound) core_work(&core_, &tsg->core, core_.looked_ns, false);
  }
}

uint32_t Executor::awake() const { return core_.awake_tenants; }

bool Executor::probeDue(uint64_t now_ns) {
  if (!trace_ || !roster_->enforcing()) return false;
  ManagedTsg *tsg = byPid(account_->holder());
  if (!tsg || !tsg->tenant || tsg->gated) return false;
  const bool own_window =
      core_.window.kind == CORE_WINDOW_EXCLUSIVE && core_.window.owner == &tsg->tenant->core;
  if (account_->holderIdle()) {
    const bool wanted = own_window || tsg->tenant->asked.ceiling_ppm < QGPU_PPM;
    const uint64_t gap = own_window && tsg->core.has_work ? kProbeAgainNs
                         : wanted                         ? kProbeSoonNs
                                                          : kProbeIdleNs;
    return now_ns > std::max(probed_ns_, record_ns_) + gap;
  }
  if (own_window && probed_window_ns_ != core_.window.from_ns &&
      now_ns > core_.window.from_ns + kProbeWindowNs) {
    probed_window_ns_ = core_.window.from_ns;
    if (tsg->probe_skip) {
      tsg->probe_skip--;
      return false;
    }
    return true;
  }
  if (!probe_gap_ns_) probe_gap_ns_ = jitter(kProbeBusyNs);
  return now_ns > std::max(probed_ns_, record_ns_) + probe_gap_ns_;
}

void Executor::probe(uint64_t now_ns) {
  ManagedTsg *tsg = byPid(account_->holder());
  const auto pid = account_->holder();
  probed_ns_ = now_ns;
  probe_gap_ns_ = 0;
  if (!tsg || !controls_->preempt(tsg->of, tsg->tsg)) return;
  const uint64_t flush_ns = cardNs();
  if (!trace_->flush().ok()) return;
  records_.clear();
  trace_->read(records_);
  const bool work =
      std::any_of(records_.begin(), records_.end(), [&](const Switch &s) { return s.pid == pid; });
  account_->take(records_);
  account_->upTo(flush_ns);
  if (account_->holder() == pid) account_->probed(flush_ns, work);
  tsg->probe_skip = work ? kProbeSkip : 0;
}

void Executor::turnReadBack(uint64_t now_ns) {
  if (now_ns < read_back_ns_ + kReadBackNs) return;
  read_back_ns_ = now_ns;
  std::vector<ProcessId> gone = enforcer_->readBack(now_ns);
  for (auto &[id, managed] : processes_) {
    const bool was_controlled = managed.process->state() == Process::State::kControlled;
    if (std::find(gone.begin(), gone.end(), id) != gone.end())
      managed.process->lookAgain(monotonicNs());
    if (was_controlled && !managed.process->stillThere()) release(id, managed);
  }
}

uint64_t Executor::turn() {
  turnProcesses(monotonicNs());
  turnTrace(cardNs());
  if (probeDue(cardNs())) probe(cardNs());
  observeAbsence(cardNs());
  uint64_t now_ns = std::max<uint64_t>(cardNs(), core_.looked_ns);
  core_pick(&core_, now_ns);
  enforcer_->apply(now_ns);
  turnReadBack(now_ns);

  now_ns = std::max<uint64_t>(cardNs(), core_.looked_ns);
  const uint64_t next = core_next_ns(&core_, now_ns);
  uint64_t wait = next > now_ns ? next - now_ns : 0;
  const bool close =
      awake() >= 2 || core_.window.kind == CORE_WINDOW_EXCLUSIVE || account_->holderIdle();
  wait = std::min(wait, close ? kBusyTurnMaxNs : kTurnMaxNs);
  const uint64_t mono_ns = monotonicNs();
  for (const auto &[id, managed] : processes_) {
    const uint64_t step = managed.process->nextStepNs();
    wait = std::min(wait, step > mono_ns ? step - mono_ns : 0);
  }
  return std::max(wait, kTurnMinNs);
}

}  // namespace qgpu::exec
