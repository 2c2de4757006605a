// SPDX-License-Identifier: GPL-2.0
// What a worker leaves for its successor: the plan, the processes with their tenants, and the
// slices that were found. In the run folder, so gone with the machine's uptime.
//
// Text: "plan <hexadecimal packet>", "process <pid> <start> <tenant>", "slice <pid> <start>
// <TSG handle> <us>"; a line that is malformed is left out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "proc.hpp"
#include "protocol.hpp"

namespace qgpu::exec {

struct StoredProcess {
  ProcessId id;
  uint32_t tenant_id = kNoTenant;
};

struct StoredSlice {
  ProcessId id;
  uint32_t tsg = 0;
  uint64_t found_us = 0;
};

struct Stored {
  std::optional<Plan> plan;
  std::vector<StoredProcess> processes;
  std::vector<StoredSlice> slices;

  // 0 = not known
  uint64_t foundUs(const ProcessId &id, uint32_t tsg) const;
};

std::string formatStored(const Stored &stored);
Stored parseStored(const std::string &text);

class Store {
 public:
  explicit Store(std::string path) : path_(std::move(path)) {}

  // Empty when there is nothing.
  Stored load() const;
  // Writes only when something differs from the last save().
  Result<void> save(const Stored &stored);
  void remove();

 private:
  std::string path_;
  std::string last_;
};

std::string storePath(const std::string &run_dir, const std::string &uuid);

}  // namespace qgpu::exec
