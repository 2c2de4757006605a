// SPDX-License-Identifier: GPL-2.0
// What of the driver's interface depends on its release.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "../result.hpp"

namespace qgpu::exec {

struct DriverVersion {
  unsigned branch = 0, minor = 0, patch = 0;

  auto operator<=>(const DriverVersion &) const = default;
  std::string text() const;
};

// "580.159.04", also inside of a longer text as in /proc/driver/nvidia/version. EINVAL.
Result<DriverVersion> parseDriverVersion(std::string_view text);

struct DriverProfile {
  std::string name;            // "535 ... 595"
  bool alloc_has_size = true;  // NVOS21: params' size at 24 and status at 28
  uint32_t memory_params_bytes = 128;
};

enum class DriverChoice { kExact, kNearest };

// The profile of a version. ENOTSUP with a sentence for one outside what was read, unless
// kNearest.
Result<DriverProfile> driverProfile(const DriverVersion &version, DriverChoice choice);

}  // namespace qgpu::exec
