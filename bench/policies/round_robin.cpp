// SPDX-License-Identifier: GPL-2.0
//
// round_robin.cpp - the hardware left alone: one list of all, everybody the same slice; and the
// same with slices in proportion to shares
//
// Source: the chip's own rotation. 1024 units of 1024 ns are the driver's default for a TSG
// (open GPU kernel modules), 2048 what CUDA's compute TSG was seen with on a real card; so this
// is also GRID's and MIG-less Kubernetes' "best effort" and time-slicing. With equal slices no
// share can be asked for.
//
// Weighted slices: what a script that calls SET_TIMESLICE can do and nothing more. Slice of i =
// share * N * 2048 units, N tenants: on average everybody keeps CUDA's slice. Set once; nobody
// looks who has work, corrects, or cuts.
#include "policies/policy.hpp"

namespace qgpu::bench {
namespace {

constexpr uint64_t kUnitNs = 1024;
constexpr uint64_t kCudaUnits = 2048;

class RoundRobin : public Policy {
 public:
  explicit RoundRobin(uint32_t units) : slice_ns_(units * kUnitNs) {}
  uint64_t start(Machine &machine) override {
    machine.putAll([this](const Tenant &) { return slice_ns_; });
    return kNever;
  }

 private:
  uint64_t slice_ns_;
};

class WeightedSlices : public Policy {
 public:
  uint64_t start(Machine &machine) override {
    const double cycle_ns = static_cast<double>(machine.tenants().size() * kCudaUnits * kUnitNs);
    machine.putAll([cycle_ns](const Tenant &tenant) {
      return static_cast<uint64_t>(tenant.share() * cycle_ns);
    });
    return kNever;
  }
};

}  // namespace

std::unique_ptr<Policy> makeRoundRobin(uint32_t slice_units) {
  return std::make_unique<RoundRobin>(slice_units);
}

std::unique_ptr<Policy> makeWeightedSlices() { return std::make_unique<WeightedSlices>(); }

}  // namespace qgpu::bench
