// SPDX-License-Identifier: GPL-2.0
// The guard: keeps a worker running, and lets run what a dead one had stopped. It holds a client
// of its own from the start, so that nothing has to be opened when it is needed.
#pragma once

#include <functional>
#include <string>

#include "controls.hpp"
#include "worker.hpp"

namespace qgpu::exec {

// Beside kWorkerStopped and kWorkerRefused: another guard has the card. Nothing was touched.
constexpr int kGuardSecond = 4;

// Until a signal, or until the worker says that it cannot work here. Returns the exit status.
int runGuard(const WorkerOptions &options);

// Lets run what the gates files of the run folder name, of one card or (empty) of all, and puts
// slices back that a dead worker left. For an administrator and for ExecStopPost. A card that a
// living guard has is left alone. Exit status.
int runRelease(const WorkerOptions &options);

}  // namespace qgpu::exec
