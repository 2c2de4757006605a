// SPDX-License-Identifier: GPL-2.0
#include "verb.hpp"

#include <cerrno>
#include <cstdio>

namespace qgpu::ctl {

int exitCodeOf(const Error &error) {
  switch (error.err) {
    case EPERM:
    case EACCES:
      return kExitNotPermitted;
    case ENOTCONN:
    case ECONNRESET:
    case ETIMEDOUT:
      return kExitUnreachable;
    case ENOENT:
    case ENODEV:
      return kExitNotFound;
    case EINVAL:
    case ERANGE:
    case ENOSPC:
    case EOPNOTSUPP:
    case EBUSY:
    case EEXIST:
    case ESTALE:
      return kExitRefused;
    default:
      return kExitFailed;
  }
}

int complain(const Error &error) {
  const char *next = error.err == ENOTCONN ? "; start it with: systemctl start qgpud" : "";
  std::fprintf(stderr, "qgpuctl: %s%s\n", error.text().c_str(), next);
  return exitCodeOf(error);
}

}  // namespace qgpu::ctl
