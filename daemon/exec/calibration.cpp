// SPDX-License-Identifier: GPL-2.0
#include "calibration.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "rm_abi.hpp"

namespace qgpu::exec {
namespace {

// After its slice was set, before what it does is taken for usual: its own driver may set the slice
// as well, when it has made the context that was found.
constexpr uint64_t kSettledVisits = 5, kSettledNs = 500'000'000;
// Less than this is no measurement.
constexpr uint64_t kMeasuredMinNs = 200'000'000;
// Of each process; some times as many as two minutes have at the shortest slices.
constexpr size_t kVisitsMax = 1'000'000;
// Nobody waited in a longer gap.
constexpr uint64_t kGapMaxNs = 1'000'000;
constexpr uint64_t kSliceMinUs = 200, kSliceMaxUs = 100'000;
constexpr uint64_t kTurnMinNs = 1'000'000, kTurnMaxNs = 100'000'000;
constexpr uint64_t kUntilMaxNs = 120'000'000'000;
// After the result, before whoever asked has to be gone.
constexpr uint64_t kLeftMaxNs = 10'000'000'000;

Result<void> check(const MeasureRequest &request, uint64_t now_ns) {
  const auto within = [](uint64_t value, uint64_t low, uint64_t high) {
    return value >= low && value <= high;
  };
  const bool turns = request.on_ns || request.off_ns;
  if (!within(request.slice_us, kSliceMinUs, kSliceMaxUs))
    return Error{ERANGE, "a slice of 200 us to 100 ms is measured", "slice"};
  if (turns && (!within(request.on_ns, kTurnMinNs, kTurnMaxNs) ||
                !within(request.off_ns, kTurnMinNs, kTurnMaxNs)))
    return Error{ERANGE, "turns of 1 to 100 ms are measured", "on"};
  if (turns && request.process_count != 1)
    return Error{EINVAL, "one process alone is let run and stopped", "processes"};
  if (!within(request.until_ns, now_ns, now_ns + kUntilMaxNs))
    return Error{ERANGE, "a measurement ends within two minutes", "until"};
  return {};
}

void closeAll(const std::vector<int> &fds) {
  for (const int fd : fds) close(fd);
}

}  // namespace

Calibration::Calibration(RmClient &own, Controls &controls, std::function<uint64_t()> card_ns,
                         std::function<uint64_t()> now_ns)
    : own_(own), controls_(controls), card_ns_(std::move(card_ns)), now_ns_(std::move(now_ns)) {}

Result<void> Calibration::begin(const MeasureRequest &request, const std::vector<int> &pidfds) {
  Result<void> done = check(request, now_ns_());
  if (runs()) done = Error{EBUSY, "the card is being calibrated", {}};
  for (size_t i = 0; done && i < request.process_count; i++)
    if (const auto named = pidOf(pidfds[i]); !named || *named != request.pids[i])
      done = Error{EINVAL, "the descriptor is of another process than the number",
                   std::to_string(request.pids[i])};
  if (!done) {
    closeAll(pidfds);
    return done;
  }
  end();
  request_ = request;
  phase_ = Phase::kLooking;
  for (size_t i = 0; i < request.process_count; i++)
    owns_.emplace_back().process =
        std::make_unique<Process>(own_, request.pids[i], pidfds[i], rm::kClientBase, now_ns_());
  return {};
}

void Calibration::end() {
  setGate(false);
  for (const Own &own : owns_)
    for (const Found &found : own.found)
      (void)controls_.setTimeslice(own.process->foreign(), found.tsg, found.us);
  owns_.clear();
  gaps_ns_.clear();
  spans_.reset();
  phase_ = Phase::kNone;
  gate_ns_ = UINT64_MAX;
  set_ns_ = 0;
  on_pid_ = start_ns_ = end_ns_ = others_ = 0;
}

bool Calibration::has(pid_t pid) const {
  return std::any_of(owns_.begin(), owns_.end(),
                     [&](const Own &own) { return own.process->pid() == pid; });
}

Calibration::Found *Calibration::Own::find(const Tsg &tsg) {
  const auto it = std::find_if(found.begin(), found.end(),
                               [&](const Found &one) { return one.tsg.handle == tsg.handle; });
  return it == found.end() ? nullptr : &*it;
}

Calibration::Own *Calibration::byPid(uint32_t pid) {
  for (Own &own : owns_)
    if (static_cast<uint32_t>(own.process->pid()) == pid) return &own;
  return nullptr;
}

void Calibration::fail(const Error &error) {
  end();
  result_ = error;
}

void Calibration::giveUp(const Error &error) {
  const bool is_owed = (runs() && phase_ != Phase::kDone) || spans_;
  if (is_owed)
    fail(error);
  else
    end();
}

std::optional<Result<Measured>> Calibration::result() { return std::exchange(result_, {}); }

void Calibration::setGate(bool stopped) {
  if (stopped == stopped_) return;
  stopped_ = stopped;
  for (const Own &own : owns_)
    for (const Tsg &tsg : own.process->tsgs()) {
      if (!tsg.compute()) continue;
      const auto channels = channelsOf(own.process->foreign(), tsg);
      (void)(stopped ? controls_.disable(channels) : controls_.enable(channels));
    }
}

// Turns lie on the clock: a late one does not delay those after it.
void Calibration::gate() {
  if (card_ns_() < gate_ns_) return;
  setGate(!stopped_);
  gate_ns_ += stopped_ ? request_.off_ns : request_.on_ns;
}

void Calibration::take(std::span<const Switch> records) {
  if (!runs()) return;
  for (const Switch &record : records) {
    Own *own = byPid(record.pid);
    if (!record.start) {
      if (own && on_pid_ == record.pid && own->past.size() < kVisitsMax)
        own->past.push_back({start_ns_, record.time_ns});
      on_pid_ = 0;
      end_ns_ = record.time_ns;
      continue;
    }
    if (phase_ == Phase::kMeasuring && end_ns_ && record.time_ns - end_ns_ < kGapMaxNs)
      gaps_ns_.push_back(record.time_ns - end_ns_);
    on_pid_ = record.pid;
    start_ns_ = record.time_ns;
    if (own)
      own->visits++;
    else if (record.pid && record.pid != rm::kKernelPid)
      others_ += phase_ == Phase::kMeasuring;
  }
}

// Until all are found and have their slice.
void Calibration::look() {
  bool all = true;
  for (const Own &own : owns_) {
    const Process &process = *own.process;
    if (process.state() == Process::State::kBlind)
      return fail({EACCES, process.why(), std::to_string(process.pid())});
    all &= process.state() == Process::State::kControlled;
  }
  if (!all) return;
  if (const auto done = setSlices(); !done) return fail(done.error());
  phase_ = Phase::kSettling;
  if (request_.on_ns) gate_ns_ = card_ns_() + request_.on_ns;
}

// Of those that have another: a context may be found later than the first.
Result<void> Calibration::setSlices() {
  for (Own &own : owns_)
    for (const Tsg &tsg : own.process->tsgs()) {
      if (!tsg.compute()) continue;
      const auto us = controls_.timesliceUs(own.process->foreign(), tsg);
      if (!us && (us.error().err == ENOENT || us.error().err == ESRCH)) continue;  // it is gone
      if (!us) return us.error();
      Found *found = own.find(tsg);
      if (*us == request_.slice_us && found) continue;
      const auto done = controls_.setTimeslice(own.process->foreign(), tsg, request_.slice_us);
      if (!done) return done.error();
      if (found)
        found->us = *us;
      else
        own.found.push_back({tsg, *us});
      own.visits = 0;
      set_ns_ = now_ns_();
    }
  return {};
}

// Whoever changed one meanwhile, nothing can be said then.
Result<void> Calibration::checkSlices() {
  for (const Own &own : owns_)
    for (const Found &found : own.found) {
      const auto us = controls_.timesliceUs(own.process->foreign(), found.tsg);
      if (!us) return us.error();
      if (*us != request_.slice_us)
        return Error{EAGAIN, "a slice was changed by somebody else while it was measured",
                     std::to_string(own.process->pid())};
    }
  return {};
}

void Calibration::settle(uint64_t traced_ns) {
  if (const auto done = setSlices(); !done) return fail(done.error());
  if (std::any_of(owns_.begin(), owns_.end(),
                  [](const Own &own) { return own.visits < kSettledVisits; }) ||
      now_ns_() < set_ns_ + kSettledNs)
    return;
  from_ns_ = traced_ns;
  from_mono_ns_ = now_ns_();
  phase_ = Phase::kMeasuring;
}

uint64_t Calibration::medianGapNs() {
  if (gaps_ns_.empty()) return 0;
  const auto middle = gaps_ns_.begin() + static_cast<ptrdiff_t>(gaps_ns_.size() / 2);
  std::nth_element(gaps_ns_.begin(), middle, gaps_ns_.end());
  return *middle;
}

// Of the card's clock.
void Calibration::measure(size_t i, uint64_t from_ns, uint64_t to_ns, Measured &out) const {
  std::vector<Visit> visits = owns_[i].past;
  // The one that is on.
  if (on_pid_ == static_cast<uint32_t>(owns_[i].process->pid()))
    visits.push_back({start_ns_, UINT64_MAX});
  for (const Visit &visit : visits) {
    const uint64_t begin_ns = std::max(visit.from_ns, from_ns),
                   end_ns = std::min(visit.to_ns, to_ns);
    if (end_ns > begin_ns) out.held_ns[i] += end_ns - begin_ns;
    out.visits[i] += visit.to_ns > from_ns && visit.to_ns <= to_ns;
  }
  out.span_ns[i] = to_ns - std::min(from_ns, to_ns);
}

void Calibration::finish(uint64_t traced_ns) {
  if (phase_ != Phase::kMeasuring || traced_ns < from_ns_ + kMeasuredMinNs)
    return fail({ETIMEDOUT, "its processes were not at work on the card in time", {}});
  if (others_ && !(request_.flags & kMeasureForce))
    return fail({EBUSY, "others ran on the card while it was measured", {}});
  if (const auto held = checkSlices(); !held) return fail(held.error());
  Measured out{};
  out.from_ns = from_mono_ns_;
  out.gap_ns = medianGapNs();
  for (size_t i = 0; i < owns_.size(); i++) measure(i, from_ns_, traced_ns, out);
  phase_ = Phase::kDone;
  result_ = out;
}

void Calibration::answerSpans(uint64_t traced_ns) {
  const auto card_ns = [&](uint64_t mono_ns) { return mono_ns + from_ns_ - from_mono_ns_; };
  Measured out{};
  out.from_ns = from_mono_ns_;
  out.gap_ns = medianGapNs();
  for (size_t i = 0; i < owns_.size(); i++) {
    const uint64_t from_ns = card_ns(spans_->from_ns[i]), to_ns = card_ns(spans_->to_ns[i]);
    if (to_ns > traced_ns) return;  // at a later turn
    measure(i, from_ns, to_ns, out);
  }
  spans_.reset();
  result_ = out;
}

// Once it is measured that is no failure: what they left is known.
bool Calibration::anyEnded() {
  bool any = false;
  for (Own &own : owns_) {
    Process &process = *own.process;
    if (process.state() == Process::State::kEnded) continue;
    process.step(now_ns_());
    if (process.state() != Process::State::kEnded && !own_.io().ended(process.pidfd())) continue;
    (void)process.stillThere();
    own.found.clear();
    any = true;
  }
  return any;
}

void Calibration::turn(uint64_t traced_ns) {
  if (!runs()) return;
  const bool ended = anyEnded();
  if (phase_ == Phase::kDone) {
    if (spans_) answerSpans(traced_ns);
    if (now_ns_() >= request_.until_ns + kLeftMaxNs) end();
    return;
  }
  if (ended) return fail({ECONNABORTED, "a process of the measurement ended before its time", {}});
  if (phase_ == Phase::kLooking) look();
  if (phase_ == Phase::kSettling) settle(traced_ns);
  if (runs() && now_ns_() >= request_.until_ns) finish(traced_ns);
}

}  // namespace qgpu::exec
