// SPDX-License-Identifier: GPL-2.0
// Text that a tenant chooses - the name of a process, the path of a cgroup - goes into sentences,
// and these into JSON, the log and somebody's terminal. It is made harmless where it is read; what
// a file says, where it is shown.
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>

namespace qgpu {

// ASCII without control characters, whatever the locale.
inline bool isPrintable(char c) { return c >= 0x20 && c < 0x7f; }

// The same with '?' for every byte that is not.
inline std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return !isPrintable(c); }, '?');
  return text;
}

// With "\\x1b" for every byte that a terminal would obey: control characters, C1's in UTF-8, and
// what is no UTF-8.
inline std::string harmless(std::string_view text) {
  // Bytes of the character that begins there, if it is one to be shown.
  const auto lengthAt = [&](size_t at) -> size_t {
    const auto byte = [&](size_t i) {
      return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
    };
    if (byte(0) < 0x80) return isPrintable(text[at]) ? 1 : 0;
    const size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
    if (byte(0) < 0xc2 || byte(0) > 0xf4) return 0;
    for (size_t i = 1; i < length; ++i)
      if ((byte(i) & 0xc0) != 0x80) return 0;
    if (byte(0) == 0xc2 && byte(1) < 0xa0) return 0;
    // Too long for what they say; surrogates; beyond the last character.
    if (byte(0) == 0xe0 && byte(1) < 0xa0) return 0;
    if (byte(0) == 0xf0 && byte(1) < 0x90) return 0;
    if (byte(0) == 0xed && byte(1) >= 0xa0) return 0;
    return byte(0) == 0xf4 && byte(1) >= 0x90 ? 0 : length;
  };
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t length = lengthAt(at);
    char escaped[8];
    std::snprintf(escaped, sizeof(escaped), "\\x%02x", static_cast<unsigned char>(text[at]));
    out += length ? std::string(text.substr(at, length)) : escaped;
    at += std::max<size_t>(length, 1);
  }
  return out;
}

}  // namespace qgpu
