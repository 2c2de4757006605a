// SPDX-License-Identifier: GPL-2.0
#include "proc.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>
#include <utility>

#include "../printable.hpp"

namespace qgpu::exec {
namespace {

Error gone(pid_t pid) {
  return {ESRCH, "process " + std::to_string(pid) + " has ended", std::to_string(pid)};
}

}  // namespace

Result<ProcessId> processId(pid_t pid, const std::string &proc) {
  std::ifstream file(proc + "/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return gone(pid);
  // The second field is the name in parentheses and may contain anything.
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return gone(pid);
  std::istringstream rest(line.substr(name_end + 1));
  std::string field;
  for (int number = 3; number <= 22; number++)
    if (!(rest >> field)) return gone(pid);
  return ProcessId{pid, std::strtoull(field.c_str(), nullptr, 10)};
}

std::string processName(pid_t pid, const std::string &proc) {
  std::ifstream file(proc + "/" + std::to_string(pid) + "/comm");
  std::string name;
  return std::getline(file, name) ? printable(std::move(name)) : "?";
}

uint64_t ticksNow() {
  timespec t{};
  clock_gettime(CLOCK_BOOTTIME, &t);
  const auto rate = static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  return static_cast<uint64_t>(t.tv_sec) * rate +
         static_cast<uint64_t>(t.tv_nsec) * rate / 1'000'000'000;
}

Result<pid_t> pidOf(int pidfd) {
  std::ifstream file("/proc/self/fdinfo/" + std::to_string(pidfd));
  std::string line;
  while (std::getline(file, line)) {
    int pid = 0;
    if (std::sscanf(line.c_str(), "Pid: %d", &pid) == 1) {
      if (pid > 0) return static_cast<pid_t>(pid);
      return gone(pid);
    }
  }
  return Error{EBADF, "the descriptor names no process", {}};
}

Result<int> openProcess(const ProcessId &id) {
  const long pidfd = syscall(SYS_pidfd_open, id.pid, 0);
  if (pidfd < 0) {
    if (errno == ESRCH) return gone(id.pid);
    return Error{errno, std::string("cannot open the process: ") + std::strerror(errno), {}};
  }
  const auto now = processId(id.pid);
  if (now && *now == id) return static_cast<int>(pidfd);
  close(static_cast<int>(pidfd));
  return gone(id.pid);
}

}  // namespace qgpu::exec
