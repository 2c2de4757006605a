// SPDX-License-Identifier: GPL-2.0
// Sockets, lines and bounds. What a request means is verbs.cpp's.
#include "control.hpp"

#include <fcntl.h>
#include <grp.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <nlohmann/json.hpp>
#include <vector>

#include "nesting.hpp"

namespace qgpu {

namespace {

using Json = nlohmann::json;

constexpr size_t kChunk = 16 * 1024;
constexpr int kAcceptsPerWake = 16;

Error systemError(const std::string &what, const std::string &item) {
  return Error{errno, what + ": " + strerror(errno), item};
}

}  // namespace

std::string errorLine(const Error &error) {
  Json reply = {{"ok", false},
                {"error",
                 {{"errno", error.err},
                  {"name", errnoName(error.err)},
                  {"sentence", error.sentence},
                  {"item", error.item}}}};
  return reply.dump(-1, ' ', false, Json::error_handler_t::replace);
}

struct ControlServer::Connection {
  int fd;
  Peer peer;
  std::string in;
  std::string out;
  bool subscribed = false;
  bool closing = false;      // after what is in out
  bool peer_closed = false;  // nothing more comes in
  uint32_t tokens = 0;
  uint64_t tokens_at_ns = 0;
  uint64_t request_at_ns = 0;   // of the last whole line, or the start
  uint64_t progress_at_ns = 0;  // when the unfinished line began, or out last moved
  bool throttled = false;
};

ControlServer::ControlServer(Loop &loop, Clock &clock, Handler handler, ControlLimits limits)
    : loop_(loop), clock_(clock), handler_(std::move(handler)), limits_(limits) {}

ControlServer::~ControlServer() {
  while (!connections_.empty()) drop(connections_.begin()->first);
  if (listen_fd_) loop_.remove(listen_fd_.get());
}

Result<void> ControlServer::listen(const std::string &path, const std::string &group) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path))
    return Error{ENAMETOOLONG, "the control socket's path is too long", path};
  memcpy(address.sun_path, path.c_str(), path.size());

  // The lock tells a living daemon from a socket that a killed one left behind.
  auto lock = InstanceLock::take(path + ".lock", "another qgpud has this control socket");
  if (!lock && (lock.error().err == EBUSY || lock.error().err == EAGAIN))
    return Error{EADDRINUSE, lock.error().sentence, path};
  if (!lock) return lock.error();
  unlink(path.c_str());

  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return systemError("cannot make the control socket", path);
  mode_t before = umask(0177);
  int bound = bind(fd.get(), reinterpret_cast<sockaddr *>(&address), sizeof(address));
  umask(before);
  if (bound != 0) return systemError("cannot make the control socket", path);
  SocketFile file(path);
  const struct group *entry = group.empty() ? nullptr : getgrnam(group.c_str());
  if (geteuid() == 0 && chown(path.c_str(), 0, entry ? entry->gr_gid : 0) != 0)
    return systemError("cannot give the control socket to its group", path);
  chmod(path.c_str(), 0660);
  if (::listen(fd.get(), 16) != 0) return systemError("cannot listen on the control socket", path);

  lock_ = std::move(*lock);
  listen_fd_ = std::move(fd);
  file_ = std::move(file);
  loop_.add(listen_fd_.get(), EPOLLIN, [this](uint32_t) { accept(); });
  return {};
}

bool ControlServer::admit(const Peer &peer) {
  size_t not_root = 0;
  size_t same = 0;
  for (const auto &[fd, connection] : connections_) {
    if (!connection->peer.isRoot()) ++not_root;
    if (connection->peer.uid == peer.uid) ++same;
  }
  if (!peer.isRoot() && same >= limits_.connections_per_uid)
    return makeRoom([&](const Peer &other) { return other.uid == peer.uid; });
  if (!peer.isRoot() && not_root >= limits_.connections_not_root)
    return makeRoom([](const Peer &other) { return !other.isRoot(); });
  return connections_.size() < limits_.connections || makeRoom([](const Peer &) { return true; });
}

// The one that has asked nothing for longest goes, if nothing is owed to it and it was quiet for
// long enough to have asked.
bool ControlServer::makeRoom(const std::function<bool(const Peer &peer)> &may_go) {
  const uint64_t now_ns = clock_.nowNs();
  Connection *oldest = nullptr;
  for (const auto &[fd, connection] : connections_) {
    const bool is_quiet = !connection->subscribed && !connection->throttled &&
                          connection->out.empty() &&
                          now_ns - connection->request_at_ns >= limits_.quiet_time_ns;
    if (!is_quiet || !may_go(connection->peer)) continue;
    if (!oldest || connection->request_at_ns < oldest->request_at_ns) oldest = connection.get();
  }
  if (!oldest) return false;
  reply(*oldest, errorLine({EBUSY, "gave way to another connection: nothing was asked", ""}));
  flush(*oldest);
  drop(oldest->fd);
  return true;
}

void ControlServer::accept() {
  for (int i = 0; i < kAcceptsPerWake; ++i) {
    int fd = accept4(listen_fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      // Who waits to be accepted would wake the loop for ever.
      if (errno != EMFILE && errno != ENFILE) return;
      listen_at_ns_ = clock_.nowNs() + kSecondNs;
      loop_.change(listen_fd_.get(), 0);
      return;
    }
    ucred credentials{};
    socklen_t size = sizeof(credentials);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
      close(fd);
      continue;
    }
    adopt(fd, Peer{credentials.uid, credentials.pid});
  }
}

void ControlServer::adopt(int fd, const Peer &peer) {
  if (!admit(peer)) {
    std::string line = errorLine({EBUSY, "too many connections to the control socket", ""}) + "\n";
    (void)!send(fd, line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    close(fd);
    return;
  }
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  auto connection = std::make_unique<Connection>();
  connection->fd = fd;
  connection->peer = peer;
  connection->tokens = limits_.requests_per_second;
  connection->tokens_at_ns = connection->request_at_ns = connection->progress_at_ns =
      clock_.nowNs();
  connections_[fd] = std::move(connection);
  loop_.add(fd, EPOLLIN, [this, fd](uint32_t events) { ready(fd, events); });
}

void ControlServer::drop(int fd) {
  auto at = connections_.find(fd);
  if (at == connections_.end()) return;
  reply_bytes_ -= at->second->out.size();
  connections_.erase(at);
  loop_.remove(fd);
  close(fd);
}

void ControlServer::ready(int fd, uint32_t events) {
  Connection &connection = *connections_.at(fd);
  bool alive = true;
  if (events & EPOLLOUT) alive = flush(connection);
  if (alive && (events & EPOLLIN)) alive = receive(connection);
  if (alive && (events & (EPOLLERR | EPOLLHUP)) && !(events & EPOLLIN)) alive = false;
  if (!alive) {
    drop(fd);
    return;
  }
  // Lines that waited for room go on as long as the replies drain; the tokens bound it.
  bool more = true;
  while (more) {
    size_t before = connection.in.size();
    handleLines(connection);
    if (!flush(connection)) {
      drop(fd);
      return;
    }
    more = connection.in.size() < before && !connection.closing;
  }
  bool done = connection.closing || connection.peer_closed;
  if (done && connection.out.empty() && !connection.throttled)
    drop(fd);
  else
    rearm(connection);
}

// One read a wake-up: a fast writer shares the loop with all others.
bool ControlServer::receive(Connection &connection) {
  char chunk[kChunk];
  ssize_t got = recv(connection.fd, chunk, sizeof(chunk), 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) {
    connection.peer_closed = true;
    return true;
  }
  if (connection.in.empty()) connection.progress_at_ns = clock_.nowNs();
  connection.in.append(chunk, static_cast<size_t>(got));
  return true;
}

bool ControlServer::takeToken(Connection &connection) {
  uint64_t now_ns = clock_.nowNs();
  if (now_ns - connection.tokens_at_ns >= kSecondNs) {
    connection.tokens = limits_.requests_per_second;
    connection.tokens_at_ns = now_ns;
  }
  connection.throttled = connection.tokens == 0;
  if (connection.throttled) return false;
  --connection.tokens;
  return true;
}

void ControlServer::handleLines(Connection &connection) {
  size_t at = 0;
  while (!connection.closing) {
    size_t end = connection.in.find('\n', at);
    size_t length = (end == std::string::npos ? connection.in.size() : end) - at;
    if (length > limits_.line_bytes) {
      reply(connection,
            errorLine({EMSGSIZE,
                       "a request is longer than " + std::to_string(limits_.line_bytes) + " bytes",
                       ""}));
      connection.closing = true;
      break;
    }
    if (end == std::string::npos) break;
    if (connection.out.size() > limits_.reply_bytes) break;
    if (!takeToken(connection)) break;
    connection.request_at_ns = clock_.nowNs();
    handleLine(connection, connection.in.substr(at, length));
    at = end + 1;
    connection.progress_at_ns = clock_.nowNs();
  }
  connection.in.erase(0, at);
}

void ControlServer::handleLine(Connection &connection, const std::string &line) {
  if (line.find_first_not_of(" \t\r") == std::string::npos) return;
  if (reply_bytes_ > limits_.all_reply_bytes)
    return reply(connection, errorLine({EBUSY, "too many replies are not read yet", ""}));
  if (isTooDeep(line, limits_.depth))
    return reply(connection, errorLine({EINVAL, "a request is nested too deeply", ""}));
  Json request = Json::parse(line, nullptr, false);
  if (request.is_discarded() || !request.is_object())
    return reply(connection, errorLine({EINVAL, "a request is one JSON object a line", ""}));
  Answer answer = ask(request, connection.peer);
  if (answer.subscribe) connection.subscribed = true;
  reply(connection, answer.line);
}

// A request that fails, fails alone: who asked is told, and the others are served.
ControlServer::Answer ControlServer::ask(const Json &request, const Peer &peer) {
  try {
    return handler_(request, peer);
  } catch (const std::exception &error) {
    spdlog::error("a request is left undone: {}", error.what());
    return {errorLine({EIO, std::string("the request is left undone: ") + error.what(), ""}),
            false};
  }
}

void ControlServer::reply(Connection &connection, const std::string &line) {
  if (connection.out.empty()) connection.progress_at_ns = clock_.nowNs();
  connection.out += line;
  connection.out += '\n';
  reply_bytes_ += line.size() + 1;
}

// False when the connection is broken.
bool ControlServer::flush(Connection &connection) {
  while (!connection.out.empty()) {
    ssize_t sent = send(connection.fd, connection.out.data(), connection.out.size(),
                        MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno == EAGAIN;
    connection.out.erase(0, static_cast<size_t>(sent));
    reply_bytes_ -= static_cast<size_t>(sent);
    connection.progress_at_ns = clock_.nowNs();
  }
  return true;
}

void ControlServer::rearm(Connection &connection) {
  uint32_t events = 0;
  bool full = connection.out.size() > limits_.reply_bytes;
  if (!full && !connection.throttled && !connection.closing && !connection.peer_closed)
    events |= EPOLLIN;
  if (!connection.out.empty()) events |= EPOLLOUT;
  loop_.change(connection.fd, events);
}

void ControlServer::publish(const std::string &line) {
  std::vector<int> gone;
  for (auto &[fd, connection] : connections_) {
    if (!connection->subscribed) continue;
    reply(*connection, line);
    if (!flush(*connection) || connection->out.size() > limits_.reply_bytes)
      gone.push_back(fd);
    else
      rearm(*connection);
  }
  for (int fd : gone) drop(fd);
}

void ControlServer::tick() {
  uint64_t now_ns = clock_.nowNs();
  if (listen_at_ns_ && now_ns >= listen_at_ns_) {
    listen_at_ns_ = 0;
    loop_.change(listen_fd_.get(), EPOLLIN);
  }
  std::vector<int> late, resumed;
  for (auto &[fd, connection] : connections_) {
    bool waits = !connection->out.empty() || (!connection->in.empty() && !connection->throttled);
    bool idle =
        !connection->subscribed && now_ns - connection->request_at_ns >= limits_.idle_time_ns;
    if (idle || (waits && now_ns - connection->progress_at_ns >= limits_.line_time_ns))
      late.push_back(fd);
    else if (connection->throttled && now_ns - connection->tokens_at_ns >= kSecondNs)
      resumed.push_back(fd);
  }
  for (int fd : late) drop(fd);
  for (int fd : resumed) ready(fd, 0);
}

uint64_t ControlServer::deadlineNs() const {
  uint64_t at_ns = listen_at_ns_ ? listen_at_ns_ : UINT64_MAX;
  for (const auto &[fd, connection] : connections_) {
    if (connection->throttled) at_ns = std::min(at_ns, connection->tokens_at_ns + kSecondNs);
    if (!connection->in.empty() || !connection->out.empty())
      at_ns = std::min(at_ns, connection->progress_at_ns + limits_.line_time_ns);
    if (!connection->subscribed)
      at_ns = std::min(at_ns, connection->request_at_ns + limits_.idle_time_ns);
  }
  return at_ns;
}

}  // namespace qgpu
