// SPDX-License-Identifier: GPL-2.0
// The only file that reads /proc/driver/nvidia: which cards the stock driver has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "result.hpp"

namespace qgpu {

constexpr const char *kNvidiaProc = "/proc/driver/nvidia";

struct NvidiaCard {
  uint32_t minor = 0;  // of /dev/nvidiaN
  std::string uuid;
  std::string name;
};

// By minor. ENODEV: the driver is not loaded. A card whose lines cannot be read is left out.
Result<std::vector<NvidiaCard>> nvidiaCards(const std::string &root);

}  // namespace qgpu
