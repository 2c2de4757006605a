// SPDX-License-Identifier: GPL-2.0
// Text of errors. Used wherever an Error is shown: log, control socket, command line.
#include "result.hpp"

#include <cstring>

#include "printable.hpp"

namespace qgpu {

std::string errnoName(int err) {
  const char *name = strerrorname_np(err);
  return name ? name : "errno " + std::to_string(err);
}

std::string Error::text() const {
  std::string out = errnoName(err) + ": " + sentence;
  if (!item.empty()) out += " (" + item + ")";
  return harmless(out);
}

}  // namespace qgpu
