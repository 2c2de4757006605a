// SPDX-License-Identifier: GPL-2.0
// The driver as the executor sees it, in virtual time: clients, objects, controls with what they
// cost, a graphics/compute engine that goes round the TSGs with work, and the context-switch trace.
// It records what was asked and can be told to refuse any control.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "daemon/exec/rm_abi.hpp"
#include "daemon/exec/rm_io.hpp"

namespace qgpu::fakes {

// What a TSG does: nothing, kernels without end, kernels of a length with a gap after each, or
// kernels that its processor submits so far apart and that pile up to a depth.
struct FakeWork {
  enum Kind { kIdle, kQueued, kSync, kPaced } kind = kIdle;
  uint64_t kernel_ns = 0, gap_ns = 0;
  unsigned depth = 0;
  bool uncuttable = false;  // runs a kernel to its end, whoever waits; not of kPaced
};

struct FakeTsg {
  uint32_t client = 0, handle = 0, id = 0;
  std::vector<uint32_t> channels;
  uint64_t slice_us = 2048;
  bool enabled = true;
  pid_t pid = 0;
  FakeWork work;
  uint64_t left_ns = 0, gap_left_ns = 0;  // of the kernel or of all that is queued, of the gap
  uint64_t run_ns = 0;                    // time that work was done
  uint64_t gap_longest_ns = 0, stopped_ns = 0;
  // Of kSync: from each kernel's submission to its end, and how long the one that is on has taken.
  std::vector<uint64_t> latencies_ns;
  uint64_t pending_ns = 0;

  // An enable that the host does not notice: until what brings it back.
  enum Lost { kNo, kUntilRung, kUntilEnabled, kUntilPreempted, kForEver } lost = kNo;
  uint64_t lost_ns = 0;

  bool ready() const { return enabled && !lost && hasWork(); }
  bool hasWork() const {
    return work.kind == FakeWork::kQueued || (work.kind == FakeWork::kSync && !gap_left_ns) ||
           (work.kind == FakeWork::kPaced && left_ns);
  }
};

class FakeRm final : public exec::RmIo {
 public:
  FakeRm();

  // A process with a client, a device, a subdevice, a compute TSG of `channels` channels and a copy
  // TSG. Its control node has this number there.
  FakeTsg &addProcess(pid_t pid, unsigned channels = 8, int control_fd = 5);
  // Another compute TSG of a process that is there, with as many channels.
  FakeTsg &addTsg(pid_t pid);
  // The oldest TSG of a process is freed.
  void freeTsg(pid_t pid);
  void endProcess(pid_t pid);
  // It closes its control node and opens it anew, under the same number: duplicates are of the old
  // file.
  void reopenControl(pid_t pid);
  FakeTsg &tsg(pid_t pid);
  // So many records of the trace are missing.
  void loseRecords(uint16_t count) { sequence_ = static_cast<uint16_t>(sequence_ + count); }

  void advance(uint64_t ns);
  uint64_t nowNs() override { return now_ns_; }

  // A control that fails, with the driver's status; 0 = works.
  std::map<uint32_t, uint32_t> refuse;
  // The next call of a control takes so much longer; each call does.
  std::map<uint32_t, uint64_t> slow_once_ns, slow_ns;
  // The next enable of a TSG that was stopped is lost so.
  FakeTsg::Lost lose_next = FakeTsg::kNo;
  uint32_t status_of_trace = 0;
  uint64_t flush_ns = 50'000;  // of the trace
  uint16_t record_type = 2;  // of the trace
  bool names_contexts = true;  // in the trace
  bool permit_duplicates = true, permit_looks = true;
  // A class of doorbell page that the card has.
  uint32_t usermode_class = 0xc661;
  unsigned alloc_status_at = 28;
  // What was asked.
  std::map<uint32_t, uint64_t> calls;
  std::vector<uint32_t> rings;
  std::set<int> open_fds;
  uint64_t wrong_clients = 0;
  // Clients that do not answer the next guess.
  std::set<uint32_t> silent_once;

  Result<int> open(const std::string &path) override;
  void close(int fd) override;
  int ioctl(int fd, unsigned long request, void *argument) override;
  Result<void *> map(int fd, size_t bytes, bool writable) override;
  void unmap(void *, size_t) override {}
  bool isControlNode(int fd) override { return control_fds_.count(fd) || foreign_.count(fd); }
  Result<std::vector<int>> controlDescriptors(pid_t pid) override;
  bool holdsControl(pid_t pid, int fd, int duplicate) override;
  Result<int> duplicate(int pidfd, int fd) override;
  bool ended(int pidfd) override;

 private:
  enum class Phase { kEmpty, kSave, kRestore, kRun };
  struct Client {
    pid_t pid = 0;
    int fd = -1;  // of ours; -1 = a tenant's
    int theirs = -1;
  };

  uint32_t alloc(exec::rm::Alloc &call, int fd);
  uint32_t control(const exec::rm::Control &call, int fd);
  uint32_t controlTsg(FakeTsg &tsg, const exec::rm::Control &call);
  void ring(uint32_t token);
  void gateTsg(FakeTsg &tsg, bool disable);
  uint32_t gate(const exec::rm::DisableChannels &params);
  uint32_t handleInfo(uint32_t client, exec::rm::HandleInfo &info);
  bool owns(int fd, uint32_t client) const;
  FakeTsg *find(uint32_t client, uint32_t handle);
  FakeTsg *findChannel(uint32_t client, uint32_t handle);
  void submit(FakeTsg &tsg);
  void step();
  void compute(FakeTsg &tsg);
  void run();
  void leave();
  void enter();
  FakeTsg *nextReady();
  void record(bool start, const FakeTsg &tsg);
  void showTime();

  uint64_t now_ns_ = 1'000'000'000'000;
  int next_fd_ = 100;
  uint32_t next_client_ = 0x10, next_tsg_id_ = 6;
  std::set<int> control_fds_;
  struct Duplicate {
    pid_t pid;
    int theirs;
  };
  std::map<int, Duplicate> foreign_;  // ours
  std::map<int, uint32_t> mapped_;
  std::map<uint32_t, Client> clients_;
  std::map<uint32_t, uint32_t> own_objects_;  // handle -> class
  std::vector<std::unique_ptr<FakeTsg>> tsgs_;

  Phase phase_ = Phase::kEmpty;
  FakeTsg *on_ = nullptr;
  size_t at_ = 0;
  uint64_t phase_left_ns_ = 0, slice_left_ns_ = 0, warm_ns_ = 0;
  bool preempt_ = false;

  bool tracing_ = false;
  uint16_t sequence_ = 0;
  std::vector<exec::rm::FecsRecord> pending_;
  alignas(8) std::array<uint8_t, 0x10000> page_{};
  std::vector<exec::rm::FecsRecord> records_;
  alignas(8) std::array<uint8_t, 4096> header_{};
};

}  // namespace qgpu::fakes
