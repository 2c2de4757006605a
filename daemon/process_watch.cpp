// SPDX-License-Identifier: GPL-2.0
// A pid is paired with its pidfd when it is first seen, and is another process as soon as that one
// has ended: pids are used again.
#include "process_watch.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <charconv>
#include <fstream>
#include <memory>

#include "clock.hpp"

namespace qgpu {

namespace {

constexpr uint64_t kFoldersNs = 5 * kSecondNs;
constexpr unsigned kDepthMax = 32;
constexpr size_t kFoldersMax = 4096;
constexpr uint32_t kNobody = UINT32_MAX;

// Zombies have no cgroup.procs line, so what ended is not in the listing either.
bool hasEnded(int pidfd) {
  pollfd wait{pidfd, POLLIN, 0};
  return poll(&wait, 1, 0) == 1;
}

std::string readAll(const std::string &path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char part[4096];
  ssize_t bytes;
  while (fd && (bytes = read(fd.get(), part, sizeof(part))) > 0)
    text.append(part, static_cast<size_t>(bytes));
  return text;
}

}  // namespace

ProcessWatch::ProcessWatch(std::string root, std::string proc)
    : root_(std::move(root)), proc_(std::move(proc)) {}

void ProcessWatch::setTenants(std::map<uint64_t, uint32_t> owners) {
  if (owners == owners_) return;
  owners_ = std::move(owners);
  folders_known_ = false;
}

void ProcessWatch::findFolders() {
  folders_.clear();
  if (!root_.empty() && !owners_.empty()) walk("", kNobody, 0);
  folders_known_ = true;
}

void ProcessWatch::walk(const std::string &path, uint32_t owner, unsigned depth) {
  struct stat status {};
  const std::string folder = root_ + path;
  if (stat(folder.c_str(), &status) != 0) return;
  if (auto found = owners_.find(status.st_ino); found != owners_.end()) owner = found->second;
  if (owner != kNobody) folders_.push_back({path, owner, status.st_nlink});
  // Two links, its own two: no folders in it.
  if (depth == kDepthMax || folders_.size() >= kFoldersMax || status.st_nlink == 2) return;
  std::unique_ptr<DIR, int (*)(DIR *)> listing(opendir(folder.c_str()), closedir);
  if (!listing) return;
  while (const dirent *entry = readdir(listing.get()))
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
      walk(path + "/" + entry->d_name, owner, depth + 1);
}

bool ProcessWatch::foldersChanged() const {
  struct stat status {};
  for (const Folder &folder : folders_)
    if (stat((root_ + folder.path).c_str(), &status) != 0 || status.st_nlink != folder.links)
      return true;
  return false;
}

bool ProcessWatch::isStillIn(pid_t pid, const std::string &folder) const {
  const std::string text = readAll(proc_ + "/" + std::to_string(pid) + "/cgroup");
  size_t at = text.find("0::");
  if (at == std::string::npos) return false;
  return text.compare(at + 3, text.find('\n', at) - at - 3, folder) == 0;
}

void ProcessWatch::see(pid_t pid, const Folder &folder, std::vector<Change> &changes) {
  auto at = known_.find(pid);
  if (at != known_.end() && hasEnded(at->second.pidfd.get())) {
    known_.erase(at);
    at = known_.end();
  }
  if (at == known_.end()) {
    UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    // After the pidfd was opened: so it names who is listed, or somebody who has ended.
    if (!pidfd || !isStillIn(pid, folder.path)) return;
    changes.push_back({pid, folder.tenant_id, false, pidfd.get()});
    known_.emplace(pid, Process{std::move(pidfd), folder.tenant_id, looks_});
    return;
  }
  at->second.seen = looks_;
  if (at->second.tenant_id == folder.tenant_id) return;
  at->second.tenant_id = folder.tenant_id;
  changes.push_back({pid, folder.tenant_id, false, at->second.pidfd.get()});
}

void ProcessWatch::readFolder(const Folder &folder, std::vector<Change> &changes) {
  const std::string text = readAll(root_ + folder.path + "/cgroup.procs");
  const char *at = text.data();
  const char *end = at + text.size();
  while (at < end) {
    pid_t pid = 0;
    auto [next, bad] = std::from_chars(at, end, pid);
    if (bad != std::errc() || next == at) break;
    // 0: in another pid namespace, out of reach.
    if (pid > 0) see(pid, folder, changes);
    at = next + 1;
  }
}

void ProcessWatch::forgetMissing(std::vector<Change> &changes) {
  std::erase_if(known_, [&](const auto &entry) {
    const Process &process = entry.second;
    if (process.seen == looks_) return false;
    if (!hasEnded(process.pidfd.get()))
      changes.push_back({entry.first, process.tenant_id, true, -1});
    return true;
  });
}

std::vector<ProcessWatch::Change> ProcessWatch::look(uint64_t now_ns) {
  std::vector<Change> changes;
  ++looks_;
  if (!folders_known_ || now_ns >= folders_due_ns_ || foldersChanged()) {
    findFolders();
    folders_due_ns_ = now_ns + kFoldersNs;
  }
  for (const Folder &folder : folders_) readFolder(folder, changes);
  forgetMissing(changes);
  return changes;
}

std::vector<ProcessWatch::Change> ProcessWatch::all() const {
  std::vector<Change> changes;
  for (const auto &[pid, process] : known_)
    changes.push_back({pid, process.tenant_id, false, process.pidfd.get()});
  return changes;
}

}  // namespace qgpu
