// SPDX-License-Identifier: GPL-2.0
// Looking goes in steps, since a process is named before it uses the card: first for a descriptor
// of the control node, then for a client on it, then for TSGs of the client, and once more for
// those that come later. Only the second writes to the kernel's log, and no handle is tried twice
// on a file.
#include "process.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "proc.hpp"
#include "rm_abi.hpp"

namespace qgpu::exec {
namespace {

constexpr uint64_t kMs = 1'000'000;
// Wrong guesses that a file may cost.
constexpr uint32_t kGuessesMax = 0x4000;
// From step to step while nothing is known: soon, then patiently.
constexpr uint64_t kEagerNs = 20 * kMs, kPatientNs = 200 * kMs;
// Of one that could not be looked at.
constexpr uint64_t kBlindNs = 2000 * kMs;
constexpr unsigned kEagerSteps = 100;
// After TSGs are known: once they are all there, and for those of a later context.
constexpr uint64_t kAgainNs[] = {20 * kMs, 100 * kMs, 500 * kMs, 2000 * kMs, 8000 * kMs};

bool same(const std::vector<Tsg> &a, const std::vector<Tsg> &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Tsg &x, const Tsg &y) {
    return x.handle == y.handle && x.id == y.id && x.channels.size() == y.channels.size();
  });
}

}  // namespace

Process::Process(RmClient &own, pid_t pid, int pidfd, uint32_t floor, uint64_t now_ns)
    : own_(own),
      pid_(pid),
      pidfd_(pidfd),
      floor_(floor),
      named_ns_(now_ns),
      next_step_ns_(now_ns) {}

Process::~Process() {
  closeNodes(-1);
  ::close(pidfd_);
}

void Process::closeNodes(int but) {
  for (const Node &node : nodes_)
    if (node.ours != but) own_.io().close(node.ours);
  std::erase_if(nodes_, [&](const Node &node) { return node.ours != but; });
}

void Process::end() {
  closeNodes(-1);
  tsgs_.clear();
  foreign_ = {};
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
  const auto theirs = own_.io().controlDescriptors(pid_);
  if (theirs && std::binary_search(theirs->begin(), theirs->end(), their_fd_)) return true;
  // It closed the driver or became another program: what it opens now is looked for anew.
  closeNodes(-1);
  tsgs_.clear();
  foreign_ = {};
  state_ = State::kLooking;
  steps_ = 0;
  next_step_ns_ = 0;
  return false;
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

// Duplicates of descriptors that are not known yet.
bool Process::lookForNodes() {
  const auto theirs = own_.io().controlDescriptors(pid_);
  if (!theirs) {
    if (theirs.error().err != ENOENT && theirs.error().err != ESRCH)
      goBlind(theirs.error().sentence);
    return false;
  }
  for (const int fd : *theirs) {
    if (std::any_of(nodes_.begin(), nodes_.end(), [&](const Node &n) { return n.theirs == fd; }))
      continue;
    const auto ours = own_.io().duplicate(pidfd_, fd);
    if (!ours) {
      if (ours.error().err != EPERM) continue;  // gone meanwhile
      goBlind(ours.error().sentence);
      return false;
    }
    if (own_.io().isControlNode(*ours))
      nodes_.push_back({fd, *ours, floor_, {}});
    else
      own_.io().close(*ours);
  }
  if (state_ == State::kBlind && !unseen_) state_ = State::kLooking;
  return !nodes_.empty();
}

void Process::scanClients(Node &node) {
  const auto next = own_.nextClient();
  if (!next || *next < node.scanned_to) return;
  const uint32_t lowest =
      *next - node.scanned_to > kGuessesMax ? *next - kGuessesMax : node.scanned_to;
  node.clients = clientsOf(own_.io(), node.ours, *next, lowest);
  probes_ += *next - lowest + 1;
  node.scanned_to = *next + 1;
}

bool Process::take(const Node &node, uint32_t client, const ObjectScan &scan, uint64_t now_ns) {
  const bool changed = state_ != State::kControlled || !same(tsgs_, scan.tsgs());
  tsgs_ = scan.tsgs();
  foreign_ = {node.ours, client, scan.subdevice()};
  their_fd_ = node.theirs;
  closeNodes(node.ours);
  if (state_ != State::kControlled) {
    state_ = State::kControlled;
    unseen_ = false;
    controlled_ns_ = now_ns;
    steps_ = 0;
  }
  return changed;
}

bool Process::lookForObjects(uint64_t now_ns) {
  for (Node &node : nodes_) {
    if (node.clients.empty()) scanClients(node);
    for (const uint32_t client : node.clients) {
      ObjectScan scan(own_.io(), node.ours, client, own_.gpuId());
      const bool found = scan.look();
      probes_ += scan.probes();
      if (found) return take(node, client, scan, now_ns);
    }
  }
  return false;
}

bool Process::step(uint64_t now_ns) {
  if (now_ns < next_step_ns_ || state_ == State::kEnded) return false;
  if (own_.io().ended(pidfd_)) {
    end();
    return true;
  }
  const State before = state_;
  bool changed = false;
  if (state_ == State::kControlled || lookForNodes()) changed = lookForObjects(now_ns);
  if (state_ == State::kBlind)
    next_step_ns_ = now_ns + kBlindNs;
  else if (state_ == State::kControlled)
    next_step_ns_ = steps_ < std::size(kAgainNs) ? now_ns + kAgainNs[steps_] : UINT64_MAX;
  else
    next_step_ns_ = now_ns + (steps_ < kEagerSteps ? kEagerNs : kPatientNs);
  steps_++;
  return changed || state_ != before;
}

}  // namespace qgpu::exec
