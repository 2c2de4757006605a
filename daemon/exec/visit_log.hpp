// SPDX-License-Identifier: GPL-2.0
// Who was on the engine lately: a ring of the times on it that the core tells of, which under
// method rm have the trace's own edges. Filled turn by turn, read by serial; what is overwritten is
// lost, which the serials show.
#pragma once

#include <cstdint>
#include <vector>

#include "protocol.hpp"

namespace qgpu::exec {

class VisitLog {
 public:
  explicit VisitLog(uint64_t since_ns) : since_ns_(since_ns) {}

  // Half a megabyte: some seconds of a card that switches a thousand times in each.
  static constexpr size_t kSize = 16384;

  void add(const LogEntry &entry);
  // From this serial on, or from the oldest there is; as many as a reply takes. Behind the last
  // comes `ongoing`, who is on the engine now.
  Log read(uint64_t from_serial, const LogEntry &ongoing) const;

 private:
  std::vector<LogEntry> ring_ = std::vector<LogEntry>(kSize);
  uint64_t next_ = 0;  // serial
  uint64_t since_ns_;
};

}  // namespace qgpu::exec
