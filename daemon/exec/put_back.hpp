// SPDX-License-Identifier: GPL-2.0
// What a dead worker left of the processes it named: slices it wrote, and channels that it stopped
// and whose record is lost. For whoever outlives it, without a plan.
#pragma once

#include "controls.hpp"
#include "rm_client.hpp"
#include "store.hpp"

namespace qgpu::exec {

// Looks at each process to the end, for some seconds at most. What is refused stays as it is.
void putBack(RmClient &own, Controls &controls, const Stored &stored);

}  // namespace qgpu::exec
