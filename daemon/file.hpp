// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <string>

#include "result.hpp"

namespace qgpu {

// The whole of a regular file. EFBIG over max_bytes, EINVAL when it is no regular file; never
// blocks on a pipe or a device.
Result<std::string> readFile(const std::string &path, size_t max_bytes);

}  // namespace qgpu
