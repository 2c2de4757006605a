// SPDX-License-Identifier: GPL-2.0
// The only file that knows libmicrohttpd.
#include "metrics_endpoint.hpp"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <exception>
#include <optional>
#include <tuple>

namespace qgpu {

namespace {

// The server may have more of them, for as long as it takes it to see that some are shut down.
constexpr size_t kConnections = 16;
constexpr unsigned kConnectionsOfServer = 4 * kConnections, kIdleSeconds = 10;
constexpr size_t kConnectionBytes = 32 * 1024;
constexpr uint64_t kHeadNs = 2 * kSecondNs, kAnswerNs = 5 * kSecondNs;

union Address {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

std::optional<Address> addressOf(const std::string &text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  uint16_t port = 0;
  const char *end = text.data() + text.size();
  auto read = std::from_chars(text.data() + colon + 1, end, port);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  std::string host = text.substr(0, colon);
  Address address{};
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    address.v6.sin6_family = AF_INET6;
    address.v6.sin6_port = htons(port);
    host = host.substr(1, host.size() - 2);
    return inet_pton(AF_INET6, host.c_str(), &address.v6.sin6_addr) == 1 ? std::optional(address)
                                                                         : std::nullopt;
  }
  address.v4.sin_family = AF_INET;
  address.v4.sin_port = htons(port);
  return inet_pton(AF_INET, host.c_str(), &address.v4.sin_addr) == 1 ? std::optional(address)
                                                                     : std::nullopt;
}

// A host may use all IPv6 addresses of its network, so that counts as one.
uint64_t hostOf(const sockaddr &address) {
  uint64_t host = 0;
  if (address.sa_family == AF_INET6)
    memcpy(&host, &reinterpret_cast<const sockaddr_in6 &>(address).sin6_addr, sizeof(host));
  else if (address.sa_family == AF_INET)
    host = reinterpret_cast<const sockaddr_in &>(address).sin_addr.s_addr;
  return host;
}

MHD_Result respond(MHD_Connection *connection, unsigned status, const std::string &body,
                   const char *type) {
  MHD_Response *response = MHD_create_response_from_buffer(
      body.size(), const_cast<char *>(body.data()), MHD_RESPMEM_MUST_COPY);
  if (!response) return MHD_NO;
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
  if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
    MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
  const MHD_Result queued = MHD_queue_response(connection, status, response);
  MHD_destroy_response(response);
  return queued;
}

}  // namespace

struct MetricsRequest {
  static void noteConnection(void *self, MHD_Connection *connection, void **,
                             MHD_ConnectionNotificationCode code) {
    auto &endpoint = *static_cast<MetricsEndpoint *>(self);
    if (code == MHD_CONNECTION_NOTIFY_CLOSED)
      endpoint.callers_.erase(connection);
    else
      endpoint.begin(
          connection,
          MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd,
          hostOf(*MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)
                      ->client_addr));
  }

  static void noteAnswered(void *self, MHD_Connection *connection, void **,
                           MHD_RequestTerminationCode) {
    static_cast<MetricsEndpoint *>(self)->enter(connection, MetricsEndpoint::Stage::kIdle);
  }

  static MHD_Result handle(void *self, MHD_Connection *connection, const char *url,
                           const char *method, const char *, const char *, size_t *upload_size,
                           void **seen) {
    // Called with the head first, then with the body: answered once that is over.
    static char mark;
    if (!*seen) {
      *seen = &mark;
      static_cast<MetricsEndpoint *>(self)->enter(connection, MetricsEndpoint::Stage::kAnswer);
      return MHD_YES;
    }
    if (*upload_size) {
      *upload_size = 0;
      return MHD_YES;
    }
    constexpr const char *kPlain = "text/plain; charset=utf-8";
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
      return respond(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET is answered\n", kPlain);
    if (strcmp(url, "/metrics") != 0)
      return respond(connection, MHD_HTTP_NOT_FOUND, "qgpud: the metrics are at /metrics\n",
                     kPlain);
    return metrics(*static_cast<MetricsEndpoint *>(self), connection);
  }

 private:
  static MHD_Result metrics(MetricsEndpoint &endpoint, MHD_Connection *connection) {
    const char *accept =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
    const bool is_open = accept && strstr(accept, "application/openmetrics-text");
    try {
      return respond(connection, MHD_HTTP_OK,
                     endpoint.writer_(is_open ? ExpositionFormat::kOpenMetrics
                                              : ExpositionFormat::kPrometheusText),
                     is_open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                             : "text/plain; version=0.0.4; charset=utf-8");
    } catch (const std::exception &error) {
      spdlog::error("a scrape is left unanswered: {}", error.what());
      return MHD_NO;  // C is above us
    }
  }
};

const char *listenAddressMistake(const std::string &address) {
  return addressOf(address) ? nullptr : "must be ADDRESS:PORT in numbers, as in 127.0.0.1:9401";
}

MetricsEndpoint::MetricsEndpoint(Loop &loop, Clock &clock, Writer writer)
    : loop_(loop), clock_(clock), writer_(std::move(writer)) {}

Result<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::listen(const std::string &text,
                                                                 Loop &loop, Clock &clock,
                                                                 Writer writer) {
  const auto address = addressOf(text);
  if (!address) return Error{EINVAL, listenAddressMistake(text), text};
  std::unique_ptr<MetricsEndpoint> endpoint(new MetricsEndpoint(loop, clock, std::move(writer)));
  unsigned flags = MHD_USE_EPOLL;
  if (address->any.sa_family == AF_INET6) flags |= MHD_USE_IPv6;
  errno = 0;
  endpoint->server_ = MHD_start_daemon(
      flags, 0, nullptr, nullptr, &MetricsRequest::handle, endpoint.get(), MHD_OPTION_SOCK_ADDR,
      &address->any, MHD_OPTION_CONNECTION_LIMIT, kConnectionsOfServer,
      MHD_OPTION_CONNECTION_TIMEOUT, kIdleSeconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
      kConnectionBytes, MHD_OPTION_NOTIFY_CONNECTION, &MetricsRequest::noteConnection,
      endpoint.get(), MHD_OPTION_NOTIFY_COMPLETED, &MetricsRequest::noteAnswered, endpoint.get(),
      MHD_OPTION_END);
  if (!endpoint->server_) {
    const int err = errno ? errno : EIO;
    return Error{err, std::string("cannot listen for scrapes: ") + strerror(err), text};
  }
  endpoint->epoll_fd_ = MHD_get_daemon_info(endpoint->server_, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
  MetricsEndpoint *self = endpoint.get();
  loop.add(endpoint->epoll_fd_, EPOLLIN, [self](uint32_t) { self->tick(); });
  return endpoint;
}

MetricsEndpoint::~MetricsEndpoint() {
  if (epoll_fd_ >= 0) loop_.remove(epoll_fd_);
  if (server_) MHD_stop_daemon(server_);
}

uint16_t MetricsEndpoint::port() const {
  return MHD_get_daemon_info(server_, MHD_DAEMON_INFO_BIND_PORT)->port;
}

// The server closes it when it looks at it next, which this makes it do.
void MetricsEndpoint::close(Caller &caller) {
  shutdown(caller.fd, SHUT_RDWR);
  caller.is_closing = true;
}

// Null: there is room.
MetricsEndpoint::Caller *MetricsEndpoint::whoGivesWay(uint64_t to_host) {
  std::map<uint64_t, size_t> places;
  size_t open = 0;
  for (const auto &[connection, caller] : callers_) {
    places[caller.host] += !caller.is_closing;
    open += !caller.is_closing;
  }
  if (open < kConnections) return nullptr;
  places[to_host]++;
  // Who asks and reads at once stands nowhere for longer than those who do not.
  const auto rank = [&](const Caller &caller) {
    return std::tuple(places[caller.host], caller.stage == Stage::kIdle, ~caller.from_ns);
  };
  Caller *first = nullptr;
  for (auto &[connection, caller] : callers_)
    if (!caller.is_closing && (!first || rank(caller) > rank(*first))) first = &caller;
  return first;
}

// Whoever comes has a place.
void MetricsEndpoint::begin(MHD_Connection *connection, int fd, uint64_t host) {
  if (Caller *caller = whoGivesWay(host)) close(*caller);
  const uint64_t now_ns = clock_.nowNs();
  callers_[connection] = {fd, host, Stage::kHead, now_ns, now_ns + kHeadNs, false};
}

void MetricsEndpoint::enter(MHD_Connection *connection, Stage stage) {
  Caller &caller = callers_.at(connection);
  caller.stage = stage;
  caller.from_ns = clock_.nowNs();
  caller.until_ns =
      caller.from_ns + (stage == Stage::kAnswer ? kAnswerNs : kIdleSeconds * kSecondNs);
}

void MetricsEndpoint::closeOverdue() {
  const uint64_t now_ns = clock_.nowNs();
  for (auto &[connection, caller] : callers_)
    if (!caller.is_closing && caller.until_ns <= now_ns) close(caller);
}

void MetricsEndpoint::tick() {
  closeOverdue();
  MHD_run(server_);
}

uint64_t MetricsEndpoint::deadlineNs() const {
  uint64_t at_ns = UINT64_MAX;
  for (const auto &[connection, caller] : callers_)
    if (!caller.is_closing) at_ns = std::min(at_ns, caller.until_ns);
  MHD_UNSIGNED_LONG_LONG left_ms = 0;
  if (MHD_get_timeout(server_, &left_ms) != MHD_YES) return at_ns;
  return std::min<uint64_t>(at_ns, clock_.nowNs() + left_ms * kMillisecondNs);
}

}  // namespace qgpu
