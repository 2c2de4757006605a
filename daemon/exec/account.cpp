// SPDX-License-Identifier: GPL-2.0
#include "account.hpp"

#include <algorithm>

namespace qgpu::exec {
namespace {

// The trace has every edge, so nothing changes between two of these.
constexpr uint64_t kLookNs = 5'000'000;
// Who was off the engine for so long had time to pile up work.
constexpr uint64_t kLongOffNs = 4'000'000;
// A slice and a quarter and so much more is not the hardware's way of cutting; nor is so much after
// the control that stops it was issued.
constexpr uint64_t kOverlongNs = 1'000'000, kTailNs = 2'000'000;
// Once it may have been setting up, and so many times what was too long are enough; twice within
// this it is of that kind.
constexpr uint64_t kOverlongOnceNs = 1'000'000'000, kOverlongKnownNs = 10'000'000'000;
constexpr uint64_t kOverlongTimes = 10;
// What a visit after a long wait was says nothing after so long, or so many visits.
constexpr uint64_t kLongKnownNs = 2'000'000'000, kLongKnownVisits = 32;
// Slices are exact to this part.
constexpr uint64_t kSlicePart = 32;
// Beyond a round of the others, and a part of it, before one that did not run in it is taken to
// have no work.
constexpr uint64_t kRoundSlackNs = 500'000, kRoundPart = 4;
// Those who are not known are remembered up to this many, and room is made first of who has not run
// for so long.
constexpr size_t kStrangersMax = 256;
constexpr uint64_t kStrangerQuietNs = 10'000'000'000;
// Contexts of a process that are remembered, some for each of its channels.
constexpr size_t kContextsMax = 64;
// A gap so much longer than a switch takes had nobody waiting in it.
constexpr uint64_t kGapSlackNs = 150'000;

}  // namespace

uint64_t Visitor::overNs() const {
  const uint64_t due_ns = wasStopped() ? stopped_ns : last_start_ns + slice_ns;
  return last_end_ns - std::min(due_ns, last_end_ns);
}

bool Visitor::knowsLongVisit(uint64_t now_ns) const {
  return long_visit_at_ns + kLongKnownNs > now_ns && visits - long_visit_no <= kLongKnownVisits;
}

Account::Account(core &core, const CardParams &params, uint64_t now_ns)
    : core_(core), params_(params), end_ns_(now_ns) {}

void Account::know(uint32_t pid, core_tsg *tsg) {
  visitors_[pid].tsg = tsg;
  strangers_.erase(pid);
}

uint64_t Account::strangerSinceNs(uint32_t pid) const {
  const auto it = strangers_.find(pid);
  return it == strangers_.end() ? 0 : it->second.first_ns;
}

bool Account::strangerRuns(uint32_t pid, uint64_t after_ns) const {
  const auto it = strangers_.find(pid);
  return it != strangers_.end() && (it->second.last_ns > after_ns || (on_ && pid_ == pid));
}

// Who has left makes room; among those who have not, the one that came last: whoever lets many
// short processes run would else have everybody else forgotten.
void Account::noteStranger(uint32_t pid, uint64_t at_ns) {
  const auto [it, is_new] = strangers_.try_emplace(pid, Stranger{at_ns, at_ns});
  it->second.last_ns = at_ns;
  if (!is_new || strangers_.size() <= kStrangersMax) return;
  const auto quiet = std::min_element(
      strangers_.begin(), strangers_.end(),
      [](const auto &a, const auto &b) { return a.second.last_ns < b.second.last_ns; });
  if (quiet->second.last_ns + kStrangerQuietNs < at_ns) {
    strangers_.erase(quiet);
    return;
  }
  strangers_.erase(std::max_element(
      strangers_.begin(), strangers_.end(),
      [](const auto &a, const auto &b) { return a.second.first_ns < b.second.first_ns; }));
}

void Account::forget(uint32_t pid) {
  visitors_.erase(pid);
  strangers_.erase(pid);
  if (pid == pid_) on_ = false;
}

Visitor *Account::visitor(uint32_t pid) {
  const auto it = visitors_.find(pid);
  return it == visitors_.end() ? nullptr : &it->second;
}

Visitor *Account::current() {
  const auto it = visitors_.find(pid_);
  return it == visitors_.end() ? nullptr : &it->second;
}

// Two looks at one instant make an edge: the core splits the time between two looks, and between
// these there is none.
void Account::look(uint64_t at_ns, core_seen seen) {
  core_tsg *tsg = nullptr;
  if (at_ns < core_.looked_ns) at_ns = core_.looked_ns;
  // The core takes a long time between two looks for one in which it missed some.
  while (at_ns > core_.looked_ns + kLookNs)
    core_look(&core_, core_.looked_ns + kLookNs,
              core_.seen == CORE_SEEN_TSG && !core_.seen_tsg ? CORE_SEEN_NOBODY : core_.seen,
              core_.seen_tsg);
  if (seen == CORE_SEEN_TSG) {
    const Visitor *visitor = current();
    tsg = visitor ? visitor->tsg : nullptr;
    if (!tsg || !tsg->tenant) {
      seen = CORE_SEEN_NOBODY;
      tsg = nullptr;
    }
  }
  core_tsg *before = core_.seen_tsg;
  const core_seen seen_before = core_.seen;
  if (seen_before != seen || before != tsg) {
    if (seen_before == CORE_SEEN_TSG && !before) {
      core_look(&core_, at_ns, CORE_SEEN_NOBODY, nullptr);
    } else {
      core_look(&core_, at_ns, seen_before, before);
    }
  }
  core_look(&core_, at_ns, seen, tsg);
}

// The time since the last END, nobody being on.
void Account::lookGap(uint64_t until_ns) {
  if (!gap_idle_ && until_ns > end_ns_ + params_.gap_ns + kGapSlackNs) {
    look(end_ns_ + params_.gap_ns, CORE_SEEN_IDLE);
    gap_idle_ = true;
  }
  if (gap_idle_ && until_ns > params_.gap_ns) look(until_ns - params_.gap_ns, CORE_SEEN_IDLE);
}

// All through its last visit: a slice is over only when somebody waits.
bool Account::othersWaited(const Visitor &visitor) const {
  return std::any_of(visitors_.begin(), visitors_.end(), [&](const auto &known) {
    const Visitor &other = known.second;
    return &other != &visitor && other.open && other.open_from_ns <= visitor.last_start_ns &&
           other.tsg && other.tsg->has_work && other.last_end_ns <= visitor.last_start_ns;
  });
}

bool Account::wasDisturbed(const Visitor &visitor) const {
  return std::max(visitor.disturbed_ns, taken_off_ns_) >= visitor.last_start_ns;
}

bool Account::wasOverlong(const Visitor &visitor) const {
  if (visitor.wasStopped()) return visitor.overNs() > kTailNs;
  return visitor.slice_ns && visitor.overNs() > visitor.slice_ns / 4 + kOverlongNs &&
         !wasDisturbed(visitor) && othersWaited(visitor);
}

void Account::forgive() {
  for (auto &[pid, visitor] : visitors_) visitor.overlong_at_ns = visitor.uncut_until_ns = 0;
}

void Account::noteOverlong(Visitor &visitor) {
  const bool again =
      visitor.overlong_at_ns && visitor.last_end_ns < visitor.overlong_at_ns + kOverlongKnownNs;
  visitor.overlong_at_ns = visitor.last_end_ns;
  const uint64_t once_ns =
      std::clamp(kOverlongTimes * visitor.overNs(), kOverlongOnceNs, kOverlongKnownNs);
  visitor.uncut_until_ns = visitor.last_end_ns + (again ? kOverlongKnownNs : once_ns);
}

// It gave the rest of its slice away.
void Account::noteEarly(Visitor &visitor) {
  const uint64_t length = visitor.last_end_ns - visitor.last_start_ns;
  const bool undisturbed = visitor.slice_ns && !wasDisturbed(visitor);
  const bool is_short =
      visitor.slice_ns && length + visitor.slice_ns / kSlicePart < visitor.slice_ns;
  if (undisturbed)
    visitor.early_visits = static_cast<uint8_t>(visitor.early_visits << 1 | is_short);
  // One that was taken off is believed to do as always.
  visitor.early = is_short && (undisturbed || visitor.mostlyEarly());
  if (wasOverlong(visitor)) noteOverlong(visitor);
  if (visitor.early && undisturbed && visitor.off_ns >= kLongOffNs) {
    visitor.long_visit_ns = params_.computedNs(length);
    visitor.long_visit_at_ns = visitor.last_end_ns;
    visitor.long_visit_no = visitor.visits;
  }
  if (!visitor.early || visitor.belief == Belief::kSyncs) return;
  if (visitor.tsg && visitor.tsg->tenant) core_work(&core_, visitor.tsg, core_.looked_ns, false);
}

// Since when it is known that it has no work, if it has not run since.
uint64_t Account::absentFromNs(const Visitor &visitor, uint64_t round_ns) const {
  if (visitor.early && visitor.belief == Belief::kPaced &&
      visitor.last_end_ns >= visitor.open_from_ns)
    return visitor.last_end_ns;
  const uint64_t since =
      std::max({visitor.last_start_ns, visitor.last_end_ns, visitor.open_from_ns});
  // On a free engine whoever has work is at once.
  if (!on_) return std::min(since + round_ns, std::max(since, end_ns_) + kRoundSlackNs);
  return since + (idle_ ? kRoundSlackNs : round_ns);
}

uint64_t Account::roundOf(bool core_tsg::*counts) const {
  uint64_t round_ns = kRoundSlackNs;
  for (const auto &[pid, visitor] : visitors_)
    if (visitor.open && visitor.tsg && visitor.tsg->*counts)
      round_ns += visitor.slice_ns + params_.switch_ns;
  return round_ns;
}

uint64_t Account::roundNs() const { return roundOf(&core_tsg::has_work); }

// Who was free to run for a round of all others and did not has no work; nor has who gave its
// slice away, unless it is believed to be back at once.
void Account::noteAbsent(uint64_t now_ns) {
  // Those who are awake may be back, and visits last a little longer than reckoned.
  uint64_t round_ns = roundOf(&core_tsg::awake);
  round_ns += round_ns / kRoundPart;
  for (auto &[pid, visitor] : visitors_) {
    if (!visitor.open || !visitor.tsg || !visitor.tsg->tenant || !visitor.tsg->awake) continue;
    if (on_ && pid == pid_) continue;
    const uint64_t from_ns = absentFromNs(visitor, round_ns);
    if (now_ns <= from_ns) continue;
    // Quiet for as long as a gap is held, and it is no longer busy.
    core_work(&core_, visitor.tsg, std::max<uint64_t>(from_ns, core_.looked_ns), false);
    core_work(&core_, visitor.tsg, std::max<uint64_t>(now_ns, core_.looked_ns), false);
  }
}

void Account::noteContext(Visitor &visitor, uint32_t context) {
  if (!context) return;  // not told
  names_contexts_ = true;
  std::vector<uint32_t> &known = visitor.contexts;
  if (std::find(known.begin(), known.end(), context) != known.end()) return;
  if (known.size() == kContextsMax) known.erase(known.begin());
  known.push_back(context);
  visitor.new_context = true;
}

void Account::start(const Switch &record) {
  if (on_) end({false, pid_, 0, record.time_ns});  // its END was lost
  lookGap(record.time_ns);
  noteAbsent(record.time_ns);
  if (gap_idle_) look(record.time_ns - params_.gap_ns, CORE_SEEN_SWITCH);
  on_ = true;
  begun_ = idle_ = gap_idle_ = false;
  pid_ = record.pid;
  start_ns_ = record.time_ns;
  if (Visitor *visitor = current()) {
    visitor->visits++;
    visitor->off_ns = record.time_ns - std::min(record.time_ns, visitor->last_end_ns);
    visitor->last_start_ns = record.time_ns;
    noteContext(*visitor, record.context);
  } else {
    noteStranger(pid_, record.time_ns);
  }
}

void Account::begin(uint64_t at_ns) {
  look(at_ns, CORE_SEEN_TSG);
  begun_ = true;
}

void Account::end(const Switch &record) {
  // The first record after the start of the trace may be an END: who was on was not known.
  if (!on_) {
    pid_ = record.pid;
    start_ns_ = core_.looked_ns;
    idle_ = begun_ = false;
  }
  const uint64_t from = start_ns_ + params_.restore_tail_ns;
  const uint64_t to = record.time_ns - std::min(params_.save_ns, record.time_ns);
  if (to > from) {
    if (!begun_ && !idle_) begin(from);
    look(to, CORE_SEEN_SWITCH);
  }
  if (Visitor *visitor = current()) {
    visitor->last_end_ns = record.time_ns;
    noteEarly(*visitor);
  }
  on_ = begun_ = idle_ = gap_idle_ = false;
  end_ns_ = record.time_ns;
}

void Account::take(std::span<const Switch> records) {
  for (const Switch &record : records)
    if (record.start)
      start(record);
    else
      end(record);
}

void Account::upTo(uint64_t now_ns) {
  noteAbsent(now_ns);
  if (!on_) {
    lookGap(now_ns);
    return;
  }
  const uint64_t from = start_ns_ + params_.restore_tail_ns;
  // What is being stopped and saved at this moment is recorded later.
  const uint64_t to = now_ns - std::min(params_.save_ns, now_ns);
  if (to <= from) return;
  if (idle_) {
    look(to, CORE_SEEN_IDLE);
    const Visitor *visitor = current();
    if (visitor && visitor->tsg && visitor->tsg->tenant)
      core_work(&core_, visitor->tsg, core_.looked_ns, false);
    return;
  }
  if (!begun_) begin(from);
  look(to, CORE_SEEN_TSG);
}

void Account::left(uint32_t pid) {
  const Visitor *visitor = this->visitor(pid);
  if (!visitor || !visitor->tsg || !visitor->tsg->tenant) return;
  core_work(&core_, visitor->tsg, core_.looked_ns, false);
}

void Account::probed(uint64_t now_ns, bool has_work) {
  if (!on_) return;
  upTo(now_ns);
  Visitor *visitor = current();
  if (visitor && visitor->tsg && visitor->tsg->tenant)
    core_work(&core_, visitor->tsg, core_.looked_ns, has_work);
  if (has_work == !idle_) return;
  idle_ = !has_work;
  look(core_.looked_ns, idle_ ? CORE_SEEN_IDLE : CORE_SEEN_TSG);
  if (!idle_) begun_ = true;
}

}  // namespace qgpu::exec
