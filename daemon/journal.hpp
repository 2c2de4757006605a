// SPDX-License-Identifier: GPL-2.0
// Log lines with fields for the journal: QGPU_CARD and QGPU_TENANT say whom a line is about, so
// that `journalctl QGPU_TENANT=web` finds it; and a limit for what can happen all the time.
#pragma once

#include <spdlog/sinks/sink.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace qgpu {

// Whom the lines are about that are logged while this lives. They do not nest.
class LogAbout {
 public:
  // card: its index or uuid; empty: none. tenant: likewise.
  LogAbout(const std::string &card, const std::string &tenant);
  ~LogAbout();
  LogAbout(const LogAbout &) = delete;
  LogAbout &operator=(const LogAbout &) = delete;
};

// "KEY=value" each, as sd_journal_sendv() takes them.
using JournalFields = std::vector<std::string>;
std::shared_ptr<spdlog::sinks::sink> journalSink(
    std::function<void(const JournalFields &fields)> send);

// One line a minute for each key; the next says how many were left out.
class LogLimit {
 public:
  // Absent: not to be said now. Else how many of this key were not said since the last.
  std::optional<uint64_t> admit(const std::string &key, uint64_t now_ns);

 private:
  struct Said {
    uint64_t at_ns;
    uint64_t left_out;
  };
  std::map<std::string, Said> said_;
};

}  // namespace qgpu
