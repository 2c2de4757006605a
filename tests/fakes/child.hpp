// SPDX-License-Identifier: GPL-2.0
// A process that does nothing, gone with the test: something for a pidfd to name.
#pragma once

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace qgpu::fakes {

class Child {
 public:
  Child() : pid_(fork()) {
    if (pid_ < 0) std::abort();
    if (pid_) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // also when the test is killed
    for (;;) pause();
  }
  ~Child() { end(); }
  Child(const Child &) = delete;
  Child &operator=(const Child &) = delete;

  pid_t pid() const { return pid_; }
  // A fresh one, the caller's.
  int pidfd() const { return static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)); }
  void end() {
    if (ended_) return;
    ended_ = true;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_;
  bool ended_ = false;
};

}  // namespace qgpu::fakes
