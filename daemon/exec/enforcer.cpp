// SPDX-License-Identifier: GPL-2.0
#include "enforcer.hpp"

#include <linux/qgpu.h>

#include <algorithm>
#include <cerrno>

namespace qgpu::exec {
namespace {

// Nobody is stopped for longer: the driver's own waits would time out.
constexpr uint64_t kHoldMaxNs = 450'000'000;
// The slice in which it then runs for a moment.
constexpr uint64_t kBreathUs = 200;
// After a refusal, before the next try.
constexpr uint64_t kRetryNs = 1'000'000'000;
// So many changes so soon after it was found are its own driver's.
constexpr uint64_t kSettingUpNs = 2'000'000'000;
constexpr unsigned kSetUps = 3;
// In the endless rotation slices are not written anew before so many times what it took.
constexpr uint64_t kSlicesCostTimes = 25;
// Of so many that rotate, slices that would all be longer by one factor, up to this, may stay; and
// who is off that by less than this part.
constexpr size_t kCrowd = 4;
constexpr uint64_t kStretchMaxPpm = QGPU_PPM + QGPU_PPM / 8, kNearPart = 1000;
// Two changes by somebody else within this are a quarrel.
constexpr uint64_t kQuarrelNs = 10'000'000'000;

std::vector<GatedChannel> channelsOf(const std::vector<ManagedTsg *> &tsgs) {
  std::vector<GatedChannel> out;
  for (const ManagedTsg *tsg : tsgs) {
    const auto channels = exec::channelsOf(tsg->of, tsg->tsg);
    out.insert(out.end(), channels.begin(), channels.end());
  }
  return out;
}

}  // namespace

Enforcer::Enforcer(core &core, Roster &roster, Controls &controls, const CardParams &params,
                   std::string gates_path, std::function<uint64_t()> card_ns, Report report)
    : core_(core),
      roster_(roster),
      controls_(controls),
      params_(params),
      gates_path_(std::move(gates_path)),
      card_ns_(std::move(card_ns)),
      report_(std::move(report)) {}

// The one of its process that has work, as far as that is known: the trace names processes.
const ManagedTsg *Enforcer::workerOf(const ManagedTsg &tsg) const {
  if (tsg.core.has_work) return &tsg;
  for (const auto &one : roster_.tsgs())
    if (one->process == tsg.process && one->core.has_work) return one.get();
  return nullptr;
}

// Whoever has no work is left open: when it gets some the trace shows it. All TSGs of a process are
// stopped together.
bool Enforcer::shouldBeClosed(const ManagedTsg &tsg) const {
  const ManagedTsg *worker = roster_.enforcing() && tsg.tenant ? workerOf(tsg) : nullptr;
  if (!worker) return false;
  return !core_admits(&core_, &worker->core) || worker->skipped_window_ns == core_.window.from_ns;
}

// Asked to wait to see what piles up; never in a window of its own.
bool Enforcer::isHeld(const ManagedTsg &tsg, uint64_t now_ns) const {
  return now_ns < tsg.hold_until_ns && tsg.tenant && core_.window.owner != &tsg.tenant->core;
}

// Those of the rotation that have work, in its window.
std::vector<ManagedTsg *> Enforcer::members() const {
  std::vector<ManagedTsg *> out;
  if (core_.window.kind != CORE_WINDOW_ROTATION || core_.window.owner != &core_.rotation)
    return out;
  for (const auto &tsg : roster_.tsgs())
    if (tsg->tenant && tsg->core.has_work && core_admits(&core_, &tsg->core))
      out.push_back(tsg.get());
  return out;
}

// Who was due turned out to have no work: nobody would run in the window, and it would not end.
void Enforcer::letSkippedRun() {
  const std::vector<ManagedTsg *> all = members();
  const auto is_skipped = [&](const ManagedTsg *tsg) {
    return tsg->skipped_window_ns == core_.window.from_ns;
  };
  if (!std::all_of(all.begin(), all.end(), is_skipped)) return;
  for (ManagedTsg *tsg : all) tsg->skipped_window_ns = 0;
}

// A window of the rotation that is shorter than a round: who is furthest behind is due in it. The
// driver cannot be told with whom to go on, and without this it would be the same one every time.
void Enforcer::chooseMembers() {
  if (chosen_window_ns_ == core_.window.from_ns) return letSkippedRun();
  chosen_window_ns_ = core_.window.from_ns;
  std::vector<ManagedTsg *> members = this->members();
  if (members.empty()) return;
  std::stable_sort(members.begin(), members.end(), [&](const ManagedTsg *a, const ManagedTsg *b) {
    return core_lag_ns(&core_, &a->tenant->core) > core_lag_ns(&core_, &b->tenant->core);
  });
  int64_t left_ns = core_.window.budget_ns, lags_ns = 0;
  for (const ManagedTsg *tsg : members) lags_ns += core_lag_ns(&core_, &tsg->tenant->core);
  for (ManagedTsg *tsg : members) {
    const auto slice_ns = static_cast<int64_t>(core_slice_ns(&core_, &tsg->core));
    const int64_t behind_ns =
        core_lag_ns(&core_, &tsg->tenant->core) - lags_ns / static_cast<int64_t>(members.size());
    // The last to come must not be the one whose slice is cut.
    if (tsg != members[0] && left_ns < slice_ns - slice_ns / 8)
      tsg->skipped_window_ns = core_.window.from_ns;
    left_ns -= slice_ns + std::max<int64_t>(behind_ns, 0);
  }
}

bool Enforcer::isEnforced(const ManagedTsg &tsg) const { return roster_.enforcing() && tsg.tenant; }

// Waits are promised by slices that who sleeps has as well when it wakes.
bool Enforcer::keepsWaits() const { return core_.online_count || roster_.promisesWaits(); }

// By the plan. No slice: it has none; who sleeps keeps what it has until it wakes, unless waits are
// kept.
Enforcer::Planned Enforcer::plannedOf(ManagedTsg &tsg) const {
  Planned out{&tsg, std::nullopt, false};
  if (!isEnforced(tsg)) return out;
  // Which TSG of a process computes is not seen: all of them share one slice.
  const ManagedTsg *worker = workerOf(tsg);
  const core_tsg &of = worker ? worker->core : tsg.core;
  out.sleeps = !of.awake;
  if (!of.planned_ns || (out.sleeps && !keepsWaits())) return out;
  const auto siblings = static_cast<uint64_t>(
      std::count_if(roster_.tsgs().begin(), roster_.tsgs().end(),
                    [&](const auto &one) { return one->process == tsg.process; }));
  const uint64_t slice_ns = out.sleeps ? of.planned_ns : core_slice_ns(&core_, &of);
  // Of a visit that is shorter than the shortest nothing would be seen.
  out.us = params_.sliceUs(std::max(slice_ns / siblings, params_.slice_min_ns));
  return out;
}

void Enforcer::refused(ManagedTsg &tsg, const Error &error, uint64_t now_ns) {
  tsg.refused_until_ns = now_ns + kRetryNs;
  // An object that is gone is no refusal.
  if (error.err != ENOENT && error.err != ESRCH)
    report_(EventKind::kControlRefused, tsg, error, controls_.lastStatus());
}

void Enforcer::writeSlice(ManagedTsg &tsg, uint64_t us, uint64_t now_ns) {
  if (us == tsg.sliceUs() || now_ns < tsg.refused_until_ns) return;
  // What somebody else wrote is not to be covered up.
  if (tsg.written_us)
    if (const auto now_us = controls_.timesliceUs(tsg.of, tsg.tsg);
        now_us && *now_us != tsg.written_us)
      foreignChange(tsg, *now_us, now_ns);
  if (const auto done = controls_.setTimeslice(tsg.of, tsg.tsg, us); !done)
    refused(tsg, done.error(), now_ns);
  else
    tsg.written_us = us;
}

void Enforcer::open(const std::vector<ManagedTsg *> &tsgs, uint64_t now_ns) {
  if (tsgs.empty()) return;
  const auto done = controls_.enable(channelsOf(tsgs));
  for (ManagedTsg *tsg : tsgs) {
    // One that is gone must not keep the others stopped.
    const auto one = done ? done : controls_.enable(exec::channelsOf(tsg->of, tsg->tsg));
    if (!one) {
      refused(*tsg, one.error(), now_ns);
      if (one.error().err != ENOENT && one.error().err != ESRCH) continue;  // tried again
    }
    tsg->gated = tsg->leaks = false;
    tsg->opened_ns = now_ns;
  }
}

// In the file before it is stopped.
bool Enforcer::recordGates(const std::vector<ManagedTsg *> &tsgs) {
  std::vector<GateEntry> with = gates_;
  for (const ManagedTsg *tsg : tsgs) {
    const GateEntry entry{tsg->process, exec::channelsOf(tsg->of, tsg->tsg)};
    if (std::find(with.begin(), with.end(), entry) == with.end()) with.push_back(entry);
  }
  if (with.size() == gates_.size()) return true;
  if (const auto done = writeGates(gates_path_, with); !done) {
    report_(EventKind::kControlRefused, *tsgs[0], done.error(), 0);
    return false;
  }
  gates_ = std::move(with);
  return true;
}

void Enforcer::close(const std::vector<ManagedTsg *> &all, uint64_t now_ns) {
  std::vector<ManagedTsg *> tsgs;
  for (ManagedTsg *tsg : all)
    if (now_ns >= tsg->refused_until_ns) tsgs.push_back(tsg);
  if (tsgs.empty() || !recordGates(tsgs)) return;
  const uint64_t stop_ns = card_ns_();
  const auto done = controls_.disable(channelsOf(tsgs));
  last_stop_ns_ = card_ns_();
  for (ManagedTsg *tsg : tsgs) {
    const auto one = done ? done : controls_.disable(exec::channelsOf(tsg->of, tsg->tsg));
    if (!done) last_stop_ns_ = card_ns_();
    if (!one) {
      refused(*tsg, one.error(), now_ns);
      continue;
    }
    // What of it was stopped before is not stopped for longer than anybody because of the rest.
    if (!tsg->gated) tsg->gated_ns = stop_ns;
    tsg->gated = true;
    tsg->leaks = false;
    tsg->gate_done_ns = last_stop_ns_;
    if (tsg->tenant) tsg->tenant->gates++;
  }
}

// Of those that may run, each with its slice by the plan.
std::vector<Enforcer::Planned> Enforcer::planned() const {
  std::vector<Planned> out;
  for (const auto &tsg : roster_.tsgs())
    if (!shouldBeClosed(*tsg)) out.push_back(plannedOf(*tsg));
  return out;
}

// The factor by which the slices of nearly all would be longer than they are. They stay, for that
// changes no share and makes nobody wait longer, and only who is corrected is written.
uint64_t Enforcer::stretchPpm(const std::vector<Planned> &all) const {
  std::vector<uint64_t> ppm;
  if (!core_rotates_endlessly(&core_)) return QGPU_PPM;
  for (const auto &[tsg, us, sleeps] : all)
    if (tsg->written_us && us && !sleeps) ppm.push_back(*us * QGPU_PPM / tsg->written_us);
  if (ppm.size() < kCrowd) return QGPU_PPM;
  const auto middle = ppm.begin() + static_cast<ptrdiff_t>(ppm.size() / 2);
  std::nth_element(ppm.begin(), middle, ppm.end());
  return *middle > QGPU_PPM && *middle <= kStretchMaxPpm ? *middle : QGPU_PPM;
}

// In a crowd of which some sleep and wake all the time, each change of who is awake is one of all
// slices.
void Enforcer::writeSlices(uint64_t now_ns) {
  const bool is_new = roster_.plan().generation != written_generation_;
  if (is_new) slices_from_ns_ = 0;
  written_generation_ = roster_.plan().generation;
  const bool waits = core_rotates_endlessly(&core_) && !keepsWaits() && now_ns < slices_from_ns_;
  const std::vector<Planned> all = planned();
  const uint64_t stretch_ppm = is_new ? QGPU_PPM : stretchPpm(all);
  for (const auto &[tsg, planned_us, sleeps] : all) {
    if (waits && tsg->written_us) continue;
    if (!planned_us) {
      if (!isEnforced(*tsg)) writeSlice(*tsg, tsg->found_us, now_ns);
      continue;
    }
    const uint64_t ppm = sleeps ? QGPU_PPM : stretch_ppm;
    const uint64_t us = std::max<uint64_t>(*planned_us * QGPU_PPM / ppm, 1);
    const uint64_t off_us = us > tsg->written_us ? us - tsg->written_us : tsg->written_us - us;
    if (ppm == QGPU_PPM || off_us * kNearPart > us) writeSlice(*tsg, us, now_ns);
  }
  if (!waits) slices_from_ns_ = now_ns + kSlicesCostTimes * (std::max(card_ns_(), now_ns) - now_ns);
}

void Enforcer::letRun(uint64_t now_ns) {
  chooseMembers();
  std::vector<ManagedTsg *> opening;
  for (const auto &tsg : roster_.tsgs()) {
    tsg->breathes = false;
    if (!tsg->gated) continue;
    const bool close = shouldBeClosed(*tsg) || isHeld(*tsg, now_ns);
    tsg->breathes = close && now_ns > tsg->gated_ns + kHoldMaxNs;
    if (tsg->breathes) writeSlice(*tsg, kBreathUs, now_ns);
    if ((!close || tsg->breathes) && now_ns >= tsg->refused_until_ns) opening.push_back(tsg.get());
  }
  open(opening, now_ns);
  writeSlices(now_ns);
  for (const auto &tsg : roster_.tsgs()) {
    const bool runs = tsg->tenant && core_admits(&core_, &tsg->core);
    tsg->core.slice_ns = runs ? params_.sliceNs(tsg->sliceUs()) : 0;
  }
}

void Enforcer::stopOthers(uint64_t now_ns) {
  std::vector<ManagedTsg *> closing;
  for (const auto &tsg : roster_.tsgs())
    if ((!tsg->gated || tsg->leaks) && !tsg->breathes &&
        (shouldBeClosed(*tsg) || isHeld(*tsg, now_ns)))
      closing.push_back(tsg.get());
  close(closing, now_ns);
  core_taken(&core_, now_ns, nullptr, 0);
}

std::vector<ManagedTsg *> Enforcer::holdOthers(std::initializer_list<const ManagedTsg *> but,
                                               uint64_t now_ns) {
  std::vector<ManagedTsg *> others, held;
  for (const auto &tsg : roster_.tsgs())
    if (tsg->tenant && !tsg->gated && workerOf(*tsg) &&
        std::none_of(but.begin(), but.end(),
                     [&](const ManagedTsg *one) { return one->process == tsg->process; }))
      others.push_back(tsg.get());
  close(others, now_ns);
  for (ManagedTsg *tsg : others)
    if (tsg->gated) held.push_back(tsg);
  return held;
}

// The driver in a process that has just made its TSG sets the slice that it will be left with.
bool Enforcer::isNew(const ManagedTsg &tsg, uint64_t now_ns) const {
  return tsg.set_ups < kSetUps && now_ns < tsg.found_at_ns + kSettingUpNs;
}

bool Enforcer::isSettingUp(ManagedTsg &tsg, uint64_t found_us, uint64_t now_ns) {
  if (!isNew(tsg, now_ns)) return false;
  tsg.set_ups++;
  tsg.found_us = found_us;
  if (const auto done = controls_.setTimeslice(tsg.of, tsg.tsg, tsg.written_us); !done)
    refused(tsg, done.error(), now_ns);
  return true;
}

void Enforcer::noteForeign(ManagedTsg &tsg, const Error &what, uint64_t value, uint64_t now_ns) {
  const bool quarrel = tsg.foreign_ns && now_ns < tsg.foreign_ns + kQuarrelNs;
  tsg.foreign_ns = now_ns;
  if (tsg.tenant) tsg.tenant->foreign_changes++;
  report_(EventKind::kForeignChange, tsg, what, value);
  if (!quarrel || tsg.quarantined) return;
  tsg.quarantined = true;
  report_(EventKind::kQuarantine, tsg, what, value);
}

void Enforcer::escaped(ManagedTsg &tsg, uint64_t now_ns) {
  noteForeign(
      tsg,
      {EPERM, "it ran while it was stopped: somebody let it run, or it has TSGs that are not found",
       "FIFO_DISABLE_CHANNELS"},
      0, now_ns);
}

void Enforcer::foreignChange(ManagedTsg &tsg, uint64_t found_us, uint64_t now_ns) {
  if (isSettingUp(tsg, found_us, now_ns)) return;
  noteForeign(tsg,
              {EPERM,
               "its slice was set to " + std::to_string(found_us) + " us by somebody else, " +
                   std::to_string(tsg.sliceUs()) + " us put back",
               "SET_TIMESLICE"},
              found_us * 1000, now_ns);
  if (const auto done = controls_.setTimeslice(tsg.of, tsg.tsg, tsg.sliceUs()); !done)
    refused(tsg, done.error(), now_ns);
}

void Enforcer::readBackNew(uint64_t now_ns) {
  for (const auto &tsg : roster_.tsgs()) {
    if (!tsg->written_us || !isNew(*tsg, now_ns)) continue;
    const auto us = controls_.timesliceUs(tsg->of, tsg->tsg);
    if (us && *us != tsg->written_us) isSettingUp(*tsg, *us, now_ns);
  }
}

std::vector<ProcessId> Enforcer::readBack(uint64_t now_ns) {
  std::vector<ProcessId> gone;
  for (const auto &tsg : roster_.tsgs()) {
    const auto us = controls_.timesliceUs(tsg->of, tsg->tsg);
    if (!us) {
      gone.push_back(tsg->process);
      continue;
    }
    if (tsg->written_us && *us != tsg->written_us) foreignChange(*tsg, *us, now_ns);
    if (!tsg->written_us) tsg->found_us = *us;
  }
  return gone;
}

void Enforcer::putBack(ManagedTsg &tsg) {
  if (tsg.gated) open({&tsg}, tsg.opened_ns);
  if (tsg.written_us && tsg.written_us != tsg.found_us)
    (void)controls_.setTimeslice(tsg.of, tsg.tsg, tsg.found_us);
  tsg.written_us = 0;
}

void Enforcer::forget(const ProcessId &process) {
  const size_t before = gates_.size();
  std::erase_if(gates_, [&](const GateEntry &entry) { return entry.process == process; });
  if (gates_.size() != before) (void)writeGates(gates_path_, gates_);
}

std::vector<ManagedTsg *> Enforcer::gated() const {
  std::vector<ManagedTsg *> out;
  for (const auto &tsg : roster_.tsgs())
    if (tsg->gated) out.push_back(tsg.get());
  return out;
}

bool Enforcer::putAllBack() {
  open(gated(), 0);
  for (const auto &tsg : roster_.tsgs()) putBack(*tsg);
  std::erase_if(gates_, [&](const GateEntry &entry) {
    return std::none_of(roster_.tsgs().begin(), roster_.tsgs().end(), [&](const auto &tsg) {
      return tsg->gated && tsg->process == entry.process;
    });
  });
  (void)writeGates(gates_path_, gates_);
  return gates_.empty();
}

}  // namespace qgpu::exec
