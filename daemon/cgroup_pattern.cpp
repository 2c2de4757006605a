// SPDX-License-Identifier: GPL-2.0
#include "cgroup_pattern.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <string_view>

#include "cgroup.hpp"

namespace qgpu {

namespace {

constexpr size_t kPatternMax = 1024;
constexpr long kLevelsMax = 31;
constexpr std::string_view kCgroupMount = "/sys/fs/cgroup";

// Unless there is such a folder below the mount.
bool hasMount(const std::string &text) {
  if (!text.starts_with(std::string(kCgroupMount) + "/")) return false;
  struct stat status {};
  return stat((findCgroup2Mount() + std::string(kCgroupMount)).c_str(), &status) != 0 ||
         findCgroup2Mount().empty();
}

const char *componentMistake(std::string_view text) {
  for (size_t at = 1; at <= text.size();) {
    const size_t end = std::min(text.find('/', at), text.size());
    const std::string_view part = text.substr(at, end - at);
    if (part.empty()) return "has an empty component (no final / and no //)";
    if (part == "." || part == "..") return "must not have . or .. as a component";
    at = end + 1;
  }
  return "";
}

}  // namespace

std::string cgroupPatternMistake(const std::string &text) {
  if (text.empty() || text.front() != '/') return "must begin with / (the cgroup2 mount is meant)";
  if (text.size() > kPatternMax) return "is too long";
  if (text == "/") return "is every process: that is the tenant \"default\"";
  if (text.find('\0') != std::string::npos) return "has a zero byte";
  // The kernel looks no deeper for whose a process is.
  if (std::count(text.begin(), text.end(), '/') > kLevelsMax) return "is more than 31 levels deep";
  if (const std::string mistake = componentMistake(text); !mistake.empty()) return mistake;
  if (hasMount(text))
    return "begins with where cgroup2 is mounted: paths are below the mount, \"" +
           text.substr(kCgroupMount.size()) + "\" is meant";
  return "";
}

bool isGlob(const std::string &text) { return text.find_first_of("*?[") != std::string::npos; }

}  // namespace qgpu
