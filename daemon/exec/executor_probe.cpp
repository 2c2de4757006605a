// SPDX-License-Identifier: GPL-2.0
// Who has work, and what kind of: asked where the trace is silent.
//
// A preemption makes the trace speak: with work there is an END and a START, without there is none
// or an END alone, and nothing is lost.
//
// One that ends its visits early is either launch-and-sync, and then every gap costs it its turn
// and only windows give it its share; or it is paced by its processor or its requests, and then
// windows would stand empty. Gaps of some microseconds cannot be told by asking for work: it is
// there again before the preemption is. But what is paced piles up while others run. So its visits
// after short and after long waits are compared: of the one that waits for each kernel they are the
// same.
#include <linux/qgpu.h>

#include <algorithm>

#include "executor.hpp"

namespace qgpu::exec {
namespace {

constexpr uint64_t kMs = 1'000'000;
// Between two probes of a holder that is alone: with work a probe costs it 0.2 ms, without nothing.
constexpr uint64_t kProbeBusyNs = 400 * kMs, kProbeIdleNs = 100 * kMs, kProbeSoonNs = 20 * kMs;
// While others are stopped, doubled at each answer that it works.
constexpr uint64_t kProbeAgainNs = 1 * kMs;
constexpr unsigned kProbeBackoff = 6;
// In windows of its own: once in so long; one in doubt so often in each, about so far apart.
constexpr uint64_t kProbeWindowNs = 250 * kMs, kProbeDoubtNs = 700'000;
constexpr unsigned kProbesInDoubt = 8;
// Of one that ended early: so long after that at least, at most; and so often.
constexpr uint64_t kProbeEarlyNs = 300'000, kProbeLateNs = 1'500'000;
constexpr uint64_t kProbeUnsureNs = 20 * kMs, kProbeSureNs = 1000 * kMs;
// Of one that was given windows and left them empty: the longer, the more often that was so. Not
// for ever.
constexpr uint64_t kDistrustMinNs = 1000 * kMs, kDistrustMaxNs = 8000 * kMs;
constexpr uint64_t kDistrustEndsNs = 60'000 * kMs;
// From the last work of a process to its end.
constexpr uint64_t kEndingNs = 3000 * kMs;
// After so many its tenant is known well, in doubt after some more; those are asked no more often
// than this, all together. In so long one is forgotten.
// The first of them are cheap, and so few that who is asked once a second has none.
constexpr unsigned kAsksCheap = 6, kAsksSure = 8, kAsksInDoubt = 32;
constexpr uint64_t kAskPauseNs = 250 * kMs, kAskForgottenNs = 1000 * kMs;
// Nor than this many times what one takes: in a crowd all others are stopped for it.
constexpr uint64_t kAskCostTimes = 100, kAskUnknownCostTimes = 20;
// Who is next is waited for for so many switches: of one, half was over at the END.
constexpr uint64_t kStartSwitches = 2;
// Its visit is waited for no longer than this.
constexpr uint64_t kVisitMaxNs = 8 * kMs;
// Who never waits long is held for a while.
constexpr uint64_t kHoldNs = 5 * kMs;
// A visit after a long wait so many times as long as after a short one: it had piled up.
constexpr uint64_t kPiledUp = 3;

}  // namespace

// Half to one and a half of it.
uint64_t Executor::jitter(uint64_t ns) { return ns / 2 + random_() % ns; }

// Null for a TSG for which another of its process stands.
Visitor *Executor::visitorOf(const ManagedTsg &tsg) {
  Visitor *visitor = account_->visitor(static_cast<uint32_t>(tsg.process.pid));
  return visitor && visitor->tsg == &tsg.core ? visitor : nullptr;
}

bool Executor::inOwnWindow(const ManagedTsg &tsg) const {
  return core_.window.kind == CORE_WINDOW_EXCLUSIVE && tsg.tenant &&
         core_.window.owner == &tsg.tenant->core;
}

// Takes the process's TSGs off and reads what the trace says of that. False when nothing can be
// said.
bool Executor::preempt(ManagedTsg &tsg, uint64_t now_ns) {
  if (Visitor *visitor = visitorOf(tsg)) visitor->disturbed_ns = now_ns;
  // Visits that are cut here say nothing of who fits the rotation.
  core_fit_disturbed(&core_, now_ns);
  for (const auto &one : roster_->tsgs())
    if (one->process == tsg.process && !controls_->preempt(one->of, one->tsg)) return false;
  return readTrace(now_ns);
}

// After the one that had the engine from this instant on was taken off: until somebody else's
// START, or its next, or nobody has work. A reading takes 8 to 110 us, what comes next is there
// after a switch. That nobody came is known of the time that was read, however late this is.
bool Executor::awaitStart(uint64_t held_from_ns) {
  const uint64_t until_ns = cardNs() + kStartSwitches * options_.params.switch_ns;
  while ((!account_->holder() || account_->heldFromNs() == held_from_ns) && traced_ns_ < until_ns)
    if (!readTrace(cardNs())) return false;
  return true;
}

// When in a window of its own it is asked: what had piled up before the window says nothing, so not
// at its beginning.
bool Executor::dueInOwnWindow(ManagedTsg &tsg, const Visitor &visitor, uint64_t now_ns) {
  if (asked_window_ns_ != core_.window.from_ns) {
    asked_window_ns_ = core_.window.from_ns;
    ask_window_at_ns_ = core_.window.from_ns + jitter(core_.window.budget_ns / 2);
    asks_left_ = now_ns < tsg.window_asked_ns + kProbeWindowNs ? 0 : 1;
    if (tsg.answers.inDoubt(visitor.belief)) asks_left_ = kProbesInDoubt;
  }
  if (!asks_left_ || now_ns < ask_window_at_ns_) return false;
  asks_left_--;
  tsg.window_asked_ns = now_ns;
  ask_window_at_ns_ = now_ns + jitter(kProbeDoubtNs);
  return true;
}

// Since the last that was heard of the one that holds the engine, how long until it is asked.
uint64_t Executor::askGapNs(const ManagedTsg &tsg) {
  const bool others_wait = std::any_of(roster_->tsgs().begin(), roster_->tsgs().end(),
                                       [](const auto &t) { return t->gated; });
  if (account_->holderIdle()) {
    const uint64_t gap_ns = others_wait ? kProbeAgainNs : kProbeIdleNs;
    return tsg.tenant->asked.ceiling_ppm < QGPU_PPM ? std::min(gap_ns, kProbeSoonNs) : gap_ns;
  }
  return others_wait ? kProbeAgainNs << std::min(tsg.busy_answers, kProbeBackoff)
                     : jitter(kProbeBusyNs);
}

// Does the one that holds the engine by itself have work? Asked when it matters: soon when others
// are stopped for its sake, once in some of its own windows, now and then for the ledger.
void Executor::probeHolder(uint64_t now_ns) {
  const uint32_t pid = account_->holder();
  ManagedTsg *tsg = byPid(pid);
  if (!tsg || !tsg->tenant || tsg->gated) return;
  Visitor &visitor = *visitorOf(*tsg);
  const bool own_window = inOwnWindow(*tsg);
  if (own_window && roster_->leavesIdle()) return;
  const uint64_t last_ns = std::max<uint64_t>({probed_ns_, record_ns_, core_.window.from_ns});
  if (own_window && !account_->holderIdle() ? !dueInOwnWindow(*tsg, visitor, now_ns)
                                            : now_ns <= last_ns + askGapNs(*tsg))
    return;
  probed_ns_ = now_ns;
  const uint64_t end_ns = visitor.last_end_ns, from_ns = account_->heldFromNs();
  if (!preempt(*tsg, now_ns)) return;
  if ((own_window || visitor.last_end_ns != end_ns) && !awaitStart(from_ns)) return;
  const bool was_on = visitor.last_end_ns != end_ns;
  const bool work = was_on && account_->holder();
  if (account_->holder() == pid)
    account_->probed(cardNs(), work);
  else if (!account_->holder())
    account_->left(pid);
  tsg->busy_answers = work ? tsg->busy_answers + 1 : 0;
  if (own_window) noteAnswer(*tsg, visitor, work);
}

void Executor::noteAnswer(ManagedTsg &tsg, Visitor &visitor, bool work, unsigned times) {
  tsg.answers.add(work, times);
  const Belief belief = tsg.answers.belief(visitor.belief);
  if (belief == visitor.belief) return;
  visitor.belief = belief;
  ManagedTenant &tenant = *tsg.tenant;
  // What its gaps were taken for until now says nothing any more.
  if (belief == Belief::kSyncs) {
    core_fit_restart(&core_, &tenant.core);
  } else {
    tsg.answers.keepFresh();
    if (tenant.core.misfit) distrust(tenant, tsg.process);
    core_fit_forgive(&core_, &tenant.core, 0);
  }
}

void Executor::distrust(ManagedTenant &tenant, const ProcessId &process) {
  tenant.distrust_before_ns = distrustNs(tenant);
  tenant.distrust_ns = std::clamp(2 * tenant.distrust_before_ns, kDistrustMinNs, kDistrustMaxNs);
  tenant.distrusted_ns = core_.looked_ns;
  tenant.distrusted = process;
}

// One that ends leaves its windows empty before that; the tenant's next may be as it was.
void Executor::trustAfter(const ProcessId &ended) {
  for (const auto &[id, tenant] : roster_->tenants())
    if (tenant->distrusted == ended && core_.looked_ns < tenant->distrusted_ns + kEndingNs)
      tenant->distrust_ns = tenant->distrust_before_ns;
}

uint64_t Executor::distrustNs(const ManagedTenant &tenant) const {
  return core_.looked_ns < tenant.distrusted_ns + kDistrustEndsNs ? tenant.distrust_ns : 0;
}

// How often a tenant was asked, less what is forgotten by now.
unsigned Executor::asksOf(const ManagedTenant &tenant) const {
  const uint64_t now_ns = std::max<uint64_t>(core_.looked_ns, tenant.asked_ns);
  const uint64_t forgotten = (now_ns - tenant.asked_ns) / kAskForgottenNs;
  return static_cast<unsigned>(tenant.asks - std::min<uint64_t>(tenant.asks, forgotten));
}

// Not known yet, or in doubt again; not if that goes on for long.
bool Executor::isUnsure(const ManagedTsg &tsg, const Visitor &visitor) const {
  const unsigned asks = asksOf(*tsg.tenant);
  return asks < kAsksSure || (asks < kAsksInDoubt && tsg.answers.inDoubt(visitor.belief));
}

bool Executor::canBeCut(const Visitor &visitor) const {
  return visitor.uncut_until_ns <= core_.looked_ns;
}

// The core sees early ends and a share that is not reached. Whether windows would help is known
// here: to who syncs, and to who cannot be cut.
void Executor::forgivePaced() {
  for (const auto &[id, tenant] : roster_->tenants()) {
    if (!tenant->core.misfit) continue;
    const bool needs = std::any_of(
        roster_->tsgs().begin(), roster_->tsgs().end(), [&, &of = tenant](const auto &tsg) {
          const Visitor *visitor = tsg->tenant == of.get() ? visitorOf(*tsg) : nullptr;
          return visitor && (visitor->belief == Belief::kSyncs || !canBeCut(*visitor));
        });
    if (!needs) core_fit_forgive(&core_, &tenant->core, 0);
  }
}

// When one that ends its visits early may be asked again.
uint64_t Executor::askFromNs(const ManagedTsg &tsg, const Visitor &visitor) const {
  const ManagedTenant &tenant = *tsg.tenant;
  if (!tenant.asked_ns) return 0;
  const bool in_doubt = tsg.answers.inDoubt(visitor.belief);
  if (const uint64_t ns = distrustNs(tenant); ns && visitor.belief == Belief::kPaced && !in_doubt)
    return tenant.asked_ns + ns;
  return tenant.asked_ns + (isUnsure(tsg, visitor) ? kProbeUnsureNs : kProbeSureNs);
}

// Takes `other` off, so that it comes on if it has work, and waits for the end of that visit. How
// long it computed; 0: it had no work; nothing: it cannot be said.
std::optional<uint64_t> Executor::nextVisitNs(const ManagedTsg &tsg, ManagedTsg &other) {
  const Visitor &visitor = *visitorOf(tsg);
  const uint64_t visits = visitor.visits, from_ns = account_->heldFromNs();
  if (!preempt(other, cardNs()) || !awaitStart(from_ns)) return std::nullopt;
  if (visitor.visits == visits) return 0;
  const uint64_t until_ns =
      visitor.last_start_ns + (visitor.long_visit_at_ns
                                   ? std::min(kVisitMaxNs, kPiledUp * visitor.long_visit_ns + kMs)
                                   : kVisitMaxNs);
  while (visitor.last_end_ns < visitor.last_start_ns)
    if (cardNs() > until_ns || !readTrace(cardNs())) return std::nullopt;
  return options_.params.computedNs(visitor.last_end_ns - visitor.last_start_ns);
}

void Executor::noteVisits(ManagedTsg &tsg, Visitor &visitor, uint64_t short_ns, uint64_t long_ns) {
  noteAnswer(tsg, visitor, long_ns < kPiledUp * short_ns, Answers::kVisits);
}

// Soon after it has ended early: if it has work again by then it gets the engine, and is no longer
// on it than what it has lasts. With all but the one that holds the engine stopped.
void Executor::askEarly(ManagedTsg &tsg, Visitor &visitor, ManagedTsg &holder, uint64_t now_ns) {
  const auto held = enforcer_->holdOthers({&tsg, &holder}, now_ns);
  account_->tookOff(enforcer_->lastStopNs());
  const uint64_t long_ns = visitor.long_visit_ns;
  const bool known = visitor.knowsLongVisit(now_ns);
  const auto short_ns = nextVisitNs(tsg, holder);
  enforcer_->letGo(held, cardNs());
  if (!short_ns) return;
  if (!*short_ns)
    noteAnswer(tsg, visitor, false, Answers::kNotBack);
  else if (known)
    noteVisits(tsg, visitor, *short_ns, long_ns);
  else
    tsg.hold_until_ns = cardNs() + kHoldNs;
}

void Executor::probeEarly(uint64_t now_ns) {
  ManagedTsg *holder = byPid(account_->holder());
  ask_at_ns_ = UINT64_MAX;
  if (!holder || !holder->tenant || holder->gated || core_.window.owner) return;
  if (!canBeCut(*visitorOf(*holder))) return;
  ManagedTsg *next = nullptr;
  for (const auto &tsg : roster_->tsgs()) {
    const Visitor *visitor = visitorOf(*tsg);
    if (tsg.get() == holder || !tsg->tenant || tsg->gated || !visitor || !visitor->endsEarly())
      continue;
    if (visitor->last_end_ns > account_->heldFromNs() || !canBeCut(*visitor)) continue;
    if (now_ns < std::max(askFromNs(*tsg, *visitor), asks_from_ns_)) continue;
    if (now_ns < visitor->last_end_ns + kProbeEarlyNs ||
        now_ns > visitor->last_end_ns + kProbeLateNs) {
      // Its next visit comes when the holder's slice is over, and is about as long as the last.
      const uint64_t next_end_ns =
          account_->heldFromNs() + holder->sliceUs() * options_.params.slice_unit_ns +
          options_.params.switch_ns + visitor->last_end_ns - visitor->last_start_ns;
      ask_at_ns_ = std::min(ask_at_ns_, next_end_ns + (kProbeEarlyNs + kProbeLateNs) / 2);
      continue;
    }
    // Whoever waits longest for it.
    const auto waits = [](const ManagedTsg &t) {
      return std::pair(t.tenant->asked_ns, t.asked_ns);
    };
    if (!next || waits(*tsg) < waits(*next)) next = tsg.get();
  }
  if (!next) return;
  const unsigned asks = asksOf(*next->tenant);
  const bool is_unknown = asks < kAsksCheap;
  next->tenant->asks = asks + 1;
  next->asked_ns = next->tenant->asked_ns = now_ns;
  askEarly(*next, *visitorOf(*next), *holder, now_ns);
  const uint64_t took_ns = cardNs() - now_ns;
  asks_from_ns_ = now_ns + (is_unknown ? std::max(kProbeUnsureNs, kAskUnknownCostTimes * took_ns)
                                       : std::max(kAskPauseNs, kAskCostTimes * took_ns));
}

// Whose window begins now, and is to be asked whether it still is what it is taken for.
ManagedTsg *Executor::dueAtItsWindow(uint64_t now_ns) {
  const ManagedTsg *holder = byPid(account_->holder());
  if (!trace_ || !holder || !holder->tenant || holder->gated) return nullptr;
  for (const auto &tsg : roster_->tsgs()) {
    const Visitor *visitor = visitorOf(*tsg);
    if (!tsg->gated || !visitor || !inOwnWindow(*tsg) || holder->tenant == tsg->tenant) continue;
    if (!tsg->tenant->core.misfit || !visitor->long_visit_at_ns) continue;
    if (visitor->belief != Belief::kSyncs || now_ns < tsg->tenant->asked_ns + kProbeSureNs)
      continue;
    return tsg.get();
  }
  return nullptr;
}

// It has waited long, and the one that ran goes on beside it for now.
void Executor::askAtItsWindow(ManagedTsg &tsg) {
  Visitor &visitor = *visitorOf(tsg);
  ManagedTsg *holder = byPid(account_->holder());
  tsg.tenant->asks = asksOf(*tsg.tenant);
  tsg.asked_ns = tsg.tenant->asked_ns = cardNs();
  if (!holder || holder == &tsg) return;
  const auto long_ns = nextVisitNs(tsg, *holder);
  if (!long_ns || !*long_ns) return;
  for (uint64_t until_ns = cardNs() + kProbeEarlyNs; cardNs() < until_ns;)
    if (!readTrace(cardNs())) return;
  const auto short_ns = nextVisitNs(tsg, *holder);
  if (short_ns && *short_ns) noteVisits(tsg, visitor, *short_ns, *long_ns);
}

}  // namespace qgpu::exec
