// SPDX-License-Identifier: GPL-2.0
#include "instance_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace qgpu {

namespace {

struct flock wholeFile() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

Error held(int fd, const std::string &path, const std::string &who) {
  struct flock lock = wholeFile();
  if (fcntl(fd, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK)
    return Error{EAGAIN, who + ": it was killed, and what it started still holds its lock", path};
  // 0: of a pid namespace that is not seen from here.
  const std::string process = lock.l_pid > 0 ? ", process " + std::to_string(lock.l_pid) : "";
  return Error{EBUSY, who + process, path};
}

}  // namespace

Result<InstanceLock> InstanceLock::take(const std::string &path, const std::string &who) {
  const size_t slash = path.rfind('/');
  if (slash != std::string::npos && slash > 0) mkdir(path.substr(0, slash).c_str(), 0755);
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return Error{errno, std::string("cannot make the lock: ") + strerror(errno), path};
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return held(fd.get(), path, who);
    return Error{errno, std::string("cannot lock: ") + strerror(errno), path};
  }
  struct flock lock = wholeFile();
  if (fcntl(fd.get(), F_SETLK, &lock) != 0)
    return Error{errno, std::string("cannot lock: ") + strerror(errno), path};
  return InstanceLock(std::move(fd));
}

}  // namespace qgpu
