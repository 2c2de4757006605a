// SPDX-License-Identifier: GPL-2.0
// A netlink socket as datagrams: the place where tests put a kernel of their own.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "../result.hpp"

namespace qgpu::netlink {

using Bytes = std::vector<uint8_t>;

class Wire {
 public:
  virtual ~Wire() = default;

  virtual int fd() const = 0;

  // One whole message with its header; the kernel has handled it when this returns.
  virtual Result<void> send(std::span<const uint8_t> message) = 0;

  // One datagram (one or several messages). EAGAIN: nothing there (at once on an event wire, after
  // the time limit on a request wire). ENOBUFS: the socket overflowed and messages are lost.
  virtual Result<Bytes> receive() = 0;

  virtual Result<void> join(uint32_t group) = 0;
};

enum class WireKind {
  kRequests,  // receive() waits up to 5 s for an answer
  kEvents,    // receive() never waits
};

// A socket of the family NETLINK_GENERIC with extended acknowledgement.
Result<std::unique_ptr<Wire>> openWire(WireKind kind);

}  // namespace qgpu::netlink
