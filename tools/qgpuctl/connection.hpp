// SPDX-License-Identifier: GPL-2.0
// The daemon's control socket, and the kernel itself for those who only read while the daemon is
// dead.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "netlink/client.hpp"
#include "result.hpp"

namespace qgpu::ctl {

using Json = nlohmann::json;

// How long an answer is waited for: to what only reads, and to what the cards have to take.
using Patience = std::chrono::milliseconds;
constexpr Patience kReadPatience{5'000}, kChangePatience{20'000};

class Connection {
 public:
  // ENOTCONN when nobody answers there, EACCES when this user may not ask, ETIMEDOUT when there is
  // somebody who takes no connection.
  static Result<Connection> open(const std::string &path, Patience patience = kReadPatience);
  // Takes a connected socket.
  explicit Connection(int fd, Patience patience = kReadPatience) : fd_(fd), patience_(patience) {}
  ~Connection();
  Connection(Connection &&other) noexcept;
  Connection &operator=(Connection &&) = delete;

  // The daemon's answer without "ok", or its refusal as an Error.
  Result<Json> ask(const Json &request);
  // The next line; ETIMEDOUT when none is whole in time, ECONNRESET at the end.
  Result<Json> next();
  // For what is asked from now on.
  void setPatience(Patience patience) { patience_ = patience; }

 private:
  Result<std::string> readLine();

  int fd_;
  Patience patience_;
  std::string buffer_;
};

// Whether it is the daemon that cannot be had, so that the kernel may be asked.
bool isUnreachable(const Error &error);

// One question, one answer.
Result<Json> askDaemon(const std::string &socket, const Json &request);
// The same for a change: one that gets no answer may be in force all the same, which is said.
Result<Json> changeByDaemon(const std::string &socket, const Json &request,
                            Patience patience = kChangePatience);

// What `status` answers, read from the kernel: without what only the daemon knows.
Result<Json> statusFromKernel(netlink::Client &client);

// The status from the daemon, else from the kernel with a sentence on stderr that says so.
Result<Json> readStatus(const std::string &socket);

}  // namespace qgpu::ctl
