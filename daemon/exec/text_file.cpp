// SPDX-License-Identifier: GPL-2.0
#include "text_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace qgpu::exec {
namespace {

constexpr size_t kBytesMax = 4 << 20;

Error failed(const std::string &what, const std::string &path) {
  const int err = errno;
  return {err, "cannot " + what + " " + path + ": " + std::strerror(err), path};
}

}  // namespace

Result<std::string> readTextFile(const std::string &path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return failed("read", path);
  std::string out;
  char part[4096];
  ssize_t n = 0;
  while (out.size() < kBytesMax && (n = read(fd, part, sizeof(part))) > 0)
    out.append(part, static_cast<size_t>(n));
  const bool ok = n == 0;
  if (!ok && n > 0) errno = EFBIG;
  const Error error = ok ? Error{} : failed("read", path);
  close(fd);
  if (!ok) return error;
  return out;
}

Result<void> replaceFile(const std::string &path, const std::string &text) {
  const std::string fresh = path + ".new";
  const int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return failed("write", fresh);
  const ssize_t n = write(fd, text.data(), text.size());
  if (n >= 0 && static_cast<size_t>(n) != text.size()) errno = ENOSPC;
  const bool ok = n == static_cast<ssize_t>(text.size());
  const Error error = ok ? Error{} : failed("write", fresh);
  close(fd);
  if (!ok) return error;
  if (rename(fresh.c_str(), path.c_str())) return failed("replace", path);
  return {};
}

}  // namespace qgpu::exec
