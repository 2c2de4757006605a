// SPDX-License-Identifier: GPL-2.0
// The control socket: one JSON object a line in, one a line out. Who may connect is the socket's
// mode (0660), who may change is the peer's uid as the kernel tells it. A connection that is slow,
// silent, greedy or hostile costs a bounded amount of memory and time and never holds up the loop.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "clock.hpp"
#include "instance_lock.hpp"
#include "loop.hpp"
#include "result.hpp"
#include "socket_file.hpp"
#include "unique_fd.hpp"

namespace qgpu {

struct Peer {
  uid_t uid = 0;
  pid_t pid = 0;

  bool isRoot() const { return uid == 0; }
};

struct ControlLimits {
  size_t line_bytes = 64 * 1024;
  int depth = 16;                   // nesting of a request
  size_t reply_bytes = 256 * 1024;  // unread replies before a connection's requests wait
  size_t all_reply_bytes = 16 * 1024 * 1024;
  size_t connections = 64;
  size_t connections_not_root = 48;         // so that root always gets in
  size_t connections_per_uid = 8;           // root is exempt
  uint32_t requests_per_second = 100;       // of one connection, also the burst
  uint64_t line_time_ns = 10 * kSecondNs;   // for an unfinished line, and for unread replies
  uint64_t idle_time_ns = 120 * kSecondNs;  // without a request; listeners of events are exempt
  // Without one for so long, it gives way to a newcomer that finds no room.
  uint64_t quiet_time_ns = 100 * kMillisecondNs;
};

class ControlServer {
 public:
  using Json = nlohmann::json;

  struct Answer {
    std::string line;        // without its newline
    bool subscribe = false;  // the connection hears events from now on
  };
  // Called for each well-formed request (an object).
  using Handler = std::function<Answer(const Json &request, const Peer &peer)>;

  ControlServer(Loop &loop, Clock &clock, Handler handler, ControlLimits limits = {});
  ~ControlServer();
  ControlServer(const ControlServer &) = delete;
  ControlServer &operator=(const ControlServer &) = delete;

  // Makes the folder if needed. EADDRINUSE: another qgpud has the socket. group: may be absent on
  // the system, then root alone can connect.
  Result<void> listen(const std::string &path, const std::string &group);
  // Takes a connected socket as if it had been accepted.
  void adopt(int fd, const Peer &peer);

  // One event to all who listen; one who does not keep up is disconnected.
  void publish(const std::string &line);

  // Closes what is over its time and lets the throttled go on; to be called at deadlineNs().
  void tick();
  uint64_t deadlineNs() const;

  size_t connections() const { return connections_.size(); }

 private:
  struct Connection;

  void accept();
  bool admit(const Peer &peer);
  bool makeRoom(const std::function<bool(const Peer &peer)> &may_go);
  void ready(int fd, uint32_t events);
  bool receive(Connection &connection);
  void handleLines(Connection &connection);
  void handleLine(Connection &connection, const std::string &line);
  Answer ask(const Json &request, const Peer &peer);
  bool takeToken(Connection &connection);
  void reply(Connection &connection, const std::string &line);
  bool flush(Connection &connection);
  void rearm(Connection &connection);
  void drop(int fd);

  Loop &loop_;
  Clock &clock_;
  Handler handler_;
  ControlLimits limits_;
  std::optional<InstanceLock> lock_;
  UniqueFd listen_fd_;
  SocketFile file_;            // goes before the socket
  uint64_t listen_at_ns_ = 0;  // again, after descriptors ran out; 0 = it listens
  size_t reply_bytes_ = 0;     // of all connections
  std::map<int, std::unique_ptr<Connection>> connections_;
};

// {"ok":false,"error":{"errno":...,"name":...,"sentence":...,"item":...}}
std::string errorLine(const Error &error);

}  // namespace qgpu
