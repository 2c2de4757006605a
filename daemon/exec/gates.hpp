// SPDX-License-Identifier: GPL-2.0
// The gates file: which channels may be stopped by the executor, so that whoever outlives it can
// let them run again. A TSG is in it before it is stopped for the first time and until its process
// ends; enabling channels that run does nothing.
//
// Text, one TSG a line: pid, start time, client, and channel:token of each channel, hexadecimal
// but for the first two.
#pragma once

#include <string>
#include <vector>

#include "controls.hpp"
#include "proc.hpp"

namespace qgpu::exec {

struct GateEntry {
  ProcessId process;
  std::vector<GatedChannel> channels;  // all of one client

  bool operator==(const GateEntry &other) const;
};

std::string gatesPath(const std::string &run_dir, const std::string &uuid);

std::string formatGates(const std::vector<GateEntry> &entries);
// Lines that are cut off or malformed are left out.
std::vector<GateEntry> parseGates(const std::string &text);

// The file as a whole, by rename: a reader sees the former or the new one.
Result<void> writeGates(const std::string &path, const std::vector<GateEntry> &entries);
// An empty list when there is no file.
Result<std::vector<GateEntry>> readGates(const std::string &path);

// Lets everything in the list run whose process has not ended. Returns how many TSGs; the error of
// the last control that failed.
Result<size_t> releaseGates(Controls &controls, const std::vector<GateEntry> &entries);

}  // namespace qgpu::exec
