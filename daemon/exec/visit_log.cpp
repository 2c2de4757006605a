// SPDX-License-Identifier: GPL-2.0
#include "visit_log.hpp"

#include <algorithm>

namespace qgpu::exec {

void VisitLog::add(const LogEntry &entry) { ring_[next_++ % kSize] = entry; }

Log VisitLog::read(uint64_t from_serial, const LogEntry &ongoing) const {
  Log out{};
  out.head.status = makeStatus(nullptr);
  const uint64_t oldest = next_ - std::min<uint64_t>(next_, kSize);
  const uint64_t first = std::clamp(from_serial, oldest, next_);
  // Room for the one that is on.
  const uint64_t end = std::min(next_, first + kMaxLogEntries - 1);
  out.head.first_serial = first;
  out.head.next_serial = next_;
  out.head.since_ns = since_ns_;
  for (uint64_t serial = first; serial < end; serial++)
    out.entries.push_back(ring_[serial % kSize]);
  if (end == next_) out.entries.push_back(ongoing);
  return out;
}

}  // namespace qgpu::exec
