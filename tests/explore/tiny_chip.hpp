// SPDX-License-Identifier: GPL-2.0
//
// tiny_chip.hpp - an engine in a hundred lines, for exploring all orders of events: a rotation over
// the image in the slot, slices, switches, preempts, and work that cannot be cut for a while. What
// the chip model does at register level, this does behind hw_ops.
#ifndef QGPU_TESTS_EXPLORE_TINY_CHIP_HPP
#define QGPU_TESTS_EXPLORE_TINY_CHIP_HPP

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

extern "C" {
#include "hw/hw_ops.h"
}

namespace qgpu::explore {

constexpr uint64_t kMicro = 1'000, kMilli = 1'000'000, kSecond = 1'000'000'000;
constexpr uint64_t kSwitchNs = 100 * kMicro, kTakeoffNs = 50 * kMicro;

class TinyChip {
 public:
  static constexpr unsigned kTsgs = 4;

  TinyChip() {
    hw_.ops = &kOps;
    hw_.io = {&kIoOps, this};
  }
  TinyChip(const TinyChip &) = delete;
  TinyChip &operator=(const TinyChip &) = delete;

  hw &hardware() { return hw_; }
  hw_mem image(unsigned i) {
    hw_mem mem{};
    mem.cpu = &buffers_[i];
    mem.bus_addr = 4096 * (i + 1);
    mem.bytes = sizeof(buffers_[i]);
    return mem;
  }
  uint64_t nowNs() const { return now_; }
  uint64_t runNs(unsigned tsg) const { return run_ns_[tsg]; }
  uint64_t lastRanNs(unsigned tsg) const { return last_ran_ns_[tsg]; }
  bool hasWork(unsigned tsg) const { return work_[tsg]; }
  void setWork(unsigned tsg, bool work) {
    work_[tsg] = work;
    if (state_ == kRuns && !work_[on_]) leave();
    if (state_ == kIdle) pickNext();
  }
  // What computes now cannot be cut before then.
  void holdFor(uint64_t ns) {
    if (state_ == kRuns) held_until_ns_ = now_ + ns;
  }

  void advanceTo(uint64_t ns) {
    while (now_ < ns) {
      const uint64_t at = std::min(ns, nextNs());
      if (state_ == kRuns) {
        run_ns_[on_] += at - now_;
        last_ran_ns_[on_] = at;
      }
      now_ = at;
      if (now_ >= nextNs()) event();
    }
  }

 private:
  struct Entry {
    uint16_t tsg;
    uint64_t slice_ns;
  };
  struct Image {
    std::array<Entry, kTsgs + 1> entries;
    unsigned count;
  };
  enum State { kIdle, kSwitches, kSaves, kRuns };

  uint64_t nextNs() const {
    if (state_ == kIdle) return ~0ull;
    if (state_ != kRuns) return until_ns_;
    if (taken_off_) return std::max(held_until_ns_, now_);
    return othersWait() ? std::max({until_ns_, held_until_ns_, now_}) : ~0ull;
  }
  bool othersWait() const {
    for (unsigned i = 0; i < slot_.count; i++)
      if (slot_.entries[i].tsg != on_ && work_[slot_.entries[i].tsg]) return true;
    return !inSlot(on_);
  }
  bool inSlot(unsigned tsg) const {
    for (unsigned i = 0; i < slot_.count; i++)
      if (slot_.entries[i].tsg == tsg) return true;
    return false;
  }
  void event() {
    if (state_ == kSwitches) {
      state_ = kRuns;
      until_ns_ = now_ + slot_.entries[at_].slice_ns;
      if (!work_[on_]) leave();
    } else if (state_ == kSaves || (state_ == kRuns && !taken_off_)) {
      pickNext();
    } else {
      leave();
    }
  }
  // Whoever computes stops to: its context is saved.
  void leave() {
    taken_off_ = false;
    held_until_ns_ = 0;
    state_ = kSaves;
    until_ns_ = now_ + kTakeoffNs;
  }
  // The next entry that has work; the same TSG goes on without a switch.
  void pickNext() {
    const bool runs = state_ == kRuns;
    held_until_ns_ = 0;
    for (unsigned k = 1; k <= slot_.count; k++) {
      const unsigned i = (at_ + k) % slot_.count;
      if (!work_[slot_.entries[i].tsg]) continue;
      at_ = i;
      if (runs && slot_.entries[i].tsg == on_) {
        until_ns_ = now_ + slot_.entries[i].slice_ns;
        return;
      }
      on_ = slot_.entries[i].tsg;
      state_ = kSwitches;
      until_ns_ = now_ + kSwitchNs;
      return;
    }
    state_ = kIdle;
  }
  // The slot has another image: it begins with the first entry.
  void submit(const Image &image) {
    slot_ = image;
    at_ = slot_.count ? slot_.count - 1 : 0;
    taken_off_ = false;
    if (state_ == kIdle) pickNext();
    if (state_ == kSwitches) {
      if (inSlot(on_))
        while (slot_.entries[at_].tsg != on_) at_ = (at_ + 1) % slot_.count;
      else
        leave();
    }
    if (state_ != kRuns) return;
    if (slot_.count && slot_.entries[0].tsg == on_) {
      at_ = 0;
      until_ns_ = now_ + slot_.entries[0].slice_ns;
    } else if (inSlot(on_)) {
      until_ns_ = now_;
    }
  }

  static TinyChip &self(void *ctx) { return *static_cast<TinyChip *>(ctx); }
  static TinyChip &self(struct hw *hw) { return self(hw->io.ctx); }
  static u64 round(u64 ns) { return std::max<u64>(ns / 1024, 1) * 1024; }
  static int write(const hw_mem *mem, const hw_image_tsg *tsgs, u32 count, u32 *entries) {
    auto &image = *static_cast<Image *>(mem->cpu);
    if (count > image.entries.size()) return -ENOSPC;
    for (u32 i = 0; i < count; i++) image.entries[i] = {tsgs[i].tsg_id, tsgs[i].slice_ns};
    image.count = count;
    *entries = count;
    return 0;
  }
  static int take(struct hw *hw, u32, const hw_mem *mem, u32) {
    self(hw).advanceTo(self(hw).now_ + 2 * kMicro);
    self(hw).submit(*static_cast<const Image *>(mem->cpu));
    return 0;
  }
  // Nobody else submits here.
  static int stillThere(struct hw *, u32, const hw_mem *, u32) { return 0; }
  static int preempt(struct hw *hw, u32, u16 tsg_id, u64 deadline_ns) {
    TinyChip &chip = self(hw);
    if (chip.state_ != kRuns || chip.on_ != tsg_id) return 0;
    chip.taken_off_ = true;
    if (chip.held_until_ns_ > deadline_ns) {
      chip.advanceTo(deadline_ns);
      return -EBUSY;
    }
    chip.advanceTo(std::max(chip.now_, chip.held_until_ns_) + kTakeoffNs + 2);
    return 0;
  }
  static int status(struct hw *hw, u32, hw_status *out) {
    TinyChip &chip = self(hw);
    chip.advanceTo(chip.now_ + kMicro);
    const bool loaded = chip.state_ == kRuns || chip.state_ == kSaves;
    out->state = chip.state_ == kRuns   ? HW_ENGINE_RUNNING
                 : chip.state_ == kIdle ? HW_ENGINE_EMPTY
                                        : HW_ENGINE_SWITCHING;
    out->tsg_id = loaded ? static_cast<u16>(chip.on_) : u16{HW_NO_ID};
    out->next_tsg_id = chip.state_ == kSwitches ? static_cast<u16>(chip.on_) : u16{HW_NO_ID};
    return 0;
  }
  static int work(struct hw *hw, u16 channel_id, u64, hw_channel_work *out) {
    *out = self(hw).work_[channel_id] ? HW_CHANNEL_HAS_WORK : HW_CHANNEL_QUIET;
    return 0;
  }
  static u64 now(void *ctx) { return self(ctx).now_; }
  static void wait(void *ctx, u64 ns) { self(ctx).advanceTo(self(ctx).now_ + ns); }

  static constexpr hw_ops kOps = {.probe = nullptr,
                                  .time_ns = nullptr,
                                  .slice_round = round,
                                  .image_write = write,
                                  .submit = take,
                                  .slot_check = stillThere,
                                  .preempt = preempt,
                                  .status = status,
                                  .channel_work = work};
  static constexpr hw_io_ops kIoOps = {
      .read32 = nullptr, .write32 = nullptr, .now_ns = now, .wait_ns = wait, .flush = nullptr};

  struct hw hw_ {};
  Image buffers_[2] = {};
  Image slot_{};
  uint64_t now_ = 1'000'000'000'000, until_ns_ = 0, held_until_ns_ = 0;
  State state_ = kIdle;
  unsigned at_ = 0, on_ = 0;
  bool taken_off_ = false;
  std::array<bool, kTsgs> work_{};
  std::array<uint64_t, kTsgs> run_ns_{}, last_ran_ns_{};
};

}  // namespace qgpu::explore

#endif
