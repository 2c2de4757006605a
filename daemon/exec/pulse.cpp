// SPDX-License-Identifier: GPL-2.0
#include "pulse.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace qgpu::exec {
namespace {

constexpr unsigned kSilentLooks = 5, kHungLooks = 35;

Error failed(const char *what) {
  return {
      errno, std::string("the worker's pulse cannot be ") + what + ": " + std::strerror(errno), {}};
}

}  // namespace

Result<std::unique_ptr<Pulse>> Pulse::map(UniqueFd fd) {
  static_assert(std::atomic<uint64_t>::is_always_lock_free);
  void *at = mmap(nullptr, sizeof(Counters), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (at == MAP_FAILED) return failed("mapped");
  // Zeros, as a fresh file has them, are counters at zero.
  return std::unique_ptr<Pulse>(new Pulse(std::move(fd), static_cast<Counters *>(at)));
}

Result<std::unique_ptr<Pulse>> Pulse::create() {
  UniqueFd fd(memfd_create("qgpu-pulse", MFD_CLOEXEC));
  if (!fd || ftruncate(fd.get(), sizeof(Counters))) return failed("made");
  return map(std::move(fd));
}

Result<std::unique_ptr<Pulse>> Pulse::attach(int fd) {
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  return map(UniqueFd(fd));
}

Pulse::~Pulse() { munmap(counters_, sizeof(Counters)); }

PulseWatch::Verdict PulseWatch::look(uint64_t beats) {
  silent_looks_ = beats && beats == std::exchange(beats_, beats) ? silent_looks_ + 1 : 0;
  if (silent_looks_ >= kHungLooks) return Verdict::kHung;
  return silent_looks_ >= kSilentLooks ? Verdict::kSilent : Verdict::kAlive;
}

}  // namespace qgpu::exec
