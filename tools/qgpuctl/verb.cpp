// SPDX-License-Identifier: GPL-2.0
#include "verb.hpp"

#include <cerrno>
#include <cstdio>

namespace qgpu::ctl {

namespace {

void acceptSocket(CLI::App &verb, Context &context) {
  verb.add_option("--socket", context.socket, "qgpud's control socket")->capture_default_str();
  for (CLI::App *part : verb.get_subcommands({})) acceptSocket(*part, context);
}

}  // namespace

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

void addVerbs(CLI::App &app, Context &context) {
  for (auto *add : {addStatus, addExplain, addTenant, addPolicy, addEvents, addRun, addCalibrate})
    add(app, context);
  acceptSocket(app, context);
}

}  // namespace qgpu::ctl
