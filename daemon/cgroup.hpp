// SPDX-License-Identifier: GPL-2.0
// Cgroup v2 directories: which exist for a pattern, their ids, and news when they come and go.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "config.hpp"
#include "policy.hpp"

namespace qgpu {

// Where cgroup2 is mounted, from the text of /proc/self/mountinfo; empty when it is not.
std::string findCgroup2Mount(const std::string &mountinfo);
std::string findCgroup2Mount();

// Paths below the mount, by tenant, in the order in which they were found.
using CgroupPaths = std::map<std::string, std::vector<std::string>>;

class CgroupTree {
 public:
  // root: the mount point; tests give any directory.
  explicit CgroupTree(std::string root);
  ~CgroupTree();
  CgroupTree(const CgroupTree &) = delete;
  CgroupTree &operator=(const CgroupTree &) = delete;

  struct Resolved {
    CgroupIds ids;                        // sorted
    CgroupPaths paths;                    // of those that have an id in ids
    std::vector<std::string> complaints;  // one sentence each; the same as long as the cause lasts
  };
  // The ids of all tenants now. A cgroup that several patterns match belongs to the exact path,
  // else to the first in the file's order. Also moves the watches to where these patterns look.
  Resolved resolve(const std::vector<TenantEntry> &tenants);

  // Readable when a directory that matters came or went; -1 when the system has no inotify left:
  // then only the periodic look finds changes.
  int fd() const { return inotify_fd_; }
  void drain();

  // 0 = does not exist.
  uint64_t idOf(const std::string &path) const;
  const std::string &root() const { return root_; }

 private:
  struct Found {
    std::string path;
    uint64_t id = 0;
  };
  // The folders in one, by name.
  using Listing = std::vector<std::pair<std::string, uint64_t>>;
  const Listing &listing(const std::string &folder);
  void match(const std::string &folder, const std::string &rest, std::vector<Found> &found);
  void watch(const std::string &folder);

  std::string root_;
  int inotify_fd_ = -1;
  std::map<std::string, int> watches_;       // folder below the root -> inotify's number
  std::map<std::string, int> next_watches_;  // while resolve() runs
  std::map<std::string, Listing> listings_;  // likewise: each is read once
};

}  // namespace qgpu
