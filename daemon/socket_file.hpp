// SPDX-License-Identifier: GPL-2.0
// The name of a listening socket in the file system. It is removed at the end, unless somebody else
// has put another one there meanwhile.
#pragma once

#include <sys/types.h>

#include <string>

namespace qgpu {

class SocketFile {
 public:
  SocketFile() = default;
  // What was just bound. The socket itself has to outlive this: it keeps the inode's number from
  // being given to another.
  explicit SocketFile(std::string path);
  ~SocketFile() { remove(); }
  SocketFile(SocketFile &&other) noexcept;
  SocketFile &operator=(SocketFile &&other) noexcept;

  void remove();

 private:
  std::string path_;  // empty: nothing to remove
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace qgpu
