// SPDX-License-Identifier: GPL-2.0
// Looking goes in steps, since a process is named before it uses the card: first for a descriptor
// of the control node, then for a client on it, then for TSGs of the client, and once more for
// those that come later. Only the second writes to the kernel's log, and no handle is tried twice
// on a file.
#include "process.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "proc.hpp"
#include "protocol.hpp"
#include "rm_abi.hpp"

namespace qgpu::exec {
namespace {

constexpr uint64_t kMs = 1'000'000;
// Wrong guesses that a process may cost, however many control nodes it opens; and by so many more
// in each second that it lives.
constexpr uint32_t kGuessesMax = 0x4000, kGuessesPerSecond = 64;
// From step to step while nothing is known: soon, then patiently.
constexpr uint64_t kEagerNs = 20 * kMs, kPatientNs = 200 * kMs;
// Of one that could not be looked at.
constexpr uint64_t kBlindNs = 2000 * kMs;
constexpr unsigned kEagerSteps = 100;
// After TSGs are known: once they are all there, and for those of later contexts, the last one
// again and again. Where these are heard of, looks end after so many, but for one in a long time.
constexpr uint64_t kAgainNs[] = {20 * kMs,   100 * kMs,  500 * kMs,
                                 2000 * kMs, 8000 * kMs, 30'000 * kMs};
constexpr unsigned kSettledSteps = 4;
constexpr uint64_t kHeardNs = 300'000 * kMs;
// Between two looks at one that has something new again and again; where they find nothing, twice
// as long each time, up to what it would be if nobody heard of anything.
constexpr uint64_t kNewNs = 1000 * kMs, kNewMostNs = 30'000 * kMs;

// After so many looks at one that is known there is no hurry with the next.
constexpr unsigned kCalmSteps = 3;

// Guesses after which the client of a new process is found, mostly.
constexpr unsigned kGuessesUsual = 32;
// By so much longer must wait whose full look can only add to what is known of it.
constexpr uint64_t kHandicapNs = 200 * kMs, kCalmHandicapNs = 5000 * kMs;

// Tenants whose hints are kept; a plan has no more.
constexpr size_t kHintsMax = kMaxTenants;

}  // namespace

uint64_t Looks::join(const Process &process) {
  all_.push_back(&process);
  return joined_++;
}

void Looks::leave(const Process &process) {
  std::erase(all_, &process);
  std::erase_if(waiting_, [&](const auto &entry) { return entry.second == &process; });
}

const Hint *Looks::hint(uint32_t tenant) const {
  auto it = hints_.find(tenant);
  if (it == hints_.end()) it = hints_.find(hinted_last_);
  return it == hints_.end() ? nullptr : &it->second;
}

void Looks::remember(uint32_t tenant, const Hint &hint) {
  if (hints_.size() >= kHintsMax && !hints_.count(tenant)) hints_.clear();
  hints_[tenant] = hint;
  hinted_last_ = tenant;
}

std::optional<Looks::Rank> Looks::rankOf(const Process &process, uint64_t now_ns) {
  const Process::Wait &wait = process.wait();
  if (wait.quick_ns <= now_ns) return Rank{false, wait.quick_ns, process.joined()};
  if (wait.full_ns > now_ns) return std::nullopt;
  const bool known = process.state() == Process::State::kControlled;
  const uint64_t handicap_ns = process.isCalm() ? kCalmHandicapNs : known ? kHandicapNs : 0;
  return Rank{true, wait.full_ns + handicap_ns, process.joined()};
}

unsigned Looks::needOf(const Rank &rank, const Process &process) const {
  return std::get<0>(rank) ? kControlsMax : ObjectScan::quickControls(hint(process.tenant()));
}

void Looks::beginTurn(uint64_t now_ns) {
  turn_ns_ = now_ns;
  left_ = kControlsMax;
  waiting_.clear();
  for (const Process *process : all_)
    if (const auto rank = rankOf(*process, now_ns)) waiting_.emplace(*rank, process);
}

// What those before it will need in this turn is left to them: three of them need it all.
unsigned Looks::allowance(const Process &process, uint64_t now_ns) {
  if (turn_ns_ != now_ns) beginTurn(now_ns);
  const auto own = rankOf(process, now_ns);
  if (!own) return 0;
  if (const auto it = waiting_.find(*own); it != waiting_.end() && it->second == &process)
    waiting_.erase(it);
  unsigned left = left_;
  for (const auto &[rank, other] : waiting_) {
    if (!left || !(rank < *own)) break;
    left -= std::min(left, needOf(rank, *other) + kGuessesUsual);
  }
  return left < (std::get<0>(*own) ? ObjectScan::kPieceMin : needOf(*own, process)) ? 0 : left;
}

void Looks::spend(uint64_t controls) {
  left_ -= static_cast<unsigned>(std::min<uint64_t>(left_, controls));
}

Process::Process(RmClient &own, pid_t pid, int pidfd, uint32_t floor, uint64_t now_ns,
                 std::shared_ptr<Looks> looks, uint32_t tenant)
    : own_(own),
      pid_(pid),
      pidfd_(pidfd),
      floor_(floor),
      looks_(std::move(looks)),
      tenant_(tenant),
      joined_(looks_->join(*this)),
      named_ns_(now_ns),
      next_step_ns_(now_ns),
      new_gap_ns_(kNewNs) {}

Process::~Process() {
  looks_->leave(*this);
  reset();
  ::close(pidfd_);
}

template <class Predicate>
void Process::closeNodes(Predicate which) {
  for (const Node &node : nodes_) {
    if (!which(node)) continue;
    std::erase_if(full_, [&](const ObjectScan &scan) { return scan.fd() == node.ours; });
    own_.io().close(node.ours);
  }
  std::erase_if(nodes_, which);
}

// Nothing is known of it, and no look is under way.
void Process::reset() {
  closeNodes([](const Node &) { return true; });
  tsgs_.clear();
  foreign_ = {};
  wait_ = {};
  quick_begun_ = false;
}

void Process::end() {
  reset();
  state_ = State::kEnded;
  next_step_ns_ = UINT64_MAX;
}

bool Process::stillThere() {
  if (state_ == State::kEnded) return false;
  if (own_.io().ended(pidfd_)) {
    end();
    return false;
  }
  if (state_ != State::kControlled) return true;
  if (own_.io().holdsControl(pid_, their_fd_, foreign_.fd)) return true;
  // It closed the driver or became another program: what it opens now is looked for anew.
  reset();
  state_ = State::kLooking;
  steps_ = 0;
  next_step_ns_ = 0;
  return false;
}

// A look that is under way may be past what changed: it begins anew, and keeps its place.
void Process::lookAgain(uint64_t now_ns) {
  if (state_ != State::kControlled) return;
  full_.clear();
  next_step_ns_ = now_ns;
  hurries_ = true;
}

// Until it has settled, looks follow each other anyway.
void Process::noteNew(uint64_t now_ns) {
  if (state_ != State::kControlled) return;
  if (looks()) {
    has_new_ = true;
  } else if (steps_ >= kSettledSteps) {
    next_step_ns_ = std::min(next_step_ns_, std::max(now_ns, finished_ns_ + new_gap_ns_));
    hurries_ = true;
  }
}

bool Process::isCalm() const {
  return state_ == State::kControlled && steps_ >= kCalmSteps && !hurries_;
}

void Process::goBlind(const std::string &sentence) {
  state_ = State::kBlind;
  why_ = "process " + std::to_string(pid_) + " (" + processName(pid_) +
         ") runs uncontrolled: " + sentence;
}

void Process::runsUnseen() {
  if (state_ != State::kLooking) return;
  unseen_ = true;
  goBlind(nodes_.empty() ? "it uses the card, and none of its descriptors is /dev/nvidiactl "
                           "(does a sandbox keep it elsewhere?)"
                         : "it uses the card, and no TSG of it is found on its /dev/nvidiactl");
}

// Of descriptors that the process has no longer.
void Process::dropNodes(const std::vector<int> &theirs) {
  closeNodes([&](const Node &node) {
    return !std::binary_search(theirs.begin(), theirs.end(), node.theirs);
  });
}

// Duplicates of descriptors that are not known yet, and anew of those without a client: a process
// that starts opens the driver several times, and the number may be of another file by now.
bool Process::lookForNodes() {
  const auto theirs = own_.io().controlDescriptors(pid_);
  if (!theirs) {
    if (theirs.error().err != ENOENT && theirs.error().err != ESRCH)
      goBlind(theirs.error().sentence);
    return false;
  }
  dropNodes(*theirs);
  for (const int fd : *theirs) {
    const auto known =
        std::find_if(nodes_.begin(), nodes_.end(), [&](const Node &n) { return n.theirs == fd; });
    if (known != nodes_.end() && !known->clients.empty()) continue;
    const auto ours = own_.io().duplicate(pidfd_, fd);
    if (!ours) {
      if (ours.error().err != EPERM) continue;  // gone meanwhile
      goBlind(ours.error().sentence);
      return false;
    }
    if (!own_.io().isControlNode(*ours)) {
      own_.io().close(*ours);
    } else if (known != nodes_.end()) {
      own_.io().close(known->ours);
      known->ours = *ours;
    } else {
      nodes_.push_back({.theirs = fd, .ours = *ours, .floor = floor_, .floor_before = floor_});
    }
  }
  if (state_ == State::kBlind && !unseen_) state_ = State::kLooking;
  return !nodes_.empty();
}

uint32_t Process::guessesLeft(uint64_t now_ns) const {
  const uint64_t may =
      kGuessesMax + (now_ns - std::min(now_ns, named_ns_)) / (1000 * kMs) * kGuessesPerSecond;
  return static_cast<uint32_t>(std::min<uint64_t>(may - std::min(may, guesses_), kGuessesMax));
}

// The next clients of the node, until `end` probes were made. A node with a client on it has the
// one that matters. What may be guessed is for all nodes, the youngest handles of each.
void Process::scanClients(Node &node, uint64_t now_ns, uint64_t end) {
  if (node.from == node.to && node.clients.empty()) {
    const uint32_t may = kGuessesMax / static_cast<uint32_t>(nodes_.size());
    const auto next = own_.nextClient();
    if (next && *next >= node.floor) {
      // Those of the last look once more: their file may have been opened just after ours was made.
      node.from = *next + 1;
      node.to = *next - node.floor_before > may ? *next - may : node.floor_before;
      node.floor_before = node.floor;
      node.floor = node.from;
    }
  }
  const auto guesses = static_cast<uint32_t>(
      std::min<uint64_t>({node.from - node.to, end - probes_, guessesLeft(now_ns)}));
  if (guesses) {
    const auto found = clientsOf(own_.io(), node.ours, node.from - 1, node.from - guesses);
    node.clients.insert(node.clients.end(), found.begin(), found.end());
  }
  node.from -= guesses;
  probes_ += guesses;
  guesses_ += guesses;
  node.scanned = node.from == node.to || !guessesLeft(now_ns);
}

bool Process::take(const ObjectScan &scan, uint64_t now_ns) {
  // It may have closed the driver since the look began.
  if (state_ != State::kControlled) (void)lookForNodes();
  const auto node = std::find_if(nodes_.begin(), nodes_.end(),
                                 [&](const Node &n) { return n.ours == scan.fd(); });
  if (node == nodes_.end()) return false;
  const bool changed = state_ != State::kControlled || tsgs_ != scan.tsgs();
  tsgs_ = scan.tsgs();
  foreign_ = {scan.fd(), scan.client(), scan.subdevice()};
  their_fd_ = node->theirs;
  closeNodes([&](const Node &other) { return other.ours != scan.fd(); });
  if (state_ != State::kControlled) {
    state_ = State::kControlled;
    unseen_ = false;
    controlled_ns_ = now_ns;
    steps_ = 0;
  }
  return changed;
}

// Of one under control.
uint64_t Process::againNs() const {
  if (steps_ >= kSettledSteps && looks_->hearsOfNew()) return kHeardNs;
  return kAgainNs[std::min<size_t>(steps_, std::size(kAgainNs) - 1)];
}

// Who trusted that new TSGs are heard of, and they are not any more, is due earlier.
uint64_t Process::dueNs() const {
  const bool settled = state_ == State::kControlled && steps_ > kSettledSteps && !looks();
  return settled ? std::min(next_step_ns_, finished_ns_ + againNs()) : next_step_ns_;
}

// The look is over: when is the next?
void Process::finish(uint64_t now_ns, bool changed) {
  wait_.quick_ns = wait_.full_ns = kNever;
  full_.clear();
  if (changed)
    new_gap_ns_ = kNewNs;
  else if (hurries_)
    new_gap_ns_ = std::min(2 * new_gap_ns_, kNewMostNs);
  hurries_ = false;
  if (state_ == State::kBlind)
    next_step_ns_ = now_ns + kBlindNs;
  else if (state_ == State::kControlled)
    next_step_ns_ = now_ns + againNs();
  else
    next_step_ns_ = now_ns + (steps_ < kEagerSteps ? kEagerNs : kPatientNs);
  steps_++;
  finished_ns_ = now_ns;
  if (std::exchange(has_new_, false)) noteNew(now_ns);
}

// A look; of one under control only the full one tells more.
void Process::begin(uint64_t now_ns) {
  if (state_ == State::kControlled)
    wait_.full_ns = now_ns;
  else
    beginQuick(now_ns);
  begun_ns_ = now_ns;
}

void Process::beginQuick(uint64_t now_ns) {
  // It runs, so what was found while it started is not what it has now.
  if (unseen_) closeNodes([](const Node &) { return true; });
  if (!lookForNodes()) {
    finish(now_ns);
    return;
  }
  for (Node &node : nodes_) {
    node.tried = 0;
    node.hinted = node.scanned = false;
  }
  quick_begun_ = true;
  wait_.quick_ns = now_ns;
}

// At the node's next client: where the hint says, and at the first handles if that is not it.
bool Process::quickClient(Node &node, uint64_t now_ns, bool &changed) {
  const Hint *hint = node.hinted ? nullptr : looks_->hint(tenant_);
  ObjectScan scan(own_.io(), node.ours, node.clients[node.tried], own_.gpuId());
  const bool found = scan.quick(hint);
  probes_ += scan.probes();
  node.hinted = hint != nullptr;
  if (!hint) node.tried++;
  if (found) changed = quickDone(now_ns, &scan);
  return found;
}

// At its clients one by one, the youngest first, as soon as they are known.
bool Process::quickPiece(uint64_t now_ns, uint64_t end) {
  for (size_t i = 0; i < nodes_.size();) {
    Node &node = nodes_[i];
    if (node.tried == node.clients.size() && node.scanned) {
      i++;
      continue;
    }
    const bool scans = node.tried == node.clients.size();
    const Hint *hint = node.hinted ? nullptr : looks_->hint(tenant_);
    if (end - probes_ < (scans ? 1 : ObjectScan::quickControls(hint))) {
      wait_.quick_ns = now_ns;  // behind those who wait longer now
      return false;
    }
    if (scans) {
      scanClients(node, now_ns, end);
      continue;
    }
    bool changed = false;
    if (quickClient(node, now_ns, changed)) return changed;
  }
  return quickDone(now_ns, nullptr);
}

// The full look is next; until it is over, one that is not under control is tried so again.
bool Process::quickDone(uint64_t now_ns, const ObjectScan *found) {
  const bool changed = found && take(*found, now_ns);
  const bool known = state_ == State::kControlled;
  if (known) full_.clear();
  quick_begun_ = false;
  wait_.quick_ns = known ? kNever : now_ns + kEagerNs;
  wait_.full_ns = known ? now_ns : begun_ns_;
  return changed;
}

// At all clients, first at the one by which it is under control.
void Process::beginFull() {
  for (const Node &node : nodes_)
    for (const uint32_t client : node.clients) {
      const ObjectScan scan(own_.io(), node.ours, client, own_.gpuId());
      if (node.ours == foreign_.fd && client == foreign_.client)
        full_.push_front(scan);
      else
        full_.push_back(scan);
    }
}

bool Process::fullPiece(uint64_t now_ns, uint64_t end) {
  if (full_.empty()) beginFull();
  bool changed = false;
  while (!full_.empty() && end - probes_ >= ObjectScan::kPieceMin) {
    const uint64_t before = full_.front().probes();
    const bool done = full_.front().goOn(static_cast<unsigned>(end - probes_));
    probes_ += full_.front().probes() - before;
    if (!done) return false;
    const ObjectScan scan = full_.front();
    full_.pop_front();
    if (!scan.found()) continue;
    looks_->remember(tenant_, scan.hint());
    changed = take(scan, now_ns);
    full_.clear();
  }
  if (full_.empty()) finish(now_ns, changed);
  return changed;
}

bool Process::step(uint64_t now_ns) {
  if (now_ns < dueNs() || state_ == State::kEnded) return false;
  if (own_.io().ended(pidfd_)) {
    end();
    return true;
  }
  const State before = state_;
  next_step_ns_ = now_ns + 1;
  if (wait_.quick_ns == kNever && wait_.full_ns == kNever)
    begin(now_ns);
  else if (wait_.quick_ns <= now_ns && !quick_begun_)
    beginQuick(now_ns);
  bool changed = false;
  if (const unsigned controls = looks_->allowance(*this, now_ns)) {
    const uint64_t from = probes_;
    wait_.stepped_ns = now_ns;
    changed = wait_.quick_ns <= now_ns ? quickPiece(now_ns, from + controls)
                                       : fullPiece(now_ns, from + controls);
    looks_->spend(probes_ - from);
  }
  return changed || state_ != before;
}

}  // namespace qgpu::exec
