// SPDX-License-Identifier: GPL-2.0
// Which processes are whose, on the cgroup2 mount: each look reads the tenants' cgroup.procs and
// says what changed since the last one. Nothing tells of a process that joins a cgroup, so looks
// are frequent and cheap; where the cgroups are is found again only when one may have come or gone.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "unique_fd.hpp"

namespace qgpu {

class ProcessWatch {
 public:
  // root: the cgroup2 mount, empty when there is none; tests give any directory.
  // proc: where a process' own cgroup is read.
  explicit ProcessWatch(std::string root, std::string proc = "/proc");

  // Cgroup ids (inodes) -> whose they are. A process belongs to its nearest ancestor among them.
  void setTenants(std::map<uint64_t, uint32_t> owners);

  struct Change {
    pid_t pid = 0;
    uint32_t tenant_id = 0;
    bool gone = false;  // left the tenants' cgroups, but has not ended; no pidfd
    int pidfd = -1;     // stays ours; valid until the next look
  };
  // now_ns decides when the folders are looked for afresh.
  std::vector<Change> look(uint64_t now_ns);

  // Every process that is known, as if it had just come.
  std::vector<Change> all() const;

  size_t size() const { return known_.size(); }

 private:
  struct Folder {
    std::string path;  // below the root
    uint32_t tenant_id;
    nlink_t links;  // changes when a folder in it comes or goes
  };
  struct Process {
    UniqueFd pidfd;
    uint32_t tenant_id;
    uint64_t seen = 0;  // number of the look
  };
  void findFolders();
  bool foldersChanged() const;
  void walk(const std::string &path, uint32_t owner, unsigned depth);
  void readFolder(const Folder &folder, std::vector<Change> &changes);
  void see(pid_t pid, const Folder &folder, std::vector<Change> &changes);
  void forgetMissing(std::vector<Change> &changes);
  bool isStillIn(pid_t pid, const std::string &folder) const;

  std::string root_;
  std::string proc_;
  std::map<uint64_t, uint32_t> owners_;
  std::vector<Folder> folders_;
  bool folders_known_ = false;
  uint64_t folders_due_ns_ = 0;
  std::map<pid_t, Process> known_;
  uint64_t looks_ = 0;
};

}  // namespace qgpu
