// SPDX-License-Identifier: GPL-2.0
// The driver's cards, as /proc/driver/nvidia names them.
#pragma once

#include <string>
#include <vector>

#include "../result.hpp"
#include "driver_profile.hpp"

namespace qgpu::exec {

struct DriverCard {
  std::string uuid, name;
  unsigned minor = 0;
  bool partitioned = false;  // MIG is on
};

// ENODEV: the driver is not loaded.
Result<DriverVersion> driverVersion(const std::string &folder = "/proc/driver/nvidia");
Result<std::vector<DriverCard>> driverCards(const std::string &folder = "/proc/driver/nvidia");
// By UUID or by minor number. ENOENT; EOPNOTSUPP for one that is partitioned.
Result<DriverCard> findCard(const std::vector<DriverCard> &cards, const std::string &which);

}  // namespace qgpu::exec
