// SPDX-License-Identifier: GPL-2.0
#pragma once

#include <iosfwd>

#include "cuda_load.hpp"
#include "load.hpp"

namespace qgpu {

// Prints what was measured, as text or as one JSON object. Sorts the latencies.
void report(const Options &options, Measured &measured, std::ostream &out);

// The same for a real card; the share is of the wall clock.
void reportCuda(const Options &options, CudaMeasured &measured, std::ostream &out);

}  // namespace qgpu
