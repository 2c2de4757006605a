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

  bool operator==(const Channel &) const = default;
};

struct Tsg {
  uint32_t handle = 0;
  uint32_t id = 0;  // of the hardware; reused
  std::vector<Channel> channels;

  uint32_t runlist() const { return channels.empty() ? UINT32_MAX : channels[0].token >> 16; }
  bool compute() const { return runlist() == kComputeRunlist; }
  bool operator==(const Tsg &) const = default;
};

// Where the objects of a process were found: libcuda of one version gives the same objects the same
// handles. Of the TSGs only the handles count, theirs and their channels'.
struct Hint {
  uint32_t subdevice = 0;
  std::vector<Tsg> tsgs;
};

// Looks at the objects of one client. The full look tries handles in ascending order from where
// libcuda begins, in blocks, for as long as a block has something; it goes in pieces. The quick one
// tries only where objects are likely. Both verify whatever they find.
class ObjectScan {
 public:
  ObjectScan(RmIo &io, int fd, uint32_t client, uint32_t gpu_id)
      : io_(&io), fd_(fd), client_(client), gpu_id_(gpu_id) {}

  // Quick looks: where the hint says, or at the first handles. Whether this client has a compute
  // TSG there; one that has not is as if it had not been looked at. Neither costs more controls.
  static unsigned quickControls(const Hint *hint);
  bool quick(const Hint *hint);

  // A full look's piece costs at least so many controls.
  static constexpr unsigned kPieceMin = 16;
  // The next piece of the full look, at most so many controls. Whether that was the last.
  bool goOn(unsigned controls);
  // Of a full look that is done: whether this client has TSGs on the card, and where.
  bool found() const { return !tsgs_.empty() && subdevice_; }
  Hint hint() const;

  int fd() const { return fd_; }
  uint32_t client() const { return client_; }
  const std::vector<Tsg> &tsgs() const { return tsgs_; }
  // Its subdevice of the card; 0 before one was found.
  uint32_t subdevice() const { return subdevice_; }
  uint64_t probes() const { return probes_; }

 private:
  bool probe(uint32_t handle);
  bool probeTsg(uint32_t handle);
  bool probeChannel(uint32_t handle);
  bool probeSubdevice(uint32_t handle);
  void probeHint(const Hint &hint);
  void dropEmpty();
  std::optional<uint32_t> parentOf(uint32_t handle);
  bool onCard(uint32_t tsg);

  RmIo *io_;
  int fd_;
  uint32_t client_, gpu_id_;
  uint32_t device_ = 0, subdevice_ = 0;
  std::vector<Tsg> tsgs_;
  uint64_t probes_ = 0;
  uint32_t tried_ = 0;  // handles of the full look
  bool block_has_ = false;
};

// Clients of the open file `fd`, youngest first: handles from `from` down to `to`, both included.
// Each wrong guess makes the driver write a line to the kernel's log: done once a file.
std::vector<uint32_t> clientsOf(RmIo &io, int fd, uint32_t from, uint32_t to);

}  // namespace qgpu::exec
