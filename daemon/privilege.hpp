// SPDX-License-Identifier: GPL-2.0
#pragma once

#include "result.hpp"

namespace qgpu {

// Gives up every capability but CAP_NET_ADMIN, for good: what is not needed cannot be misused.
Result<void> keepNetAdminOnly();

}  // namespace qgpu
