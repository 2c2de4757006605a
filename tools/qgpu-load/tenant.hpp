// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "options.hpp"

namespace qgpu {

// The driver said no: what was asked, and errno or the driver's status.
class DriverError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// An open file, closed at the end.
class File {
 public:
  explicit File(const std::string &path);
  File(File &&other) noexcept;
  File(const File &) = delete;
  File &operator=(const File &) = delete;
  ~File();
  int fd() const { return fd_; }

 private:
  int fd_;
};

// A shared mapping of a whole file, unmapped at the end.
class Mapping {
 public:
  Mapping(const File &file, uint64_t bytes);
  Mapping(Mapping &&other) noexcept;
  Mapping(const Mapping &) = delete;
  Mapping &operator=(const Mapping &) = delete;
  ~Mapping();
  uint8_t *at(uint64_t offset) const { return static_cast<uint8_t *>(address_) + offset; }

 private:
  void *address_;
  uint64_t bytes_;
};

// A kernel's end as the card wrote it: its number + 1, and CLOCK_MONOTONIC in ns.
struct Completion {
  uint64_t payload;
  uint64_t time_ns;
};

// A TSG with one channel: a ring of kernels. Numbers count up from 0 for ever.
class Queue {
 public:
  // Writes kernel number pushed() into the ring; the caller sees to it that depth is kept.
  void push(uint64_t duration_ns, Preemption preemption);
  uint64_t pushed() const { return pushed_; }
  // Whether kernel `number` is complete; then when it ended.
  bool completed(uint64_t number, uint64_t &time_ns) const;

 private:
  friend class Tenant;
  Queue(File file, Mapping memory, uint64_t va, unsigned entries)
      : file_(std::move(file)), memory_(std::move(memory)), va_(va), entries_(entries) {}

  File file_;
  Mapping memory_;
  uint64_t va_;
  unsigned entries_;
  uint64_t pushed_ = 0;
};

// A tenant of one card: a client, its objects, its queues and its doorbell page. Everything goes
// when the files are closed.
class Tenant {
 public:
  Tenant(unsigned card, unsigned queues, unsigned depth);

  std::vector<Queue> &queues() { return queues_; }
  // One store; the card looks at every queue.
  void ring();

 private:
  uint32_t alloc(uint32_t parent, uint32_t klass, void *params, uint32_t bytes, const char *what);
  void control(uint32_t object, uint32_t cmd, void *params, uint32_t bytes, const char *what);
  void mapMemory(uint32_t on, uint32_t memory, uint64_t bytes, const File &file);
  Queue makeQueue(unsigned depth);

  File ctl_, card_, bell_file_;
  uint32_t handles_ = 0;  // objects numbered so far
  uint32_t client_ = 0, device_ = 0, subdevice_ = 0, vaspace_ = 0, virtual_ = 0;
  uint32_t token_ = 0;
  std::unique_ptr<Mapping> bell_;
  std::vector<Queue> queues_;
};

}  // namespace qgpu
