// SPDX-License-Identifier: GPL-2.0
// Text that a tenant chooses - the name of a process, the path of a cgroup - goes into sentences,
// and these into JSON, the log and somebody's terminal. It is made harmless where it is read.
#pragma once

#include <algorithm>
#include <string>

namespace qgpu {

// ASCII without control characters, whatever the locale.
inline bool isPrintable(char c) { return c >= 0x20 && c < 0x7f; }

// The same with '?' for every byte that is not.
inline std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return !isPrintable(c); }, '?');
  return text;
}

}  // namespace qgpu
