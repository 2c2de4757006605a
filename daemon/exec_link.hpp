// SPDX-License-Identifier: GPL-2.0
// One connection to a card's executor: packets out, packets in, and how long an answer has been
// owed. Never blocks longer than it is told to; knows nothing of plans.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "clock.hpp"
#include "exec/protocol.hpp"
#include "unique_fd.hpp"

namespace qgpu {

class ExecLink {
 public:
  ExecLink(std::string path, const Clock &clock) : path_(std::move(path)), clock_(clock) {}

  // Connects if it is not; the sentence says what is missing.
  Result<void> connect();
  // What was owed is not answered any more.
  void disconnect();
  bool connected() const { return static_cast<bool>(fd_); }
  int fd() const { return fd_.get(); }
  // Counts connections: another number is another descriptor, whatever its value.
  uint64_t connections() const { return connections_; }

  // A request whose header's serial was taken from nextSerial(); pass_fd goes along unless < 0.
  // EAGAIN: the executor does not read; any other error has ended the connection.
  Result<void> send(const std::vector<std::byte> &packet, int pass_fd = -1);
  uint32_t nextSerial() { return ++serial_ ? serial_ : ++serial_; }

  // One packet that is there, in order; empty: none. Valid until the next call. An error has ended
  // the connection.
  Result<std::span<const std::byte>> receive();
  // Waits at most until then for a packet to be there.
  bool waitReadable(uint64_t until_ns) const;

  // Since when the oldest request waits for its reply; 0 = none does.
  uint64_t owedSinceNs() const { return owed_.empty() ? 0 : owed_.front().sent_ns; }

 private:
  struct Owed {
    uint32_t serial;
    uint64_t sent_ns;
  };
  Result<void> noteReply(const exec::Header &header);

  std::string path_;
  const Clock &clock_;
  UniqueFd fd_;
  uint64_t connections_ = 0;
  uint32_t serial_ = 0;
  std::deque<Owed> owed_;
  std::vector<std::byte> buffer_;
};

}  // namespace qgpu
