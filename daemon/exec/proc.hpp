// SPDX-License-Identifier: GPL-2.0
// Processes as /proc has them. A pid with its start time names a process for ever.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "../result.hpp"

namespace qgpu::exec {

struct ProcessId {
  pid_t pid = 0;
  uint64_t start_ticks = 0;  // field 22 of /proc/<pid>/stat

  auto operator<=>(const ProcessId &) const = default;
};

// ESRCH when there is no such process.
Result<ProcessId> processId(pid_t pid, const std::string &proc = "/proc");
// As the kernel has it, printable; "?" when it has ended.
std::string processName(pid_t pid, const std::string &proc = "/proc");
// Now, as a start time.
uint64_t ticksNow();
// The pid that a pidfd names; ESRCH when it has ended.
Result<pid_t> pidOf(int pidfd);
// A pidfd of exactly this process; ESRCH when it has ended, also if its pid is used again.
Result<int> openProcess(const ProcessId &id);

}  // namespace qgpu::exec
