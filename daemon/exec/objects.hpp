// SPDX-License-Identifier: GPL-2.0
// What a process has in the driver on one card: its client, its TSGs and their channels, found by
// harmless probes on a duplicate of its control node.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rm_call.hpp"
#include "rm_client.hpp"

namespace qgpu::exec {

// Runlist of graphics and compute, on every chip from Turing to Blackwell.
constexpr uint32_t kComputeRunlist = 0;

struct Channel {
  uint32_t handle = 0;
  uint32_t token = 0;  // what a doorbell write names it by: runlist << 16 | channel id
};

struct Tsg {
  uint32_t handle = 0;
  uint32_t id = 0;  // of the hardware; reused
  std::vector<Channel> channels;

  uint32_t runlist() const { return channels.empty() ? UINT32_MAX : channels[0].token >> 16; }
  bool compute() const { return runlist() == kComputeRunlist; }
};

// Looks at the objects of one client. Handles are tried in ascending order from where libcuda
// begins, in blocks, for as long as a block has something; look() again goes over them anew.
class ObjectScan {
 public:
  ObjectScan(RmIo &io, int fd, uint32_t client, uint32_t gpu_id)
      : io_(io), fd_(fd), client_(client), gpu_id_(gpu_id) {}

  // Whether this client has TSGs on the card.
  bool look();
  const std::vector<Tsg> &tsgs() const { return tsgs_; }
  // Its subdevice of the card; 0 before one was found.
  uint32_t subdevice() const { return subdevice_; }
  uint64_t probes() const { return probes_; }

 private:
  bool block(uint32_t first);
  bool probe(uint32_t handle);
  bool probeChannel(uint32_t handle);
  std::optional<uint32_t> parentOf(uint32_t handle);
  bool onCard(uint32_t tsg);

  RmIo &io_;
  int fd_;
  uint32_t client_, gpu_id_;
  uint32_t device_ = 0, subdevice_ = 0;
  std::vector<Tsg> tsgs_;
  uint64_t probes_ = 0;
};

// Clients of the open file `fd`, youngest first: handles from `from` down to `to`, both included.
// Each wrong guess makes the driver write a line to the kernel's log: done once a file.
std::vector<uint32_t> clientsOf(RmIo &io, int fd, uint32_t from, uint32_t to);

}  // namespace qgpu::exec
