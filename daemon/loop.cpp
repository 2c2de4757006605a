// SPDX-License-Identifier: GPL-2.0
#include "loop.hpp"

#include <spdlog/spdlog.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <bit>
#include <cassert>
#include <cerrno>
#include <exception>
#include <system_error>

#include "clock.hpp"

namespace qgpu {

Loop::Loop()
    : epoll_fd_(epoll_create1(EPOLL_CLOEXEC)),
      timer_fd_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
  if (epoll_fd_ < 0 || timer_fd_ < 0)
    throw std::system_error(errno, std::generic_category(), "cannot make the event loop");
  add(timer_fd_, EPOLLIN, [this](uint32_t) {
    uint64_t expirations;
    (void)!read(timer_fd_, &expirations, sizeof(expirations));
  });
}

Loop::~Loop() {
  close(timer_fd_);
  close(epoll_fd_);
}

void Loop::add(int fd, uint32_t events, Handler handler) {
  assert(!tokens_.count(fd));
  uint64_t token = next_token_++;
  epoll_event event{};
  event.events = events;
  event.data.u64 = token;
  if (epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot watch a descriptor");
  tokens_[fd] = token;
  watches_[token] = std::make_shared<Watch>(Watch{fd, std::move(handler), 0});
}

void Loop::change(int fd, uint32_t events) {
  auto token = tokens_.find(fd);
  if (token == tokens_.end()) return;
  epoll_event event{};
  event.events = events;
  event.data.u64 = token->second;
  epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, fd, &event);
}

void Loop::remove(int fd) {
  auto token = tokens_.find(fd);
  if (token == tokens_.end()) return;
  epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr);
  watches_.erase(token->second);
  tokens_.erase(token);
}

void Loop::armTimer(uint64_t at_ns) {
  // An all-zero time would switch the timer off.
  if (at_ns == 0) at_ns = 1;
  itimerspec when{};
  when.it_value.tv_sec = static_cast<time_t>(at_ns / kSecondNs);
  when.it_value.tv_nsec = static_cast<long>(at_ns % kSecondNs);
  timerfd_settime(timer_fd_, TFD_TIMER_ABSTIME, &when, nullptr);
}

// A handler that fails, fails one message: the others go on. Its first failures are told, then ever
// fewer of them.
void Loop::call(Watch &watch, uint32_t events) {
  try {
    watch.handler(events);
  } catch (const std::exception &error) {
    if (std::has_single_bit(++watch.failures))
      spdlog::error("what came on descriptor {} is left undone: {} (failures so far: {})", watch.fd,
                    error.what(), watch.failures);
  }
}

bool Loop::attempt(const std::string &what, const std::function<void()> &work) {
  try {
    work();
    return true;
  } catch (const std::exception &error) {
    const uint64_t failures = ++failures_[what];
    if (std::has_single_bit(failures))
      spdlog::error("{} is left undone: {} (failures so far: {})", what, error.what(), failures);
    return false;
  }
}

void Loop::wait() { dispatch(-1); }

void Loop::dispatch(int timeout_ms) {
  epoll_event events[32];
  int count = epoll_wait(epoll_fd_, events, 32, timeout_ms);
  for (int i = 0; i < count; ++i) {
    auto found = watches_.find(events[i].data.u64);
    if (found == watches_.end()) continue;
    std::shared_ptr<Watch> watch = found->second;
    call(*watch, events[i].events);
  }
}

}  // namespace qgpu
