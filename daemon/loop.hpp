// SPDX-License-Identifier: GPL-2.0
// The daemon's one loop: descriptors and one timer. Handlers run in the caller's thread and must
// not block; they may add and remove descriptors, their own included. An exception of one ends
// nothing but that call: it is logged.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace qgpu {

class Loop {
 public:
  using Handler = std::function<void(uint32_t events)>;

  Loop();
  ~Loop();
  Loop(const Loop &) = delete;
  Loop &operator=(const Loop &) = delete;

  // The descriptor stays the caller's. events: EPOLL*; 0 = only errors and hang-ups.
  void add(int fd, uint32_t events, Handler handler);
  void change(int fd, uint32_t events);
  void remove(int fd);

  // wait() returns at this instant of CLOCK_MONOTONIC at the latest; 0 = at once.
  void armTimer(uint64_t at_ns);
  // Work that no descriptor asks for, with the same promise. Returns whether it was done.
  bool attempt(const std::string &what, const std::function<void()> &work);
  // Waits until something is ready and calls its handlers.
  void wait();
  // Calls the handlers of what is ready now.
  void poll() { dispatch(0); }

 private:
  struct Watch {
    int fd;
    Handler handler;
    uint64_t failures;
  };
  static void call(Watch &watch, uint32_t events);
  void dispatch(int timeout_ms);

  int epoll_fd_;
  int timer_fd_;
  uint64_t next_token_ = 1;
  // Tokens, not descriptors, are what epoll hands back: a descriptor may be reused within one
  // batch.
  std::map<uint64_t, std::shared_ptr<Watch>> watches_;
  std::map<int, uint64_t> tokens_;
  std::map<std::string, uint64_t> failures_;  // by what was attempted
};

}  // namespace qgpu
