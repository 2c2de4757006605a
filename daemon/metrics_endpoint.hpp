// SPDX-License-Identifier: GPL-2.0
// GET /metrics over HTTP, in the daemon's one loop: libmicrohttpd without threads of its own. Who
// may connect is a matter of the address; nothing can be changed here. A connection that is slow or
// greedy costs a bounded amount of memory, never holds up the loop and keeps nobody out: each has
// 2 s for a request's head and 5 s to take the answer, and where there are too many, of the host
// that has most of them the one that asks for nothing, else the one that stands still for longest,
// gives way to who comes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "clock.hpp"
#include "exposition.hpp"
#include "loop.hpp"
#include "result.hpp"

struct MHD_Connection;
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
  enum class Stage { kIdle, kHead, kAnswer };
  struct Caller {
    int fd;
    uint64_t host;  // its address, or the network's part of a longer one
    Stage stage;
    uint64_t from_ns, until_ns;  // of the stage
    bool is_closing;             // it is shut down; the server has not seen it yet
  };
  MetricsEndpoint(Loop &loop, Clock &clock, Writer writer);
  friend struct MetricsRequest;
  void begin(MHD_Connection *connection, int fd, uint64_t host);
  Caller *whoGivesWay(uint64_t to_host);
  void enter(MHD_Connection *connection, Stage stage);
  void closeOverdue();
  static void close(Caller &caller);

  Loop &loop_;
  Clock &clock_;
  Writer writer_;
  MHD_Daemon *server_ = nullptr;
  int epoll_fd_ = -1;
  std::map<MHD_Connection *, Caller> callers_;
};

// Null when it is an address to listen at, else why not.
const char *listenAddressMistake(const std::string &address);

}  // namespace qgpu
