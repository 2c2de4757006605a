// SPDX-License-Identifier: GPL-2.0
// GET /metrics over HTTP, in the daemon's one loop: libmicrohttpd without threads of its own. Who
// may connect is a matter of the address; nothing can be changed here. A connection that is slow or
// greedy costs a bounded amount of memory and never holds up the loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "clock.hpp"
#include "exposition.hpp"
#include "loop.hpp"
#include "result.hpp"

struct MHD_Daemon;

namespace qgpu {

class MetricsEndpoint {
 public:
  using Writer = std::function<std::string(ExpositionFormat format)>;

  // address: "127.0.0.1:9401", "[::1]:9401"; port 0 = any. EINVAL: it is no address; EADDRINUSE.
  static Result<std::unique_ptr<MetricsEndpoint>> listen(const std::string &address, Loop &loop,
                                                         Clock &clock, Writer writer);
  ~MetricsEndpoint();
  MetricsEndpoint(const MetricsEndpoint &) = delete;
  MetricsEndpoint &operator=(const MetricsEndpoint &) = delete;

  uint16_t port() const;
  // Goes on with what is under way and closes what is over its time; to be called at deadlineNs().
  void tick();
  uint64_t deadlineNs() const;

 private:
  MetricsEndpoint(Loop &loop, Clock &clock, Writer writer);
  friend struct MetricsRequest;

  Loop &loop_;
  Clock &clock_;
  Writer writer_;
  MHD_Daemon *server_ = nullptr;
  int epoll_fd_ = -1;
};

// Null when it is an address to listen at, else why not.
const char *listenAddressMistake(const std::string &address);

}  // namespace qgpu
