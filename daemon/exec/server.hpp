// SPDX-License-Identifier: GPL-2.0
// The executor's end of its socket: one connection at a time, a newer one replaces the older.
#pragma once

#include <poll.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "executor.hpp"

namespace qgpu::exec {

class Server {
 public:
  // The listening socket stays the caller's.
  Server(int listen_fd, Executor &executor) : listen_fd_(listen_fd), executor_(executor) {}
  ~Server();
  Server(const Server &) = delete;
  Server &operator=(const Server &) = delete;

  // What to wait for; then what to do about it.
  std::vector<pollfd> polls() const;
  void handle(const std::vector<pollfd> &ready);
  void sendEvents();

 private:
  void accept();
  void read();
  void answer(std::span<const std::byte> packet, std::vector<int> &fds);
  void answerPlan(std::span<const std::byte> packet);
  void answerProcess(std::span<const std::byte> packet, std::vector<int> &fds);
  void send(const void *packet, size_t bytes);
  void drop();

  int listen_fd_;
  int fd_ = -1;
  bool greeted_ = false;
  Executor &executor_;
};

}  // namespace qgpu::exec
