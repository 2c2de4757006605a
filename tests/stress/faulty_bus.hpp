// SPDX-License-Identifier: GPL-2.0
//
// faulty_bus.hpp - the register access of a World with faults that last for a while: a submit or a
// preempt that the chip does not acknowledge, reads that fail, a card that is gone.
#ifndef QGPU_TESTS_STRESS_FAULTY_BUS_HPP
#define QGPU_TESTS_STRESS_FAULTY_BUS_HPP

#include <random>

#include "scenario/world.hpp"

namespace qgpu::stress {

enum Fault {
  kNone,
  kSubmitPending,   // from the next submit on SUBMIT_INFO reads PENDING for ever
  kPreemptIgnored,  // a request to preempt stays PENDING and nothing happens
  kPriErrors,       // one read in twenty is 0xBADxxxxx, PMC_BOOT_0 is fine
  kAllOnes,         // one read in twenty is all ones, PMC_BOOT_0 is fine
  kLost,            // every read is all ones
  kFaults
};

class FaultyBus {
 public:
  FaultyBus(scenario::World &world, uint64_t seed)
      : inner_(world.hardware().io), card_(world.card()), random_(seed) {
    world.hardware().io = {&kOps, this};
  }
  FaultyBus(const FaultyBus &) = delete;
  FaultyBus &operator=(const FaultyBus &) = delete;

  void begin(Fault fault) {
    fault_ = fault;
    unanswered_ = false;
    card_.setLost(fault == kLost);
  }
  void end() { begin(kNone); }
  Fault fault() const { return fault_; }
  uint64_t accesses() const { return accesses_; }

 private:
  static FaultyBus &self(void *ctx) { return *static_cast<FaultyBus *>(ctx); }
  static u32 read32(void *ctx, u32 offset) { return self(ctx).read(offset); }
  static void write32(void *ctx, u32 offset, u32 value) { self(ctx).write(offset, value); }
  static u64 now(void *ctx) { return self(ctx).inner_.ops->now_ns(self(ctx).inner_.ctx); }
  static void wait(void *ctx, u64 ns) { self(ctx).inner_.ops->wait_ns(self(ctx).inner_.ctx, ns); }
  static void flush(void *ctx, const hw_mem *mem) {
    self(ctx).inner_.ops->flush(self(ctx).inner_.ctx, mem);
  }

  u32 read(u32 offset) {
    accesses_++;
    const u32 value = inner_.ops->read32(inner_.ctx, offset);
    switch (fault_) {
      case kSubmitPending:
        return offset == CHIP_RUNLIST_REGS + CHIP_RUNLIST_SUBMIT_INFO && unanswered_
                   ? value | CHIP_SUBMIT_INFO_PENDING
                   : value;
      case kPreemptIgnored:
        return offset == CHIP_PREEMPT && unanswered_ ? value | CHIP_PREEMPT_PENDING : value;
      case kPriErrors:
        return !offset || random_() % 20 ? value : 0xbadf1000u | static_cast<u32>(random_() & 0xff);
      case kAllOnes:
        return offset && random_() % 20 == 0 ? 0xffffffffu : value;
      default:
        return value;
    }
  }
  void write(u32 offset, u32 value) {
    accesses_++;
    if (fault_ == kPreemptIgnored && offset == CHIP_PREEMPT) {
      unanswered_ = true;
      return;
    }
    unanswered_ |= fault_ == kSubmitPending && offset == CHIP_RUNLIST_REGS + CHIP_RUNLIST_SUBMIT;
    inner_.ops->write32(inner_.ctx, offset, value);
  }

  static constexpr hw_io_ops kOps = {
      .read32 = read32, .write32 = write32, .now_ns = now, .wait_ns = wait, .flush = flush};

  hw_io inner_;
  fakes::SimCard &card_;
  std::mt19937_64 random_;
  Fault fault_ = kNone;
  bool unanswered_ = false;
  uint64_t accesses_ = 0;
};

}  // namespace qgpu::stress

#endif
