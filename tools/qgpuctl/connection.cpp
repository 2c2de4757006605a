// SPDX-License-Identifier: GPL-2.0
#include "connection.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "nesting.hpp"
#include "snapshot_json.hpp"

namespace qgpu::ctl {

namespace {

constexpr size_t kAnswerMax = 32 * 1024 * 1024;
constexpr int kDepthMax = 32;

using Steady = std::chrono::steady_clock;

// Until there is something to read; false when it is too late.
bool waitReadable(int fd, Steady::time_point until) {
  for (;;) {
    const auto left = std::chrono::ceil<Patience>(until - Steady::now());
    pollfd wait{fd, POLLIN, 0};
    const int ready = left.count() > 0 ? poll(&wait, 1, static_cast<int>(left.count())) : 0;
    if (ready >= 0 || errno != EINTR) return ready != 0;
  }
}

std::string secondsText(Patience patience) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g s", static_cast<double>(patience.count()) / 1000);
  return text;
}

// Of an answer that is no "ok". A member of another type throws.
Error refusalOf(const Json &answer) {
  Error error{EIO, "refused", ""};
  if (auto refusal = answer.find("error"); refusal != answer.end() && refusal->is_object()) {
    error.err = refusal->value("errno", EIO);
    error.sentence = refusal->value("sentence", "refused");
    error.item = refusal->value("item", "");
  }
  if (error.err <= 0) error.err = EIO;
  return error;
}

}  // namespace

Result<Connection> Connection::open(const std::string &path, Patience patience) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path))
    return Error{ENAMETOOLONG, "the socket's path is too long", path};
  memcpy(address.sun_path, path.c_str(), path.size());
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return Error{errno, strerror(errno), "socket"};
  Connection connection(fd, patience);
  timeval limit{patience.count() / 1000, patience.count() % 1000 * 1000};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  if (connect(fd, reinterpret_cast<sockaddr *>(&address), sizeof(address)) != 0) {
    if (errno == EACCES) return Error{EACCES, "this user may not speak to qgpud", path};
    if (errno == EAGAIN)
      return Error{ETIMEDOUT, "qgpud took no connection for " + secondsText(patience), path};
    return Error{ENOTCONN, std::string("qgpud does not answer: ") + strerror(errno), path};
  }
  return connection;
}

Connection::~Connection() {
  if (fd_ >= 0) close(fd_);
}

Connection::Connection(Connection &&other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      patience_(other.patience_),
      buffer_(std::move(other.buffer_)) {}

Result<std::string> Connection::readLine() {
  const Steady::time_point until = Steady::now() + patience_;
  for (;;) {
    if (size_t end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    if (buffer_.size() > kAnswerMax) return Error{EMSGSIZE, "qgpud's answer is too long", ""};
    if (!waitReadable(fd_, until))
      return Error{ETIMEDOUT, "qgpud did not answer within " + secondsText(patience_), ""};
    char chunk[65536];
    ssize_t got = recv(fd_, chunk, sizeof(chunk), MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) return Error{errno, strerror(errno), "control socket"};
    if (got == 0) return Error{ECONNRESET, "qgpud closed the connection", ""};
    buffer_.append(chunk, static_cast<size_t>(got));
  }
}

Result<Json> Connection::ask(const Json &request) {
  std::string line = request.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  for (size_t at = 0; at < line.size();) {
    ssize_t sent = send(fd_, line.data() + at, line.size() - at, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    // A refusal may be waiting although the daemon reads no more.
    if (sent < 0) break;
    at += static_cast<size_t>(sent);
  }
  return next();
}

Result<Json> Connection::next() {
  Result<std::string> line = readLine();
  if (!line) return line.error();
  const Error rubbish{EBADMSG, "qgpud's answer cannot be understood", ""};
  if (isTooDeep(*line, kDepthMax)) return rubbish;
  Json answer = Json::parse(*line, nullptr, false);
  if (!answer.is_object()) return rubbish;
  try {
    if (!answer.value("ok", true)) return refusalOf(answer);
  } catch (const Json::exception &) {
    return rubbish;
  }
  answer.erase("ok");
  return answer;
}

bool isUnreachable(const Error &error) {
  return error.err == ENOTCONN || error.err == EACCES || error.err == ETIMEDOUT ||
         error.err == ECONNRESET;
}

Result<Json> askDaemon(const std::string &socket, const Json &request) {
  auto connection = Connection::open(socket);
  if (!connection) return connection.error();
  return connection->ask(request);
}

Result<Json> changeByDaemon(const std::string &socket, const Json &request, Patience patience) {
  auto connection = Connection::open(socket, patience);
  if (!connection) return connection.error();
  auto answer = connection->ask(request);
  if (answer || (answer.error().err != ETIMEDOUT && answer.error().err != ECONNRESET))
    return answer;
  Error error = answer.error();
  error.sentence += "; whether the change is made is not known, qgpuctl status will say";
  return error;
}

Result<Json> statusFromKernel(netlink::Client &client) {
  auto cards = client.cards();
  if (!cards) return cards.error();
  auto tenants = client.tenants();
  if (!tenants) return tenants.error();
  Ledger ledger;
  // Counters are worth a status without them.
  if (auto samples = client.samples()) ledger.update(*samples, 0);
  Json list = Json::array();
  for (const CardInfo &info : *cards) {
    CardSnapshot snapshot{info, {}};
    for (const netlink::TenantOfCard &found : *tenants)
      if (found.card_index == info.index) snapshot.tenants.push_back(found.tenant);
    list.push_back(toJson(snapshot, nullptr, &ledger));
  }
  return Json{{"source", "kernel"}, {"cards", list}};
}

Result<Json> readStatus(const std::string &socket) {
  auto status = askDaemon(socket, {{"verb", "status"}});
  if (status) return status;
  const Error &daemon_error = status.error();
  if (!isUnreachable(daemon_error)) return status;
  auto wire = netlink::openWire(netlink::WireKind::kRequests);
  if (!wire) return wire.error();
  netlink::Client client(std::move(*wire));
  auto from_kernel = statusFromKernel(client);
  if (!from_kernel)
    return Error{daemon_error.err == EACCES ? ENOTCONN : daemon_error.err,
                 daemon_error.sentence + "; " + from_kernel.error().sentence, daemon_error.item};
  std::fprintf(stderr, "qgpuctl: %s: read from the kernel directly\n",
               daemon_error.sentence.c_str());
  return from_kernel;
}

}  // namespace qgpu::ctl
