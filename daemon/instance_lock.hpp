// SPDX-License-Identifier: GPL-2.0
// One of a kind: a file that its holder has locked for life. The file stays when the holder is
// gone and is in nobody's way then; what counts is the lock.
//
// There are two locks on it. flock() keeps others away; what the holder starts may inherit it, and
// then goes on keeping them away. A record lock, which nobody inherits, tells who took it.
#pragma once

#include <string>

#include "result.hpp"
#include "unique_fd.hpp"

namespace qgpu {

class InstanceLock {
 public:
  // Makes the file, and its folder, if needed. `who` begins the sentence of a refusal: "another
  // qgpud runs". EBUSY: held, the sentence names the process. EAGAIN: held, and who took it is
  // gone: by what that one started (or by this process itself).
  static Result<InstanceLock> take(const std::string &path, const std::string &who);

  // For a child that is to go on holding it; close-on-exec until the child says otherwise.
  int fd() const { return fd_.get(); }

 private:
  explicit InstanceLock(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
};

}  // namespace qgpu
