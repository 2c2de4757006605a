// SPDX-License-Identifier: GPL-2.0
#include "socket_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace qgpu {

SocketFile::SocketFile(std::string path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return;
  path_ = std::move(path);
  device_ = status.st_dev;
  inode_ = status.st_ino;
}

SocketFile::SocketFile(SocketFile &&other) noexcept
    : path_(std::exchange(other.path_, {})), device_(other.device_), inode_(other.inode_) {}

SocketFile &SocketFile::operator=(SocketFile &&other) noexcept {
  remove();
  path_ = std::exchange(other.path_, {});
  device_ = other.device_;
  inode_ = other.inode_;
  return *this;
}

void SocketFile::remove() {
  struct stat status {};
  const std::string path = std::exchange(path_, {});
  if (path.empty() || lstat(path.c_str(), &status) != 0) return;
  if (status.st_dev == device_ && status.st_ino == inode_) unlink(path.c_str());
}

}  // namespace qgpu
