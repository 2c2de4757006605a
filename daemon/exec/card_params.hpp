// SPDX-License-Identifier: GPL-2.0
// What a card costs: constants of its chip, as measured. The core plans with them, the account
// subtracts them.
#pragma once

#include <cstdint>

namespace qgpu::exec {

// One H200, driver 580.159.04, 2026-11: docs/measured.md. Cards that were not measured use these.
struct CardParams {
  // Throughput lost by one switch.
  uint64_t switch_ns = 205'000;
  // Both owners are admitted while a window changes.
  uint64_t takeoff_ns = 250'000;
  // Of a visit as the trace has it: from START to full speed, and from the last instruction to END
  // (stopping and saving). Together what held time and compute time differ by.
  uint64_t restore_tail_ns = 30'000;
  uint64_t save_ns = 90'000;
  // From END to the next START, when somebody waited.
  uint64_t gap_ns = 82'000;
  // The hardware counts slices in this unit where the driver's value says microseconds, and a
  // visit computes so much less than its slice.
  uint64_t slice_unit_ns = 1024;
  uint64_t slice_short_ns = 28'000;
  uint64_t slice_min_ns = 200'000, slice_max_ns = 1'000'000'000;

  // The driver's value with which a visit computes for about `ns`, and what it then is.
  uint64_t sliceUs(uint64_t ns) const {
    return (ns + slice_short_ns + slice_unit_ns / 2) / slice_unit_ns;
  }
  // What a visit of this length in the trace computed; never 0.
  uint64_t computedNs(uint64_t visit_ns) const {
    const uint64_t cost_ns = restore_tail_ns + save_ns;
    return visit_ns > cost_ns ? visit_ns - cost_ns : 1;
  }
  uint64_t sliceNs(uint64_t us) const {
    return us * slice_unit_ns > slice_short_ns ? us * slice_unit_ns - slice_short_ns : 0;
  }
};

}  // namespace qgpu::exec
