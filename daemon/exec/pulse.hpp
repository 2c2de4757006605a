// SPDX-License-Identifier: GPL-2.0
// A worker's sign of life, and its guard's word that it let run what the worker had stopped: two
// counters in memory of both. A worker that hangs, in a control or stopped by a signal, must keep
// nobody stopped, and must not believe afterwards that it does.
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
  void beat() { counters_->beats.fetch_add(1); }
  uint64_t beats() const { return counters_->beats.load(); }
  // The guard: when it has opened gates.
  void noteRelease() { counters_->releases.fetch_add(1); }
  uint64_t releases() const { return counters_->releases.load(); }

 private:
  struct Counters {
    std::atomic<uint64_t> beats, releases;
  };
  Pulse(UniqueFd fd, Counters *counters) : fd_(std::move(fd)), counters_(counters) {}
  static Result<std::unique_ptr<Pulse>> map(UniqueFd fd);

  UniqueFd fd_;
  Counters *counters_;
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
