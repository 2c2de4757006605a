// SPDX-License-Identifier: GPL-2.0
// A worker's sign of life: a counter in memory of its guard and itself. A worker that hangs, in a
// control or stopped by a signal, must keep nobody stopped.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "../result.hpp"
#include "../unique_fd.hpp"

namespace qgpu::exec {

class Pulse {
 public:
  // The guard's; close-on-exec until a child says otherwise.
  static Result<std::unique_ptr<Pulse>> create();
  // The worker's, from what it inherits.
  static Result<std::unique_ptr<Pulse>> attach(int fd);
  ~Pulse();
  Pulse(const Pulse &) = delete;
  Pulse &operator=(const Pulse &) = delete;

  int fd() const { return fd_.get(); }

  // The worker: at each turn, before each control and after it.
  void beat() { beats_->fetch_add(1); }
  uint64_t beats() const { return beats_->load(); }

 private:
  using Counter = std::atomic<uint64_t>;
  Pulse(UniqueFd fd, Counter *beats) : fd_(std::move(fd)), beats_(beats) {}
  static Result<std::unique_ptr<Pulse>> map(UniqueFd fd);

  UniqueFd fd_;
  Counter *beats_;
};

// What to do about a worker, looked at once a second. Looks are counted, not time: a machine that
// stood still as a whole has made nobody silent.
class PulseWatch {
 public:
  enum class Verdict {
    kAlive,
    kSilent,  // what it stopped must run
    kHung,    // it has to go; a control may take as long as the driver's own time-out
  };

  Verdict look(uint64_t beats);

 private:
  uint64_t beats_ = 0;  // 0: it has not begun, and has stopped nobody
  unsigned silent_looks_ = 0;
};

}  // namespace qgpu::exec
