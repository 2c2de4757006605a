// SPDX-License-Identifier: GPL-2.0
// The daemon's control socket, and the kernel itself for those who only read while the daemon is
// dead.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "netlink/client.hpp"
#include "result.hpp"

namespace qgpu::ctl {

using Json = nlohmann::json;

class Connection {
 public:
  // ENOTCONN when nobody answers there, EACCES when this user may not ask.
  static Result<Connection> open(const std::string &path);
  // Takes a connected socket.
  explicit Connection(int fd) : fd_(fd) {}
  ~Connection();
  Connection(Connection &&other) noexcept;
  Connection &operator=(Connection &&) = delete;

  // The daemon's answer without "ok", or its refusal as an Error.
  Result<Json> ask(const Json &request);
  // The next line, however long it takes; ECONNRESET at the end.
  Result<Json> next();

 private:
  Result<std::string> readLine();

  int fd_;
  std::string buffer_;
};

// One question, one answer.
Result<Json> askDaemon(const std::string &socket, const Json &request);

// What `status` answers, read from the kernel: without what only the daemon knows.
Result<Json> statusFromKernel(netlink::Client &client);

// The status from the daemon, else from the kernel with a sentence on stderr that says so.
Result<Json> readStatus(const std::string &socket);

}  // namespace qgpu::ctl
