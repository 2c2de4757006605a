// SPDX-License-Identifier: GPL-2.0
#include "store.hpp"

#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <sstream>

#include "text_file.hpp"

namespace qgpu::exec {
namespace {

std::string hexadecimal(const std::vector<std::byte> &bytes) {
  static const char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const std::byte b : bytes) {
    out += kDigits[static_cast<unsigned>(b) >> 4];
    out += kDigits[static_cast<unsigned>(b) & 15];
  }
  return out;
}

std::vector<std::byte> bytesOf(const std::string &text) {
  std::vector<std::byte> out;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    unsigned value = 0;
    if (std::sscanf(text.substr(i, 2).c_str(), "%2x", &value) != 1) return {};
    out.push_back(static_cast<std::byte>(value));
  }
  return out;
}

}  // namespace

uint64_t Stored::foundUs(const ProcessId &id, uint32_t tsg) const {
  for (const StoredSlice &slice : slices)
    if (slice.id == id && slice.tsg == tsg) return slice.found_us;
  return 0;
}

std::string formatStored(const Stored &stored) {
  std::string out;
  char line[128];
  if (stored.plan) out += "plan " + hexadecimal(encode(*stored.plan)) + "\n";
  for (const StoredProcess &p : stored.processes) {
    std::snprintf(line, sizeof(line), "process %d %" PRIu64 " %" PRIu32 "\n", p.id.pid,
                  p.id.start_ticks, p.tenant_id);
    out += line;
  }
  for (const StoredSlice &s : stored.slices) {
    std::snprintf(line, sizeof(line), "slice %d %" PRIu64 " %" PRIx32 " %" PRIu64 "\n", s.id.pid,
                  s.id.start_ticks, s.tsg, s.found_us);
    out += line;
  }
  return out;
}

Stored parseStored(const std::string &text) {
  Stored out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    StoredProcess p;
    StoredSlice s;
    if (line.rfind("plan ", 0) == 0) {
      const auto bytes = bytesOf(line.substr(5));
      if (const auto plan = decodePlan(bytes)) out.plan = *plan;
    } else if (std::sscanf(line.c_str(), "process %d %" SCNu64 " %" SCNu32, &p.id.pid,
                           &p.id.start_ticks, &p.tenant_id) == 3) {
      out.processes.push_back(p);
    } else if (std::sscanf(line.c_str(), "slice %d %" SCNu64 " %" SCNx32 " %" SCNu64, &s.id.pid,
                           &s.id.start_ticks, &s.tsg, &s.found_us) == 4) {
      out.slices.push_back(s);
    }
  }
  return out;
}

Stored Store::load() const {
  const auto text = readTextFile(path_);
  return text ? parseStored(*text) : Stored{};
}

Result<void> Store::save(const Stored &stored) {
  std::string text = formatStored(stored);
  if (text == last_) return {};
  if (const auto done = replaceFile(path_, text); !done) return done;
  last_ = std::move(text);
  return {};
}

void Store::remove() {
  unlink(path_.c_str());
  last_.clear();
}

std::string storePath(const std::string &run_dir, const std::string &uuid) {
  return run_dir + "/" + uuid + ".exec";
}

}  // namespace qgpu::exec
