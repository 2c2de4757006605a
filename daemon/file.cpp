// SPDX-License-Identifier: GPL-2.0
#include "file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace qgpu {

Result<std::string> readFile(const std::string &path, size_t max_bytes) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return Error{errno, std::string("cannot be read: ") + strerror(errno), path};
  struct stat status {};
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(fd);
    return Error{EINVAL, "is not a regular file", path};
  }
  std::string text;
  ssize_t got = 1;
  while (got > 0 && text.size() <= max_bytes) {
    char chunk[16384];
    got = read(fd, chunk, sizeof(chunk));
    if (got > 0) text.append(chunk, static_cast<size_t>(got));
  }
  int err = errno;
  close(fd);
  if (got < 0) return Error{err, std::string("cannot be read: ") + strerror(err), path};
  if (text.size() > max_bytes)
    return Error{EFBIG, "is longer than " + std::to_string(max_bytes >> 20) + " MiB", path};
  return text;
}

}  // namespace qgpu
