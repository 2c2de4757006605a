// SPDX-License-Identifier: GPL-2.0
// The process that controls a card, below the guard that outlives it.
#pragma once

#include <cstdint>
#include <string>

#include "cards.hpp"

namespace qgpu::exec {

struct WorkerOptions {
  std::string card;  // UUID or minor number
  std::string run_dir = "/run/qgpu";
  std::string state_dir = "/var/lib/qgpu";
  DriverChoice choice = DriverChoice::kExact;
  uint32_t restarts = 0;
};

// Exit statuses that the guard knows. After kWorkerRefused starting it again is no use.
constexpr int kWorkerStopped = 0, kWorkerRefused = 3;

// Until SIGTERM or SIGINT; then the card is as it was found. The descriptors are its guard's.
int runWorker(const WorkerOptions &options, int listen_fd, int pulse_fd);

}  // namespace qgpu::exec
