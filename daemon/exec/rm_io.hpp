// SPDX-License-Identifier: GPL-2.0
// The one door to the driver and to other processes' descriptors. Everything above it runs against
// a fake in the tests.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "../result.hpp"
#include "pulse.hpp"

namespace qgpu::exec {

class RmIo {
 public:
  virtual ~RmIo() = default;

  // A device node, close-on-exec.
  virtual Result<int> open(const std::string &path) = 0;
  virtual void close(int fd) = 0;
  // 0 or a positive errno. May block for as long as the driver does.
  virtual int ioctl(int fd, unsigned long request, void *argument) = 0;
  virtual Result<void *> map(int fd, size_t bytes, bool writable) = 0;
  virtual void unmap(void *address, size_t bytes) = 0;

  // Is it the driver's control node (character device 195:255)?
  virtual bool isControlNode(int fd) = 0;
  // Numbers of the process's descriptors that are control nodes, ascending. ENOENT or ESRCH: it
  // has ended; EACCES: they may not be looked at.
  virtual Result<std::vector<int>> controlDescriptors(pid_t pid) = 0;
  // Is this descriptor of the process one of them, and this duplicate still of the same file?
  virtual bool holdsControl(pid_t pid, int fd, int duplicate) = 0;
  // pidfd_getfd: a duplicate of another process's descriptor.
  virtual Result<int> duplicate(int pidfd, int fd) = 0;
  // Has the process of this pidfd ended?
  virtual bool ended(int pidfd) = 0;
  // The clock by which controls are timed: CLOCK_MONOTONIC.
  virtual uint64_t nowNs() = 0;

  // Kept by rmControl(): the longest that one control took since it was last asked.
  void noteTook(uint64_t ns) { slowest_ns_ = std::max(slowest_ns_, ns); }
  uint64_t takeSlowestNs() { return std::exchange(slowest_ns_, 0); }

 private:
  uint64_t slowest_ns_ = 0;
};

// The real one. Each call of the driver beats `pulse`, if there is one, before and after.
class DeviceIo final : public RmIo {
 public:
  explicit DeviceIo(Pulse *pulse = nullptr) : pulse_(pulse) {}
  Result<int> open(const std::string &path) override;
  void close(int fd) override;
  int ioctl(int fd, unsigned long request, void *argument) override;
  Result<void *> map(int fd, size_t bytes, bool writable) override;
  void unmap(void *address, size_t bytes) override;
  bool isControlNode(int fd) override;
  Result<std::vector<int>> controlDescriptors(pid_t pid) override;
  bool holdsControl(pid_t pid, int fd, int duplicate) override;
  Result<int> duplicate(int pidfd, int fd) override;
  bool ended(int pidfd) override;
  uint64_t nowNs() override;

 private:
  Pulse *pulse_;
};

}  // namespace qgpu::exec
