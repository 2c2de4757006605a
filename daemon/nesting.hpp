// SPDX-License-Identifier: GPL-2.0
// How deep a text from outside is nested, told before it is parsed: parsers and printers of JSON
// and TOML call themselves for each level, and a stack has an end.
#pragma once

#include <string_view>

namespace qgpu {

// Brackets of a JSON text.
inline bool isTooDeep(std::string_view text, int limit) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > limit) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

// Dots of a line of TOML: each part of a key is a table in another. Returns the first such line,
// from 1; 0 = none.
inline int lineTooDeep(std::string_view text, int limit) {
  int line = 1, dots = 0;
  for (const char c : text) {
    if (c == '\n') {
      ++line;
      dots = 0;
    } else if (c == '.' && ++dots > limit) {
      return line;
    }
  }
  return 0;
}

}  // namespace qgpu
