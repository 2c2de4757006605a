// SPDX-License-Identifier: GPL-2.0
// Small files of the run folder.
#pragma once

#include <string>

#include "../result.hpp"

namespace qgpu::exec {

Result<std::string> readTextFile(const std::string &path);
// Atomic: by rename of a new file, mode 0600.
Result<void> replaceFile(const std::string &path, const std::string &text);

}  // namespace qgpu::exec
