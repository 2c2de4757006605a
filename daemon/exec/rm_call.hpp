// SPDX-License-Identifier: GPL-2.0
// One RM call: what came of it and how long it took. Used on the executor's own control node and
// on duplicates of tenants' ones alike.
#pragma once

#include <cstdint>
#include <string>

#include "rm_io.hpp"

namespace qgpu::exec {

// What the driver said. Neither errno nor status: done.
struct RmOutcome {
  int err = 0;          // of the ioctl: malformed, or the descriptor is none of the driver's
  uint32_t status = 0;  // the driver's
  uint64_t took_ns = 0;

  bool ok() const { return !err && !status; }
  // "SET_TIMESLICE: status 0x23 (no such client)"; of one that is not ok()
  std::string text(const std::string &what) const;
  // EACCES, ENOENT, ESRCH, EIO: what a caller may branch on
  Error error(const std::string &what) const;
};

// NVOS54. `params` may be null with no bytes.
RmOutcome rmControl(RmIo &io, int fd, uint32_t client, uint32_t object, uint32_t cmd, void *params,
                    uint32_t bytes);

template <class T>
RmOutcome rmControl(RmIo &io, int fd, uint32_t client, uint32_t object, uint32_t cmd, T &params) {
  return rmControl(io, fd, client, object, cmd, &params, sizeof(params));
}

// The clock of took_ns: CLOCK_MONOTONIC.
uint64_t monotonicNs();

}  // namespace qgpu::exec
