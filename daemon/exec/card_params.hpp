// SPDX-License-Identifier: GPL-2.0
// What a card costs: constants of its chip, as measured. The core plans with them, the account
// subtracts them. `qgpuctl calibrate` measures them.
#pragma once

#include <cstdint>

#include "protocol.hpp"

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
  // One that is let run and stopped by turns computes so much less than it was let run.
  uint64_t duty_bias_ns = 75'000;
  uint64_t measured_s = 0;  // 0: of another card

  CardConstants constants() const {
    return {restore_tail_ns + save_ns, gap_ns, slice_short_ns, duty_bias_ns, measured_s};
  }
  // How a visit's cost is split between its ends is not measured: as here before.
  void set(const CardConstants &of) {
    restore_tail_ns = of.visit_ns / 4;
    save_ns = of.visit_ns - restore_tail_ns;
    gap_ns = of.gap_ns;
    switch_ns = of.visit_ns + of.gap_ns;
    slice_short_ns = of.slice_short_ns;
    if (of.duty_bias_ns) duty_bias_ns = of.duty_bias_ns;
    measured_s = of.measured_s;
  }

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
