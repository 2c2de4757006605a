// SPDX-License-Identifier: GPL-2.0
#include "core_params.hpp"

#include <algorithm>

namespace qgpu::exec {
namespace {

constexpr uint64_t kFrameNs = 20'000'000, kFramePerGatedNs = 45'000'000, kGatedMax = 10;
// What the core takes for the distance of looks. The trace has every edge, so nothing is sampled:
// the core may believe what it is told of visits as short as this.
constexpr uint64_t kLookNs = 1'000'000, kIdleLookNs = 50'000'000;

u64 roundSlice(u64 ns) {
  const CardParams params;
  return params.sliceNs(params.sliceUs(ns));
}

}  // namespace

uint64_t periodNs(uint64_t gated) {
  return std::max(kFrameNs, kFramePerGatedNs * std::min(gated, kGatedMax));
}

core_params coreParams(const CardParams &card, uint64_t gated) {
  core_params out{};
  out.switch_ns = card.switch_ns;
  out.takeoff_ns = card.takeoff_ns;
  out.sample_ns = kLookNs;
  // The trace shows every gap: no look has to.
  out.window_look_ns = UINT64_MAX;
  out.idle_look_ns = kIdleLookNs;
  out.loss_ppm = 10'000;
  out.smooth_ns = 20'000'000;
  out.soft_wake_ns = 50'000'000;
  out.period_min_ns = periodNs(gated);
  out.tenure_ns = kWindowNs;
  out.slice_min_ns = card.slice_min_ns;
  out.slice_max_ns = card.slice_max_ns;
  out.slice_round = roundSlice;
  return out;
}

}  // namespace qgpu::exec
