// SPDX-License-Identifier: GPL-2.0
#include "fakes/fake_rm.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "daemon/exec/proc.hpp"

namespace qgpu::fakes {

namespace rm = exec::rm;

namespace {

constexpr uint64_t kStepNs = 10'000;
constexpr uint64_t kSaveNs = 80'000, kRestoreNs = 80'000, kWarmNs = 30'000;
constexpr uint64_t kEnableRingNs = 5'000'000;
constexpr uint32_t kGpuId = 0x600, kRecords = 32768;
constexpr uint32_t kDevice = 0x5c000002, kSubdevice = 0x5c000003, kTsg = 0x5c000015;
constexpr uint32_t kNextTsg = 0x100, kContextBase = 0x4000;
constexpr uint32_t kChannel = 0x5c00001c, kCopyTsg = 0x5c00003e, kCopyChannel = 0x5c000040;

}  // namespace

FakeRm::FakeRm() : records_(kRecords) { showTime(); }

void FakeRm::showTime() {
  const uint32_t low = static_cast<uint32_t>(now_ns_), high = static_cast<uint32_t>(now_ns_ >> 32);
  std::memcpy(page_.data() + rm::kUsermodeTimeLow, &low, sizeof(low));
  std::memcpy(page_.data() + rm::kUsermodeTimeHigh, &high, sizeof(high));
  uint32_t token = 0;
  std::memcpy(&token, page_.data() + rm::kUsermodeDoorbell, sizeof(token));
  if (!token) return;
  ring(token);
  std::memset(page_.data() + rm::kUsermodeDoorbell, 0, sizeof(token));
}

// The ring that belongs to an enable comes too early to help.
void FakeRm::ring(uint32_t token) {
  rings.push_back(token);
  for (const auto &tsg : tsgs_)
    if (tsg->id == token / 16 && tsg->lost == FakeTsg::kUntilRung &&
        now_ns_ > tsg->lost_ns + kEnableRingNs)
      tsg->lost = FakeTsg::kNo;
}

FakeTsg &FakeRm::addProcess(pid_t pid, unsigned channels, int control_fd) {
  auto tsg = std::make_unique<FakeTsg>();
  tsg->client = rm::kClientBase + next_client_++;
  tsg->handle = kTsg;
  tsg->id = next_tsg_id_++;
  tsg->pid = pid;
  for (unsigned i = 0; i < channels; i++) tsg->channels.push_back(kChannel + i);
  clients_[tsg->client] = {pid, -1, control_fd};
  tsgs_.push_back(std::move(tsg));
  return *tsgs_.back();
}

FakeTsg &FakeRm::addTsg(pid_t pid) {
  const FakeTsg &first = tsg(pid);
  auto more = std::make_unique<FakeTsg>();
  more->client = first.client;
  more->handle = first.handle + kNextTsg;
  more->id = next_tsg_id_++;
  more->pid = pid;
  for (const uint32_t channel : first.channels) more->channels.push_back(channel + kNextTsg);
  tsgs_.push_back(std::move(more));
  return *tsgs_.back();
}

void FakeRm::freeTsg(pid_t pid) {
  const FakeTsg *first = &tsg(pid);
  if (on_ == first) {
    on_ = nullptr;
    phase_ = Phase::kEmpty;
  }
  std::erase_if(tsgs_, [&](const auto &t) { return t.get() == first; });
}

void FakeRm::endProcess(pid_t pid) {
  std::erase_if(clients_, [&](const auto &c) { return c.second.pid == pid; });
  if (on_ && on_->pid == pid) {
    on_ = nullptr;
    phase_ = Phase::kEmpty;
  }
  std::erase_if(tsgs_, [&](const auto &t) { return t->pid == pid; });
}

void FakeRm::reopenControl(pid_t pid) {
  for (auto &[fd, duplicate] : foreign_)
    if (duplicate.pid == pid) duplicate.theirs = -1;
}

FakeTsg &FakeRm::tsg(pid_t pid) {
  for (const auto &tsg : tsgs_)
    if (tsg->pid == pid) return *tsg;
  std::abort();
}

FakeTsg *FakeRm::find(uint32_t client, uint32_t handle) {
  for (const auto &tsg : tsgs_)
    if (tsg->client == client && tsg->handle == handle) return tsg.get();
  return nullptr;
}

FakeTsg *FakeRm::findChannel(uint32_t client, uint32_t handle) {
  for (const auto &tsg : tsgs_)
    if (tsg->client == client && std::count(tsg->channels.begin(), tsg->channels.end(), handle))
      return tsg.get();
  return nullptr;
}

// ---- the engine

void FakeRm::record(bool start, const FakeTsg &tsg) {
  if (!tracing_) return;
  rm::FecsRecord r{};
  r.type = record_type;
  r.tag = start ? rm::kTagStart : rm::kTagEnd;
  r.sequence = sequence_++;
  r.context = names_contexts ? kContextBase + tsg.id : 0;
  r.pid = static_cast<uint32_t>(tsg.pid);
  r.time_ns = now_ns_;
  pending_.push_back(r);
}

FakeTsg *FakeRm::nextReady() {
  for (size_t i = 1; i <= tsgs_.size(); i++) {
    const size_t at = (at_ + i) % tsgs_.size();
    if (tsgs_[at]->ready()) {
      at_ = at;
      return tsgs_[at].get();
    }
  }
  return nullptr;
}

void FakeRm::enter() {
  on_ = nextReady();
  phase_ = on_ ? Phase::kRestore : Phase::kEmpty;
  phase_left_ns_ = kRestoreNs;
}

void FakeRm::leave() {
  phase_ = Phase::kSave;
  phase_left_ns_ = kSaveNs;
  preempt_ = false;
}

// A step of its kernel; at its end the next, at once or after its gap.
void FakeRm::compute(FakeTsg &tsg) {
  tsg.run_ns += kStepNs;
  tsg.left_ns -= std::min(tsg.left_ns, kStepNs);
  if (tsg.left_ns || tsg.work.kind == FakeWork::kPaced) return;
  tsg.left_ns = tsg.work.kernel_ns;
  if (tsg.work.kind != FakeWork::kSync) return;
  tsg.gap_left_ns = tsg.work.gap_ns;
  tsg.latencies_ns.push_back(tsg.pending_ns);
  tsg.pending_ns = 0;
}

// The holder for one step.
void FakeRm::run() {
  const bool others = std::any_of(tsgs_.begin(), tsgs_.end(),
                                  [&](const auto &t) { return t.get() != on_ && t->ready(); });
  if (warm_ns_ >= kStepNs) {
    warm_ns_ -= kStepNs;
  } else if (on_->hasWork()) {
    compute(*on_);
  }
  slice_left_ns_ -= std::min(slice_left_ns_, kStepNs);
  if (on_->work.uncuttable && on_->hasWork() && on_->left_ns != on_->work.kernel_ns) return;
  if (!on_->enabled || (preempt_ && on_->hasWork()) || (others && !on_->hasWork()))
    leave();
  else if (!slice_left_ns_ && others)
    leave();
  preempt_ = false;
}

// The processor goes on while less than its depth is queued.
void FakeRm::submit(FakeTsg &tsg) {
  if (tsg.gap_left_ns || tsg.left_ns + tsg.work.kernel_ns > tsg.work.depth * tsg.work.kernel_ns)
    return;
  tsg.left_ns += tsg.work.kernel_ns;
  tsg.gap_left_ns = tsg.work.gap_ns;
}

void FakeRm::step() {
  for (const auto &tsg : tsgs_) {
    if (tsg->gap_left_ns) tsg->gap_left_ns -= std::min(tsg->gap_left_ns, kStepNs);
    if (tsg->work.kind == FakeWork::kPaced) submit(*tsg);
    if (tsg->work.kind == FakeWork::kSync && !tsg->gap_left_ns) tsg->pending_ns += kStepNs;
    tsg->stopped_ns = tsg->enabled ? 0 : tsg->stopped_ns + kStepNs;
    tsg->gap_longest_ns = std::max(tsg->gap_longest_ns, tsg->stopped_ns);
  }
  switch (phase_) {
    case Phase::kEmpty:
      enter();
      break;
    case Phase::kRun:
      run();
      break;
    case Phase::kSave:
    case Phase::kRestore:
      phase_left_ns_ -= std::min(phase_left_ns_, kStepNs);
      if (phase_left_ns_) break;
      record(phase_ == Phase::kRestore, *on_);
      if (phase_ == Phase::kSave) {
        enter();
        break;
      }
      phase_ = Phase::kRun;
      slice_left_ns_ = on_->slice_us * 1024;
      warm_ns_ = kWarmNs;
      break;
  }
  now_ns_ += kStepNs;
}

void FakeRm::advance(uint64_t ns) {
  showTime();
  for (uint64_t t = 0; t < ns; t += kStepNs)
    if (tsgs_.empty())
      now_ns_ += kStepNs;
    else
      step();
  showTime();
}

// ---- the calls

Result<int> FakeRm::open(const std::string &path) {
  const int fd = next_fd_++;
  open_fds.insert(fd);
  if (path == "/dev/nvidiactl") control_fds_.insert(fd);
  return fd;
}

void FakeRm::close(int fd) {
  open_fds.erase(fd);
  foreign_.erase(fd);
  control_fds_.erase(fd);
}

bool FakeRm::owns(int fd, uint32_t client) const {
  const auto it = clients_.find(client);
  if (it == clients_.end()) return false;
  const auto foreign = foreign_.find(fd);
  return foreign == foreign_.end()
             ? it->second.fd == fd
             : it->second.pid == foreign->second.pid && it->second.theirs == foreign->second.theirs;
}

uint32_t FakeRm::alloc(rm::Alloc &call, int fd) {
  if (call.klass == rm::kClassClient) {
    call.object = rm::kClientBase + next_client_++;
    clients_[call.object] = {0, fd, -1};
    return rm::kOk;
  }
  if ((call.klass & 0xff) == 0x61 && call.klass != usermode_class) return 0x22;
  if (call.klass == rm::kClassEventBuffer && status_of_trace) return status_of_trace;
  own_objects_[call.object] = call.klass;
  return rm::kOk;
}

int FakeRm::ioctl(int fd, unsigned long request, void *argument) {
  switch (_IOC_NR(request)) {
    case rm::kNrCardInfo: {
      auto *cards = static_cast<rm::CardInfo *>(argument);
      cards[0].valid = 1;
      cards[0].gpu_id = kGpuId;
      return 0;
    }
    case rm::kNrAlloc: {
      auto &call = *static_cast<rm::Alloc *>(argument);
      const uint32_t status = alloc(call, fd);
      std::memcpy(static_cast<uint8_t *>(argument) + alloc_status_at, &status, sizeof(status));
      return 0;
    }
    case rm::kNrFree:
      clients_.erase(static_cast<rm::Free *>(argument)->object);
      return 0;
    case rm::kNrMapMemory: {
      auto &call = *static_cast<rm::MapMemory *>(argument);
      mapped_[call.fd] = call.length == rm::kUsermodeBytes ? 1 : call.length == 4096 ? 2 : 3;
      return 0;
    }
    case rm::kNrControl: {
      auto &call = *static_cast<rm::Control *>(argument);
      call.status = control(call, fd);
      return 0;
    }
    default:
      return 0;
  }
}

Result<void *> FakeRm::map(int fd, size_t, bool) {
  switch (mapped_[fd]) {
    case 1:
      return static_cast<void *>(page_.data());
    case 2:
      return static_cast<void *>(header_.data());
    default:
      return static_cast<void *>(records_.data());
  }
}

Result<std::vector<int>> FakeRm::controlDescriptors(pid_t pid) {
  if (!permit_looks) return Error{EACCES, "its descriptors cannot be looked at", {}};
  std::vector<int> out;
  for (const auto &[handle, client] : clients_)
    if (client.pid == pid && client.theirs >= 0) out.push_back(client.theirs);
  return out;
}

bool FakeRm::holdsControl(pid_t pid, int fd, int duplicate) {
  const auto theirs = controlDescriptors(pid);
  return theirs && std::count(theirs->begin(), theirs->end(), fd) &&
         foreign_.at(duplicate).theirs == fd;
}

Result<int> FakeRm::duplicate(int pidfd, int theirs) {
  if (!permit_duplicates) return Error{EPERM, "cannot duplicate a descriptor", {}};
  const auto pid = exec::pidOf(pidfd);
  if (!pid) return pid.error();
  const int fd = next_fd_++;
  open_fds.insert(fd);
  foreign_[fd] = {*pid, theirs};
  return fd;
}

bool FakeRm::ended(int pidfd) { return !exec::pidOf(pidfd); }

uint32_t FakeRm::handleInfo(uint32_t client, rm::HandleInfo &info) {
  if (FakeTsg *tsg = findChannel(client, info.object))
    info.result = tsg->handle;
  else if (info.object == kCopyChannel)
    info.result = kCopyTsg;
  else
    info.result = info.object == kDevice ? client : kDevice;
  return rm::kOk;
}

void FakeRm::gateTsg(FakeTsg &tsg, bool disable) {
  if (tsg.enabled && !disable && tsg.lost == FakeTsg::kUntilEnabled) tsg.lost = FakeTsg::kNo;
  if (!tsg.enabled && !disable && lose_next) {
    tsg.lost = lose_next;
    tsg.lost_ns = now_ns_;
    lose_next = FakeTsg::kNo;
  }
  tsg.enabled = !disable;
}

uint32_t FakeRm::gate(const rm::DisableChannels &params) {
  if (!params.count) return 0x3a;
  std::set<FakeTsg *> tsgs;
  for (uint32_t i = 0; i < params.count; i++) {
    FakeTsg *tsg = findChannel(params.clients[i], params.channels[i]);
    if (!tsg) return rm::kObjectNotFound;
    tsgs.insert(tsg);
  }
  for (FakeTsg *tsg : tsgs) gateTsg(*tsg, params.disable);
  if (!params.disable) {
    advance(350'000);
    return rm::kOk;
  }
  // Whoever is on is taken off then, not only those who are stopped.
  advance(240'000);
  if (phase_ == Phase::kRun) preempt_ = true;
  advance(210'000);
  return rm::kOk;
}

uint32_t FakeRm::controlTsg(FakeTsg &tsg, const rm::Control &call) {
  auto *us = reinterpret_cast<uint64_t *>(call.params);
  switch (call.cmd) {
    case rm::kCtrlTsgGetInfo:
      *reinterpret_cast<uint32_t *>(call.params) = tsg.id;
      return rm::kOk;
    case rm::kCtrlTsgGetTimeslice:
      *us = tsg.slice_us;
      return rm::kOk;
    case rm::kCtrlTsgSetTimeslice:
      tsg.slice_us = *us;
      advance(280'000);
      return rm::kOk;
    case rm::kCtrlTsgPreempt:
      // It is saved when this returns, and not back yet.
      advance(300'000);
      if (on_ == &tsg && phase_ == Phase::kRun) preempt_ = true;
      if (tsg.lost == FakeTsg::kUntilPreempted) tsg.lost = FakeTsg::kNo;
      advance(100'000);
      return rm::kOk;
    default:
      return rm::kObjectNotFound;
  }
}

uint32_t FakeRm::control(const rm::Control &call, int fd) {
  calls[call.cmd]++;
  if (const auto it = slow_once_ns.find(call.cmd); it != slow_once_ns.end()) {
    const uint64_t ns = it->second;
    slow_once_ns.erase(it);
    advance(ns);
  }
  if (const auto it = slow_ns.find(call.cmd); it != slow_ns.end()) advance(it->second);
  if (const auto it = refuse.find(call.cmd); it != refuse.end() && it->second) return it->second;
  if (!owns(fd, call.client) || silent_once.erase(call.client)) {
    wrong_clients++;
    return rm::kInvalidClient;
  }
  auto *word = reinterpret_cast<uint32_t *>(call.params);
  switch (call.cmd) {
    case rm::kCtrlSystemGetFeatures:
    case rm::kCtrlGpuGetIdInfoV2:
      return rm::kOk;
    case rm::kCtrlClientGetHandleInfo:
      return handleInfo(call.client, *reinterpret_cast<rm::HandleInfo *>(call.params));
    case rm::kCtrlFifoDisableChannels:
      return gate(*reinterpret_cast<rm::DisableChannels *>(call.params));
    case rm::kCtrlFecsBindEventBufferV2:
    case rm::kCtrlEventBufferEnable:
      tracing_ = true;
      return rm::kOk;
    case rm::kCtrlEventBufferFlush: {
      auto &header = *reinterpret_cast<rm::EventBufferHeader *>(header_.data());
      for (const auto &r : pending_) {
        records_[header.put] = r;
        header.put = (header.put + 1) % kRecords;
      }
      pending_.clear();
      advance(flush_ns);
      return rm::kOk;
    }
    case rm::kCtrlEventBufferUpdateGet:
      return rm::kOk;
    case rm::kCtrlGpuGetId:
      if (call.object != kSubdevice) return rm::kObjectNotFound;
      *word = kGpuId;
      return rm::kOk;
    case rm::kCtrlChannelGetSubmitToken:
      if (FakeTsg *tsg = findChannel(call.client, call.object)) {
        *word = tsg->id * 16 + call.object - tsg->channels[0];
        return rm::kOk;
      }
      if (call.object != kCopyChannel) return rm::kObjectNotFound;
      *word = 0x10012;
      return rm::kOk;
    default:
      break;
  }
  if (FakeTsg *tsg = find(call.client, call.object)) return controlTsg(*tsg, call);
  if (call.object == kCopyTsg && call.cmd == rm::kCtrlTsgGetInfo) return *word = 99, rm::kOk;
  return rm::kObjectNotFound;
}

}  // namespace qgpu::fakes
