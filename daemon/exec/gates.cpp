// SPDX-License-Identifier: GPL-2.0
#include "gates.hpp"

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <sstream>

#include "text_file.hpp"

namespace qgpu::exec {

bool GateEntry::operator==(const GateEntry &other) const {
  if (process != other.process || channels.size() != other.channels.size()) return false;
  for (size_t i = 0; i < channels.size(); i++)
    if (channels[i].client != other.channels[i].client ||
        channels[i].channel != other.channels[i].channel ||
        channels[i].token != other.channels[i].token)
      return false;
  return true;
}

std::string gatesPath(const std::string &run_dir, const std::string &uuid) {
  return run_dir + "/" + uuid + ".gates";
}

std::string formatGates(const std::vector<GateEntry> &entries) {
  std::string out;
  char text[64];
  for (const GateEntry &entry : entries) {
    if (entry.channels.empty()) continue;
    std::snprintf(text, sizeof(text), "%d %" PRIu64 " %x", entry.process.pid,
                  entry.process.start_ticks, entry.channels[0].client);
    out += text;
    for (const GatedChannel &channel : entry.channels) {
      std::snprintf(text, sizeof(text), " %x:%x", channel.channel, channel.token);
      out += text;
    }
    out += " .\n";  // a line without its end was cut
  }
  return out;
}

std::vector<GateEntry> parseGates(const std::string &text) {
  std::vector<GateEntry> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    GateEntry entry;
    uint32_t client = 0;
    if (!(fields >> entry.process.pid >> entry.process.start_ticks >> std::hex >> client)) continue;
    std::string field;
    bool complete = false;
    while (fields >> field && !(complete = field == ".")) {
      GatedChannel channel{client, 0, 0};
      char rest = 0;
      if (std::sscanf(field.c_str(), "%x:%x%c", &channel.channel, &channel.token, &rest) != 2)
        break;
      entry.channels.push_back(channel);
    }
    if (complete && entry.process.pid > 0 && !entry.channels.empty())
      out.push_back(std::move(entry));
  }
  return out;
}

Result<void> writeGates(const std::string &path, const std::vector<GateEntry> &entries) {
  return replaceFile(path, formatGates(entries));
}

Result<std::vector<GateEntry>> readGates(const std::string &path) {
  const auto text = readTextFile(path);
  if (!text && text.error().err == ENOENT) return std::vector<GateEntry>{};
  if (!text) return text.error();
  return parseGates(*text);
}

Result<size_t> releaseGates(Controls &controls, const std::vector<GateEntry> &entries) {
  std::vector<GatedChannel> channels;
  size_t tsgs = 0;
  for (const GateEntry &entry : entries) {
    const auto now = processId(entry.process.pid);
    if (!now || *now != entry.process) continue;  // its channels went with it
    channels.insert(channels.end(), entry.channels.begin(), entry.channels.end());
    tsgs++;
  }
  if (channels.empty()) return size_t{0};
  const auto done = controls.enable(channels);
  controls.ring(channels);
  if (done) return tsgs;
  // One client that is gone meanwhile must not keep the others stopped.
  Result<size_t> out = tsgs;
  for (const GateEntry &entry : entries)
    if (const auto one = controls.enable(entry.channels); !one) out = one.error();
  return out;
}

}  // namespace qgpu::exec
