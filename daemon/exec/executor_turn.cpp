// SPDX-License-Identifier: GPL-2.0
// What the executor does by itself, turn by turn: looks for objects, reads the trace, finds out who
// has work (executor_probe.cpp), lets the core decide, has that enforced.
#include <linux/qgpu.h>

#include <algorithm>
#include <utility>

#include "executor.hpp"

namespace qgpu::exec {
namespace {

// nvidia-cuda-mps-server, as long as the kernel keeps names.
constexpr const char *kMpsName = "nvidia-cuda-mps";
constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kTurnMaxNs = 50 * kMs, kBusyTurnNs = 10 * kMs, kTurnMinNs = 20'000;
// In the endless rotation, where nothing is due but to see who has work: so many a cycle.
constexpr uint64_t kCalmTurnNs = 25 * kMs, kTurnsPerCycle = 2;
// The core's own grid of samples, which a trace needs none of, in turns.
constexpr uint64_t kGridTurns = 16;
// Of who is beside an online tenant, and for how long the others' windows together may stop it.
constexpr uint64_t kTenureMinNs = 50 * kMs, kTenureMaxNs = 120 * kMs, kStoppedNs = 350 * kMs;
// One control took so long, or this process did not run for so long: nobody could enforce anything.
// Longer than a PREEMPT may take: who resists one is not forgiven for that.
constexpr uint64_t kStallNs = 1500 * kMs;
constexpr uint64_t kReadBackNs = 1000 * kMs, kReadBackNewNs = 50 * kMs;
// A START so long after the stop is not of what was stopped.
constexpr uint64_t kEscapeNs = 3 * kMs;
// What was seen so long ago has nothing to do with what is seen now.
constexpr uint64_t kEscapeKnownNs = 10'000 * kMs;
constexpr uint64_t kEndedLookNs = 100 * kMs;
// Who uses the card for so long and is not found is not going to be.
constexpr uint64_t kUnseenNs = 1000 * kMs;
}  // namespace

ManagedTsg *Executor::byPid(uint32_t pid) {
  const Visitor *visitor = account_->visitor(pid);
  if (!visitor) return nullptr;
  for (const auto &tsg : roster_->tsgs())
    if (visitor->tsg == &tsg->core) return tsg.get();
  return nullptr;
}

// Its objects as they are now, compared with those that are managed.
void Executor::updateObjects(const ProcessId &id, Managed &managed) {
  const Process &process = *managed.process;
  std::vector<uint32_t> gone;
  for (const auto &tsg : roster_->tsgs()) {
    if (tsg->process != id) continue;
    const auto &now = process.tsgs();
    const auto same = std::find_if(now.begin(), now.end(), [&](const Tsg &t) {
      return t.handle == tsg->tsg.handle && t.id == tsg->tsg.id;
    });
    if (same == now.end()) {
      gone.push_back(tsg->tsg.handle);
    } else {
      // What it has made since it was stopped is not stopped: all of it is, anew.
      if (tsg->tsg != *same) tsg->leaks = true;
      tsg->escaped_ns = 0;
      tsg->tsg = *same;
    }
  }
  for (const uint32_t handle : gone) {
    const auto pid = static_cast<uint32_t>(id.pid);
    const Visitor *visitor = account_->visitor(pid);
    if (visitor && visitor->tsg == &roster_->find(id, handle)->core) forget(pid);
    roster_->remove(id, handle);
  }
  // The trace names processes, so one TSG stands for all of a process.
  if (!account_->visitor(static_cast<uint32_t>(id.pid)))
    for (const auto &tsg : roster_->tsgs())
      if (tsg->process == id) {
        account_->know(static_cast<uint32_t>(id.pid), &tsg->core);
        break;
      }
  for (const Tsg &tsg : process.tsgs()) {
    if (!tsg.compute() || roster_->find(id, tsg.handle)) continue;
    ManagedTsg fresh;
    fresh.process = id;
    fresh.of = process.foreign();
    fresh.tsg = tsg;
    const uint64_t ran_ns = account_->strangerSinceNs(static_cast<uint32_t>(id.pid));
    fresh.uncontrolled_ns = ran_ns ? cardNs() - std::min(cardNs(), ran_ns) : 0;
    const auto us = controls_->timesliceUs(fresh.of, tsg);
    if (!us) continue;
    const uint64_t found = inherited_.foundUs(id, tsg.handle);
    fresh.found_at_ns = cardNs();
    fresh.found_us = found ? found : *us;
    fresh.written_us = found && found != *us ? *us : 0;
    ManagedTsg &added = roster_->add(std::move(fresh), roster_->tenant(managed.tenant_id));
    if (!account_->visitor(static_cast<uint32_t>(id.pid)))
      account_->know(static_cast<uint32_t>(id.pid), &added.core);
    // Whoever enforced before may have left it stopped, and the record of that may be lost. One
    // that runs goes on.
    (void)controls_->enable(channelsOf(added.of, added.tsg));
    // Names who holds the engine now.
    if (trace_ && roster_->enforcing()) (void)controls_->preempt(added.of, added.tsg);
  }
  save();
}

void Executor::reportControlled(const ProcessId &id, Managed &managed) {
  managed.told_blind = false;
  uint64_t gap_ns = 0;
  for (const auto &tsg : roster_->tsgs())
    if (tsg->process == id) gap_ns = std::max(gap_ns, tsg->uncontrolled_ns);
  std::string sentence;
  if (processName(id.pid) == kMpsName)
    sentence = "process " + std::to_string(id.pid) +
               " is an MPS server: its clients are one tenant together";
  report(EventKind::kProcessControlled, managed.tenant_id, id.pid, sentence, gap_ns);
}

void Executor::reportBlind(const ProcessId &id, Managed &managed) {
  if (managed.told_blind) return;
  managed.told_blind = true;
  report(EventKind::kProcessBlind, managed.tenant_id, id.pid, managed.process->why());
}

// The trace has it, and there is nothing to control it by.
void Executor::noteUnseen(const ProcessId &id, Managed &managed, uint64_t now_ns) {
  if (managed.process->state() != Process::State::kLooking) return;
  const auto pid = static_cast<uint32_t>(id.pid);
  const uint64_t since_ns = account_->strangerSinceNs(pid), card_ns = cardNs();
  if (!since_ns || card_ns < since_ns + kUnseenNs) return;
  if (now_ns < managed.process->namedNs() + kUnseenNs) return;
  if (!account_->strangerRuns(pid, card_ns - kUnseenNs / 4)) return;
  managed.process->runsUnseen();
  reportBlind(id, managed);
}

// What it did was its tenant's and stays so.
void Executor::bookVisits(uint32_t pid) {
  Visitor *visitor = account_->visitor(pid);
  if (!visitor) return;
  for (const auto &tsg : roster_->tsgs())
    if (&tsg->core == visitor->tsg && tsg->tenant)
      tsg->tenant->past_visits += std::exchange(visitor->visits, 0);
}

void Executor::forget(uint32_t pid) {
  bookVisits(pid);
  account_->forget(pid);
}

void Executor::release(const ProcessId &id) {
  forget(static_cast<uint32_t>(id.pid));
  enforcer_->forget(id);
  roster_->removeProcess(id);
  std::erase_if(inherited_.slices, [&](const StoredSlice &slice) { return slice.id == id; });
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
    if (look_ended) noteUnseen(id, managed, now_ns);
    if (!changed) continue;
    if (process.state() == Process::State::kBlind) {
      reportBlind(id, managed);
    } else if (process.state() == Process::State::kControlled) {
      updateObjects(id, managed);
      if (before != Process::State::kControlled) reportControlled(id, managed);
    }
  }
  for (const ProcessId &id : gone) {
    report(EventKind::kProcessGone, processes_[id].tenant_id, id.pid, "");
    trustAfter(id);
    release(id);
    processes_.erase(id);
  }
  if (!gone.empty()) save();
  reportStatus();
}

void Executor::takeRecords(uint64_t now_ns) {
  records_.clear();
  trace_->read(records_);
  if (!records_.empty()) record_ns_ = now_ns;
  calibration_->take(records_);
  account_->take(records_);
}

// Everything up to this instant. A flush that failed leaves records for later: nothing is known of
// now then.
bool Executor::readTrace(uint64_t now_ns) {
  const uint64_t flush_ns = cardNs();
  const RmOutcome out = trace_->flush();
  takeRecords(now_ns);
  if (!out.ok()) return false;
  account_->upTo(flush_ns);
  traced_ns_ = flush_ns;
  return true;
}

void Executor::turnTrace(uint64_t now_ns) {
  if (!trace_) {
    infer(now_ns);
    turnUtilisation();
    return;
  }
  readTrace(now_ns);
  if (!trace_->understood()) {
    goByClock("its records are of a layout that is not known");
    return;
  }
  if (trace_->lost() != lost_) {
    report(EventKind::kTraceLost, kNoTenant, 0, "records of the context-switch trace were lost",
           trace_->lost() - lost_);
    lost_ = trace_->lost();
    // Among them may have been that of a context that is new.
    for (auto &[id, managed] : processes_) managed.process->noteNew(options_.now_ns());
  }
}

// For how long a control hung, or this was not let run; 0: not for long. A turn that is long
// because there is much to do is no such thing: who makes it long would never owe anything.
uint64_t Executor::stalledNs(uint64_t now_ns) {
  const uint64_t late_ns = due_ns_ ? now_ns - std::min(due_ns_, now_ns) : 0;
  const uint64_t ns = std::max(own_->io().takeSlowestNs(), late_ns);
  return ns < kStallNs ? 0 : ns;
}

// The guard took this for hung, wherever that was, and opened its gates.
bool Executor::wasOpened() {
  const uint64_t releases = options_.pulse ? options_.pulse->releases() : 0;
  return std::exchange(releases_, releases) != releases;
}

// What ran while nobody could do anything about it is accounted; but who was to pay for it would
// stand still for seconds. Any gate may be open.
void Executor::forgiveStall() {
  const uint64_t ns = stalledNs(turn_ns_);
  const bool opened = wasOpened();
  if (ns || opened) {
    turnTrace(cardNs());  // all of it: the hanging control may have been the trace's own
    core_forgive(&core_, charged_ns_);
    account_->forgive();
    enforcer_->letAllRun(cardNs());
    for (const auto &tsg : roster_->tsgs()) tsg->escaped_ns = 0;
    report(EventKind::kStalled, kNoTenant, 0,
           "the executor did nothing for " + (ns ? std::to_string(ns / kMs) + " ms" : "seconds") +
               (opened ? ", and what it had stopped ran" : ""),
           ns);
  }
  charged_ns_ = core_.looked_ns;
}

// What the account has to know of every TSG to judge its visits.
void Executor::tellAccount() {
  account_->tookOff(enforcer_->lastStopNs());
  for (const auto &tsg : roster_->tsgs()) {
    Visitor *visitor = visitorOf(*tsg);
    if (!visitor) continue;
    visitor->open = !tsg->gated;
    visitor->open_from_ns = tsg->opened_ns;
    const uint64_t slice_ns = tsg->sliceUs() * options_.params.slice_unit_ns;
    // The visit that is on may still have the slice it began with.
    if (slice_ns != visitor->slice_ns) visitor->disturbed_ns = cardNs();
    visitor->slice_ns = slice_ns;
    visitor->stopped_ns = tsg->gated_ns;
  }
}

uint32_t Executor::awake() const { return core_.awake_tenants; }

// It got the engine, or had it when the trace was last read, while all that is known of it is
// stopped. Who has had it since before that cannot be cut.
bool Executor::runsThoughStopped(const ManagedTsg &tsg) {
  const Visitor *visitor = visitorOf(tsg);
  if (!tsg.gated || tsg.leaks || !visitor) return false;
  const uint64_t from_ns = tsg.gate_done_ns + kEscapeNs;
  if (visitor->last_start_ns >= from_ns) return true;
  const bool holds = account_->holder() == static_cast<uint32_t>(tsg.process.pid);
  return holds && visitor->last_start_ns > tsg.gated_ns && traced_ns_ > from_ns;
}

// It has more than is known, which a look tells, or was let run: told of is what a look that was
// over since then does not explain.
void Executor::noteEscapes() {
  const uint64_t now_ns = options_.now_ns();
  for (const auto &tsg : roster_->tsgs()) {
    if (!runsThoughStopped(*tsg)) continue;
    tsg->leaks = true;
    const auto it = processes_.find(tsg->process);
    if (it == processes_.end()) continue;
    Process &process = *it->second.process;
    const bool is_known = tsg->escaped_ns && now_ns < tsg->escaped_ns + kEscapeKnownNs;
    // The look that is awaited would begin anew.
    if (is_known && process.finishedNs() < tsg->escaped_ns) continue;
    if (is_known) enforcer_->escaped(*tsg, cardNs());
    tsg->escaped_ns = now_ns;
    process.lookAgain(now_ns);
  }
}

// Who runs in a context that it had not before may have a TSG that it had not.
void Executor::noteNewContexts(uint64_t now_ns) {
  looks_->hearOfNew(trace_ && account_->namesContexts());
  for (auto &[id, managed] : processes_) {
    Visitor *visitor = account_->visitor(static_cast<uint32_t>(id.pid));
    if (visitor && std::exchange(visitor->new_context, false)) managed.process->noteNew(now_ns);
  }
}

void Executor::turnReadBack(uint64_t now_ns) {
  if (now_ns >= read_back_new_ns_ + kReadBackNewNs) {
    read_back_new_ns_ = now_ns;
    enforcer_->readBackNew(now_ns);
  }
  if (now_ns < read_back_ns_ + kReadBackNs) return;
  read_back_ns_ = now_ns;
  noteEscapes();
  std::vector<ProcessId> gone = enforcer_->readBack(now_ns);
  for (auto &[id, managed] : processes_) {
    const bool was_controlled = managed.process->state() == Process::State::kControlled;
    if (std::find(gone.begin(), gone.end(), id) != gone.end())
      managed.process->lookAgain(options_.now_ns());
    if (was_controlled && !managed.process->stillThere()) release(id);
  }
}

// Between two readings of the trace while several are awake. Each costs the driver 55 us.
uint64_t Executor::busyTurnNs() const {
  if (!core_rotates_endlessly(&core_)) return kBusyTurnNs;
  return std::clamp<uint64_t>(core_.cycle_ns / kTurnsPerCycle, kBusyTurnNs, kCalmTurnNs);
}

// When the core has something to decide. Its grid of samples is out of the way of the readings.
uint64_t Executor::nextNs(uint64_t now_ns) {
  const uint64_t sample_ns = core_.params.sample_ns;
  core_.params.sample_ns = kGridTurns * busyTurnNs();
  const uint64_t next = core_next_ns(&core_, now_ns);
  core_.params.sample_ns = sample_ns;
  return next;
}

// A change of a window costs a millisecond of two controls: where windows follow each other under
// burst-share, the cycle is as long as windows of 50 ms each make it. The plan's own cycle wins.
void Executor::fitCycle() {
  if (roster_->plan().policy != QGPU_POLICY_BURST_SHARE || roster_->plan().cycle_ns) return;
  uint64_t servers = 0, members = 0;
  for (const auto &[id, tenant] : roster_->tenants()) {
    if (!tenant->core.awake_count) continue;
    (tenant->core.misfit ? servers : members)++;
  }
  const uint64_t cycle_ns =
      servers && servers + members > 1 ? kWindowNs * (servers + std::min<uint64_t>(members, 1)) : 0;
  const uint64_t tenure_ns = tenureNs();
  if (cycle_ns == core_.cycle_asked_ns && tenure_ns == core_.params.tenure_ns) return;
  core_tenure_set(&core_, tenure_ns);
  core_policy_set(&core_, CORE_BURST_SHARE, cycle_ns);
}

// Who is beside an online tenant is stopped for all windows of the others. The longer the windows,
// the fewer the changes that an arrival falls into, up to what anybody may be stopped for.
uint64_t Executor::tenureNs() const {
  uint64_t all_ppm = 0, least_ppm = QGPU_PPM;
  for (const auto &[id, tenant] : roster_->tenants()) {
    if (!tenant->core.awake_count || tenant->core.place == CORE_BESIDE) continue;
    all_ppm += tenant->core.share_ppm;
    least_ppm = std::min<uint64_t>(least_ppm, tenant->core.share_ppm);
  }
  if (all_ppm <= least_ppm) return kTenureMinNs;
  return std::clamp(kStoppedNs * least_ppm / (all_ppm - least_ppm), kTenureMinNs, kTenureMaxNs);
}

// Between two windows both owners are open, so that the engine does not stand still; but not beside
// online: who wakes then would wait for both, and the control that stops one takes it off too.
void Executor::enforce(uint64_t now_ns) {
  if (core_.online_count) {
    enforcer_->stopOthers(now_ns);
    enforcer_->letRun(std::max<uint64_t>(cardNs(), core_.looked_ns));
  } else {
    changeWindow(now_ns);
  }
  tellAccount();
}

// Whose window begins may be due to be asked how it gaps: then the others go on until that is done.
void Executor::changeWindow(uint64_t now_ns) {
  ManagedTsg *asked = dueAtItsWindow(now_ns);
  enforcer_->letRun(now_ns);
  if (asked) {
    tellAccount();
    askAtItsWindow(*asked);
    now_ns = std::max<uint64_t>(cardNs(), core_.looked_ns);
  }
  enforcer_->stopOthers(now_ns);
}

// Until something is due.
uint64_t Executor::waitNs() {
  const uint64_t now_ns = std::max<uint64_t>(cardNs(), core_.looked_ns);
  const uint64_t next = nextNs(now_ns);
  uint64_t wait = next > now_ns ? next - now_ns : 0;
  const bool close = calibration_->runs() || awake() >= 2 ||
                     core_.window.kind == CORE_WINDOW_EXCLUSIVE || account_->holderIdle();
  wait = std::min(wait, close ? busyTurnNs() : kTurnMaxNs);
  if (const uint64_t gate_ns = calibration_->nextNs(); gate_ns != UINT64_MAX)
    wait = std::min(wait, gate_ns - std::min(gate_ns, now_ns));
  if (ask_at_ns_ > now_ns) wait = std::min(wait, ask_at_ns_ - now_ns);
  if (asks_left_ && ask_window_at_ns_ > now_ns && asked_window_ns_ == core_.window.from_ns)
    wait = std::min(wait, ask_window_at_ns_ - now_ns);
  for (const auto &tsg : roster_->tsgs())
    if (tsg->hold_until_ns > now_ns) wait = std::min(wait, tsg->hold_until_ns - now_ns);
  const uint64_t mono_ns = options_.now_ns();
  for (const auto &[id, managed] : processes_) {
    if (managed.process->isCalm()) continue;
    const uint64_t step = managed.process->nextStepNs();
    wait = std::min(wait, step > mono_ns ? step - mono_ns : 0);
  }
  return wait;
}

uint64_t Executor::turn() {
  turn_ns_ = options_.now_ns();
  calibration_->gate();
  turnProcesses(turn_ns_);
  turnTrace(cardNs());
  forgiveStall();
  noteNewContexts(turn_ns_);
  calibration_->turn(traced_ns_);
  // What its processes take from one tenant more than from another is no debt.
  if (calibration_->runs()) core_forgive(&core_, charged_ns_);
  if (trace_) progress_->check(*roster_, core_.looked_ns);
  if (trace_ && roster_->enforcing()) {
    probeHolder(cardNs());
    probeEarly(cardNs());
  }
  const uint64_t now_ns = std::max<uint64_t>(cardNs(), core_.looked_ns);
  fitCycle();
  forgivePaced();
  core_pick(&core_, now_ns);
  enforce(now_ns);
  turnReadBack(now_ns);

  const uint64_t wait_ns = std::max(waitNs(), kTurnMinNs);
  due_ns_ = options_.now_ns() + wait_ns;
  return wait_ns;
}

}  // namespace qgpu::exec
