// SPDX-License-Identifier: GPL-2.0
// The only file that looks into the cgroup2 mount. A cgroup's id is the inode number of its
// directory.
#include "cgroup.hpp"

#include <dirent.h>
#include <fnmatch.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>

#include "printable.hpp"

namespace qgpu {

namespace {

// The kernel's default limit for all of a user's watches is 8192 and up.
constexpr size_t kWatchesMax = 4096;

// mountinfo writes blanks and backslashes as \ooo.
std::string unescape(const std::string &text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    bool octal = text[i] == '\\' && i + 3 < text.size() &&
                 std::all_of(text.begin() + static_cast<long>(i) + 1,
                             text.begin() + static_cast<long>(i) + 4,
                             [](char c) { return c >= '0' && c <= '7'; });
    if (octal) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                               (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

std::string findCgroup2Mount(const std::string &mountinfo) {
  std::istringstream lines(mountinfo);
  std::string line;
  while (std::getline(lines, line)) {
    size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream tail(line.substr(dash + 3));
    std::string type;
    tail >> type;
    if (type != "cgroup2") continue;
    std::istringstream head(line);
    std::string id, parent, device, root, point;
    head >> id >> parent >> device >> root >> point;
    if (!point.empty()) return unescape(point);
  }
  return "";
}

std::string findCgroup2Mount() {
  std::ifstream file("/proc/self/mountinfo");
  std::stringstream text;
  text << file.rdbuf();
  return findCgroup2Mount(text.str());
}

CgroupTree::CgroupTree(std::string root)
    : root_(std::move(root)), inotify_fd_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {}

CgroupTree::~CgroupTree() {
  if (inotify_fd_ >= 0) close(inotify_fd_);
}

uint64_t CgroupTree::idOf(const std::string &path) const {
  struct stat status {};
  if (root_.empty() || stat((root_ + path).c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
    return 0;
  return status.st_ino;
}

void CgroupTree::watch(const std::string &folder) {
  if (inotify_fd_ < 0 || next_watches_.size() >= kWatchesMax || next_watches_.count(folder)) return;
  // Adding a watch again gives the same number, and another one when the directory is another one.
  int number = inotify_add_watch(
      inotify_fd_, (root_ + folder).c_str(),
      IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_ONLYDIR);
  if (number >= 0) next_watches_[folder] = number;
}

// folder: below the root, without a final slash; rest: what is left of the pattern, begins with
// '/'.
void CgroupTree::match(const std::string &folder, const std::string &rest,
                       std::vector<Found> &found) {
  // The watch comes before the look: what appears in between is found by one or the other.
  watch(folder);
  size_t end = rest.find('/', 1);
  std::string part = rest.substr(1, end == std::string::npos ? end : end - 1);
  std::string further = end == std::string::npos ? "" : rest.substr(end);

  auto enter = [&](const std::string &name, uint64_t id) {
    std::string path = folder + "/" + name;
    if (id == 0) return;
    if (further.empty())
      found.push_back({path, id});
    else
      match(path, further, found);
  };
  if (part.find_first_of("*?[") == std::string::npos) {
    enter(part, idOf(folder + "/" + part));
    return;
  }
  // Only those that begin like the pattern need be looked at closely.
  const std::string begin = part.substr(0, part.find_first_of("*?[\\"));
  const Listing &entries = listing(folder);
  for (auto it = std::lower_bound(entries.begin(), entries.end(), std::pair(begin, uint64_t{0}));
       it != entries.end() && it->first.starts_with(begin); ++it)
    if (fnmatch(part.c_str(), it->first.c_str(), 0) == 0) enter(it->first, it->second);
}

const CgroupTree::Listing &CgroupTree::listing(const std::string &folder) {
  auto [known, is_new] = listings_.try_emplace(folder);
  Listing &entries = known->second;
  if (!is_new) return entries;
  std::unique_ptr<DIR, int (*)(DIR *)> open(opendir((root_ + folder).c_str()), closedir);
  while (const dirent *entry = open ? readdir(open.get()) : nullptr) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN) continue;
    if (const uint64_t id = idOf(folder + "/" + name)) entries.emplace_back(name, id);
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

CgroupTree::Resolved CgroupTree::resolve(const std::vector<TenantEntry> &tenants) {
  Resolved resolved;
  next_watches_.clear();
  std::map<uint64_t, std::string> owners;
  auto claim = [&](const TenantEntry &tenant, const CgroupPattern &pattern) {
    std::vector<Found> found;
    match("", pattern.path, found);
    std::vector<uint64_t> &ids = resolved.ids[tenant.name];
    for (const Found &cgroup : found) {
      auto [owner, is_new] = owners.emplace(cgroup.id, tenant.name);
      if (!is_new) {
        if (owner->second != tenant.name)
          resolved.complaints.push_back("cgroup " + printable(cgroup.path) + " matches tenant \"" +
                                        tenant.name + "\" and belongs to \"" + owner->second +
                                        "\" already");
      } else if (ids.size() == QGPU_CGROUPS_MAX) {
        resolved.complaints.push_back(
            "tenant \"" + tenant.name + "\" matches more than " + std::to_string(QGPU_CGROUPS_MAX) +
            " cgroups; the others are not its own: " + printable(cgroup.path));
        break;
      } else {
        ids.push_back(cgroup.id);
        resolved.paths[tenant.name].push_back(cgroup.path);
      }
    }
  };
  if (!root_.empty()) {
    for (bool glob : {false, true})
      for (const TenantEntry &tenant : tenants)
        for (const CgroupPattern &pattern : tenant.cgroups)
          if (pattern.glob == glob) claim(tenant, pattern);
  }
  for (auto &[name, ids] : resolved.ids) std::sort(ids.begin(), ids.end());

  std::set<int> kept;
  for (const auto &[folder, number] : next_watches_) kept.insert(number);
  for (const auto &[folder, number] : watches_)
    if (!kept.count(number)) inotify_rm_watch(inotify_fd_, number);
  watches_ = std::move(next_watches_);
  next_watches_.clear();
  listings_.clear();
  return resolved;
}

void CgroupTree::drain() {
  char events[16384];
  while (inotify_fd_ >= 0 && read(inotify_fd_, events, sizeof(events)) > 0) {
  }
}

}  // namespace qgpu
