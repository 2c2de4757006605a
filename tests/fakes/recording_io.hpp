// SPDX-License-Identifier: GPL-2.0
// recording_io.hpp - a card of which only what the test says is true: registers are scripted, every
// access is written down with its time, time moves only in wait_ns and by a fixed cost a read.
//
// For tests of sequences. How a real chip behaves is the chip model's business (kmod/sim/chip).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

extern "C" {
#include "hw/hw_io.h"
}

namespace qgpu::fakes {

struct Access {
  enum Kind { Read, Write, Wait, Flush } kind;
  std::uint32_t offset = 0;  // of Read and Write
  std::uint32_t value = 0;   // read or written
  std::uint64_t at_ns = 0;

  bool operator==(const Access &other) const {
    return kind == other.kind && offset == other.offset && value == other.value;
  }
};

inline std::ostream &operator<<(std::ostream &out, const Access &access) {
  static const char *const names[] = {"read", "write", "wait", "flush"};
  return out << names[access.kind] << std::hex << " 0x" << access.offset << " 0x" << access.value
             << std::dec << " at " << access.at_ns;
}

class RecordingIo {
 public:
  hw_io io() { return {&ops_, this}; }

  // What a register reads from now on.
  void set(std::uint32_t offset, std::uint32_t value) { values_[offset] = value; }
  std::uint32_t get(std::uint32_t offset) const {
    const auto found = values_.find(offset);
    return found == values_.end() ? 0 : found->second;
  }
  // What the next reads of a register give, one each, before set() counts again.
  void script(std::uint32_t offset, std::initializer_list<std::uint32_t> values) {
    scripts_[offset].insert(scripts_[offset].end(), values);
  }
  // Called after a write was recorded; may set() and script().
  void onWrite(std::uint32_t offset, std::function<void(std::uint32_t)> reaction) {
    reactions_[offset] = std::move(reaction);
  }
  // Called once, as soon as time has come there.
  void at(std::uint64_t when_ns, std::function<void()> action) {
    timed_.emplace(when_ns, std::move(action));
  }

  // Faults, until healed.
  void loseCard() { lost_ = true; }
  void refuse(std::uint32_t from, std::uint32_t to) { refused_ = {from, to}; }
  void heal() {
    lost_ = false;
    refused_.reset();
  }

  const std::vector<Access> &log() const { return log_; }
  std::vector<Access> writes() const {
    std::vector<Access> out;
    for (const Access &access : log_)
      if (access.kind == Access::Write || access.kind == Access::Flush) out.push_back(access);
    return out;
  }
  std::size_t reads(std::uint32_t offset) const {
    std::size_t count = 0;
    for (const Access &access : log_)
      count += access.kind == Access::Read && access.offset == offset;
    return count;
  }
  void clearLog() { log_.clear(); }

  std::uint64_t nowNs() const { return now_ns_; }
  std::uint64_t read_cost_ns = 1000;

 private:
  static RecordingIo &self(void *ctx) { return *static_cast<RecordingIo *>(ctx); }

  void pass(std::uint64_t ns) {
    now_ns_ += ns;
    while (!timed_.empty() && timed_.begin()->first <= now_ns_) {
      const auto action = std::move(timed_.begin()->second);
      timed_.erase(timed_.begin());
      action();
    }
  }

  std::uint32_t value(std::uint32_t offset) {
    if (lost_) return 0xffffffffu;
    if (refused_ && offset >= refused_->first && offset <= refused_->second) return 0xbadf1100u;
    auto &script = scripts_[offset];
    if (script.empty()) return get(offset);
    const std::uint32_t next = script.front();
    script.pop_front();
    return next;
  }

  static u32 read32(void *ctx, u32 offset) {
    RecordingIo &io = self(ctx);
    io.pass(io.read_cost_ns);
    const u32 value = io.value(offset);
    io.log_.push_back({Access::Read, offset, value, io.now_ns_});
    return value;
  }
  static void write32(void *ctx, u32 offset, u32 value) {
    RecordingIo &io = self(ctx);
    io.log_.push_back({Access::Write, offset, value, io.now_ns_});
    if (io.lost_) return;
    io.values_[offset] = value;
    if (const auto found = io.reactions_.find(offset); found != io.reactions_.end())
      found->second(value);
  }
  static u64 nowNs(void *ctx) { return self(ctx).now_ns_; }
  static void waitNs(void *ctx, u64 ns) {
    self(ctx).log_.push_back({Access::Wait, 0, static_cast<std::uint32_t>(ns), self(ctx).now_ns_});
    self(ctx).pass(ns);
  }
  static void flush(void *ctx, const hw_mem *) {
    self(ctx).log_.push_back({Access::Flush, 0, 0, self(ctx).now_ns_});
  }

  const hw_io_ops ops_{read32, write32, nowNs, waitNs, flush};
  std::map<std::uint32_t, std::uint32_t> values_;
  std::map<std::uint32_t, std::deque<std::uint32_t>> scripts_;
  std::map<std::uint32_t, std::function<void(std::uint32_t)>> reactions_;
  std::multimap<std::uint64_t, std::function<void()>> timed_;
  std::vector<Access> log_;
  std::uint64_t now_ns_ = 1'000'000'000;
  bool lost_ = false;
  std::optional<std::pair<std::uint32_t, std::uint32_t>> refused_;
};

}  // namespace qgpu::fakes
