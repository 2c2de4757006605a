// SPDX-License-Identifier: GPL-2.0
// The executor's socket for `qgpuctl calibrate`: one connection at a time, a second one is turned
// away. What a connection asked for ends with it.
#pragma once

#include <poll.h>

#include <string>
#include <vector>

#include "../socket_file.hpp"
#include "../unique_fd.hpp"
#include "executor.hpp"
#include "packet_socket.hpp"

namespace qgpu::exec {

class CalibrationServer {
 public:
  // Without the socket the executor does all else: then nothing is ever ready.
  CalibrationServer(const std::string &path, Executor &executor);
  ~CalibrationServer();

  std::vector<pollfd> polls() const;
  void handle(const std::vector<pollfd> &ready);
  // Sends what has been measured meanwhile.
  void sendResult();

 private:
  void read();
  void answer(const Packet &packet);
  void reply(Type type, const Error *error, const Measured &measured = {});
  void drop();

  UniqueFd listen_fd_, fd_;
  SocketFile file_;  // goes before the socket
  Executor &executor_;
  uint32_t serial_ = 0;  // of what is being measured
};

}  // namespace qgpu::exec
