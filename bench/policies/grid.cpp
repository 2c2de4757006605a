// SPDX-License-Identifier: GPL-2.0
//
// grid.cpp - NVIDIA vGPU (GRID): equal share and fixed share, with and without strict round robin
//
// Source: "Changing Scheduling Behavior for Time-Sliced vGPUs" of the vGPU software user guide.
// From it: one vGPU's work at a time, on a software runlist of its own; equal share divides among
// the vGPUs present, fixed share among as many as the vGPU type allows on a card (a power of two
// here, 16 at most, as on a T4), absent ones included; both impose a limit, so the turn of an
// idle vGPU passes idle.
//
//   strict (default; RmPVMRL=0x01, 0x11; NVML calls it adaptive round robin): turns in order. The
//     time slice is 1/frequency, 480 Hz up to 8 vGPUs a card, else 960. What a turn lasted beyond
//     its slice accrues; each next slice is shortened by accrued / averaging factor, 33 by
//     default (1 ... 60), which is then taken off what accrued.
//   least time (RmPVMRL=0x03, 0x13; the default before release 15): next is who has spent the
//     least time scheduled. Slice 2 ms up to 8 vGPUs, else 1 ms.
//
// Simplifications: the scheduler acts at once at a slice's end (really an interrupt of GSP or
// host away); how far a slice may be shortened is not said: to nothing here, so that a turn is
// left out, which is the reading that serves it best; a waker's arrears under least time cannot
// build up, since idle vGPUs are scheduled like others.
#include <algorithm>

#include "policies/policy.hpp"

namespace qgpu::bench {
namespace {

constexpr size_t kMostVgpus = 16;
constexpr double kAveragingFactor = 33;
constexpr uint64_t kPollNs = 20'000;
// A slice shortened to less than this is a turn left out.
constexpr uint64_t kSkippedNs = 100'000;

class Grid : public Policy {
 public:
  Grid(GridShare share, GridOrder order) : share_(share), order_(order) {}

  std::optional<std::string> refuses(const Workload &workload) const override {
    if (workload.tenants.size() > kMostVgpus) return "16 at most";
    return {};
  }

  uint64_t start(Machine &machine) override {
    for (auto &tenant : machine.tenants()) slots_.push_back({.tenant = tenant.get()});
    if (share_ == GridShare::kFixed) slots_.resize(slotsFor(machine));
    const bool few = slots_.size() <= 8;
    if (order_ == GridOrder::kStrict)
      slice_ns_ = kSecond / (few ? 480 : 960);
    else
      slice_ns_ = (few ? 2 : 1) * kMilli;
    current_ = next_ = slots_.size() - 1;
    put(machine, current_);
    return beginTurn(machine, slice_ns_);
  }

  uint64_t tick(Machine &machine) override {
    if (!leaving_) {
      slots_[current_].scheduled_ns += machine.nowNs() - counted_ns_;
      counted_ns_ = machine.nowNs();
      choose();
      if (next_ != current_) put(machine, next_);
      leaving_ = true;
      asked_ = false;
    }
    // The turn is over when its vGPU is off the engine.
    Tenant *leaver = slots_[current_].tenant;
    if (next_ != current_ && leaver && machine.onEngine() == leaver) {
      if (!asked_) machine.preempt(*leaver);
      asked_ = true;
      return machine.nowNs() + kPollNs;
    }
    leaving_ = false;
    Slot &last = slots_[current_];
    last.scheduled_ns += machine.nowNs() - counted_ns_;
    last.accrued_ns +=
        static_cast<double>(machine.nowNs() - began_ns_) - static_cast<double>(given_ns_);
    current_ = next_;
    return beginTurn(machine, next_slice_ns_);
  }

 private:
  struct Slot {
    Tenant *tenant = nullptr;  // null: room for a vGPU that is not there
    uint64_t scheduled_ns = 0;
    double accrued_ns = 0;
  };

  // The type that comes nearest to the largest share asked, with room for all.
  static size_t slotsFor(Machine &machine) {
    double most = 0;
    for (auto &tenant : machine.tenants()) most = std::max(most, tenant->share());
    size_t best = 1;
    for (size_t n = 1; n <= kMostVgpus; n *= 2)
      if (n >= machine.tenants().size() &&
          (best < machine.tenants().size() || std::abs(1.0 / static_cast<double>(n) - most) <
                                                  std::abs(1.0 / static_cast<double>(best) - most)))
        best = n;
    return best;
  }

  // Who is next, and for how long.
  void choose() {
    next_slice_ns_ = slice_ns_;
    if (order_ == GridOrder::kLeastTime) {
      next_ = (current_ + 1) % slots_.size();
      for (size_t i = 0; i < slots_.size(); i++)
        if (slots_[i].scheduled_ns < slots_[next_].scheduled_ns) next_ = i;
      return;
    }
    do {
      next_ = (next_ + 1) % slots_.size();
      Slot &slot = slots_[next_];
      const double less =
          std::clamp(slot.accrued_ns / kAveragingFactor, 0.0, static_cast<double>(slice_ns_));
      slot.accrued_ns -= less;
      next_slice_ns_ = slice_ns_ - static_cast<uint64_t>(less);
    } while (next_slice_ns_ < kSkippedNs);
  }

  void put(Machine &machine, size_t slot) {
    if (slots_[slot].tenant)
      machine.putList({{slots_[slot].tenant, Machine::longestSliceNs()}});
    else
      machine.putList({});
  }

  uint64_t beginTurn(Machine &machine, uint64_t slice_ns) {
    began_ns_ = counted_ns_ = machine.nowNs();
    given_ns_ = slice_ns;
    return began_ns_ + given_ns_;
  }

  GridShare share_;
  GridOrder order_;
  std::vector<Slot> slots_;
  uint64_t slice_ns_ = 0, next_slice_ns_ = 0;
  uint64_t given_ns_ = 0, began_ns_ = 0, counted_ns_ = 0;  // of the turn that is on
  size_t current_ = 0, next_ = 0;
  bool leaving_ = false, asked_ = false;
};

}  // namespace

std::unique_ptr<Policy> makeGrid(GridShare share, GridOrder order) {
  return std::make_unique<Grid>(share, order);
}

}  // namespace qgpu::bench
