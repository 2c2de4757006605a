// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <string>

#include "connection.hpp"
#include "result.hpp"

namespace qgpu::ctl {

// Makes the tenant's cgroup, has the daemon confirm that the cards enforce for it, and moves this
// process into it. An error at any step leaves the process where it was.
Result<void> joinTenant(Connection &connection, const std::string &tenant);

}  // namespace qgpu::ctl
