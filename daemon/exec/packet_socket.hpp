// SPDX-License-Identifier: GPL-2.0
// SOCK_SEQPACKET unix sockets: a packet is a message of protocol.hpp, with descriptors beside it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "../result.hpp"

namespace qgpu::exec {

// A listening socket that only its owner may connect to; one that is in the way is replaced.
Result<int> listenAt(const std::string &path);
// The other end.
Result<int> connectTo(const std::string &path);
// A connection by root or by who runs this; -1 when there is none.
int acceptFrom(int listen_fd);

struct Packet {
  enum State { kNone, kWhole, kEnded } state = kNone;  // none is there; whole; no more will come
  std::vector<std::byte> bytes;
  std::vector<int> fds;  // the caller's
};
Packet receivePacket(int fd);
// False when it could not be sent as a whole, at once.
bool sendPacket(int fd, std::span<const std::byte> packet, std::span<const int> fds = {});

}  // namespace qgpu::exec
