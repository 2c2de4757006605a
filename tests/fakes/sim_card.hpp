// SPDX-License-Identifier: GPL-2.0
//
// sim_card.hpp - the chip model with a machine around it: memory, address spaces, tenants that
// launch kernels, and a clock that stands still unless a test moves it.
//
//   SimCard card;
//   SimTsg &a = card.createTsg(), &b = card.createTsg({.timeout = 250, .scale = 3});
//   a.channel().saturate(Kernel{1000000});
//   b.channel().syncLaunch(Kernel{50000}, /*gap_ns=*/200000);
//   card.submit({&a, &b});
//   card.advanceBy(1000000000);
//   EXPECT_EQ(card.runNs(a), ...);
//
// Time moves only in advanceTo() and its relatives, from event to event: completions reach their
// channel, and timers fire, at their exact time. Callbacks may launch, ring, use registers and
// set timers; they must not advance. Everything is single-threaded and deterministic.
#ifndef QGPU_TESTS_FAKES_SIM_CARD_HPP
#define QGPU_TESTS_FAKES_SIM_CARD_HPP

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "qgpu_env.h"
#include "sim_memory.hpp"
#include "sim_tenant.hpp"

extern "C" {
#include "chip.h"
#include "chip_regs.h"
#include "hw/hw_ops.h"
}

namespace qgpu::fakes {

struct SimOptions {
  chip_config config = defaultConfig();
  // Virtual time that one register access costs its caller; 0 inside callbacks.
  uint64_t mmio_read_ns = 0;
  uint64_t mmio_write_ns = 0;
  uint64_t start_ns = 0;
  bool keep_records = true;

  static chip_config defaultConfig() {
    chip_config config;
    chip_default_config(&config);
    return config;
  }
};

// A stretch of time in which a TSG's work ran, as the model recorded it.
struct Ran {
  uint32_t engine;
  uint16_t tsg;
  uint64_t from_ns, to_ns;
  bool operator==(const Ran &) const = default;
};

class SimCard {
 public:
  using Entry = std::array<uint32_t, 4>;  // a runlist entry as it lies in memory

  explicit SimCard(const SimOptions &options = {}) : options_(options), now_(options.start_ns) {
    const chip_host_ops ops = {.read = read,
                               .write = write,
                               .va_read = vaRead,
                               .va_write = vaWrite,
                               .ran = ran,
                               .switched = nullptr,
                               .protocol_error = protocolError};
    spaces_.resize(SimMemory::kBytes >> 12);
    chip_ = chip_create(&options_.config, &ops, this);
    if (!chip_) throw std::bad_alloc();
    write32(CHIP_VIRTUAL_CHANNEL_CFG, CHIP_VIRTUAL_CHANNEL_CFG_ON);
  }
  ~SimCard() { chip_destroy(chip_); }
  SimCard(const SimCard &) = delete;
  SimCard &operator=(const SimCard &) = delete;

  // --- time ---
  uint64_t nowNs() const { return now_; }
  void advanceBy(uint64_t ns) { advanceTo(now_ + ns); }
  void advanceTo(uint64_t ns) {
    while (step(ns)) {
    }
  }
  // Advance to the next event, at most to @limit_ns. Return: whether there was one.
  bool step(uint64_t limit_ns) {
    if (advancing_) throw std::logic_error("a callback must not advance the clock");
    const uint64_t next = std::min<uint64_t>(chip_next_event_ns(chip_), nextTimerNs());
    const bool event = next <= limit_ns;
    advancing_ = true;
    now_ = std::max(now_, std::min(next, limit_ns));
    chip_advance(chip_, now_);
    deliver();
    fireTimers();
    advancing_ = false;
    return event;
  }
  // Advance event by event until @done() is true. Return: whether it became so by @limit_ns.
  template <typename Done>
  bool advanceUntil(Done done, uint64_t limit_ns) {
    while (!done())
      if (!step(limit_ns)) return done();
    return true;
  }
  // Call @fn at @ns (now, if that is over).
  void at(uint64_t ns, std::function<void()> fn) {
    timers_.push({std::max(ns, now_), timer_number_++, std::move(fn)});
  }

  // --- registers ---
  chip *model() { return chip_; }
  uint32_t read32(uint32_t offset) {
    charge(options_.mmio_read_ns);
    if (lost_) return 0xffffffffu;
    return chip_read32(chip_, now_, offset);
  }
  void write32(uint32_t offset, uint32_t value) {
    charge(options_.mmio_write_ns);
    if (!lost_) chip_write32(chip_, now_, offset, value);
  }
  // Off the bus: reads are all ones, writes go nowhere; the chip itself carries on.
  void setLost(bool lost) { lost_ = lost; }
  // The same for code under test; valid as long as the card.
  hw_io io();

  // --- memory ---
  SimMemory &memory() { return memory_; }
  hw_mem allocate(uint32_t bytes, hw_target target = HW_TARGET_SYSMEM_COHERENT) {
    return memory_.allocate(bytes, target);
  }
  void release(const hw_mem &mem) { memory_.release(mem); }

  // --- tenants ---
  SimTsg &createTsg(const TsgOptions &options = {});
  // One more, enabled; it is in no list yet.
  SimChannel &addChannel(SimTsg &tsg, unsigned ring_log2 = TsgOptions{}.ring_log2);
  // Take it off the engine, unbind its channels, free everything. No list may have it any more.
  void destroyTsg(SimTsg &tsg);

  // --- lists ---
  static std::vector<Entry> entriesOf(const std::vector<SimTsg *> &tsgs);
  // Write @entries into the spare one of two buffers and submit it; does not wait.
  void submitEntries(const std::vector<Entry> &entries, uint32_t runlist = 0, uint32_t offset = 0);
  void submitAt(const hw_mem &mem, uint32_t length, uint32_t runlist = 0, uint32_t offset = 0);
  bool isPending(uint32_t runlist = 0) {
    return chip_read32(chip_, now_, runlistReg(runlist, CHIP_RUNLIST_SUBMIT_INFO)) &
           CHIP_SUBMIT_INFO_PENDING;
  }
  // Submit and advance until it is fetched.
  void submit(const std::vector<SimTsg *> &tsgs, uint32_t runlist = 0) {
    submitEntries(entriesOf(tsgs), runlist);
    if (!advanceUntil([&] { return !isPending(runlist); }, now_ + 1'000'000'000))
      throw std::runtime_error("the runlist was not fetched");
  }

  void preempt(const SimTsg &tsg) { write32(CHIP_PREEMPT, CHIP_PREEMPT_TYPE_TSG | tsg.id()); }
  uint32_t engineStatus(uint32_t engine = 0) { return read32(CHIP_ENGINE_STATUS + 8 * engine); }
  uint32_t channelStatus(const SimChannel &c) {
    return read32(CHIP_PCCSR + 8u * c.id() + CHIP_PCCSR_CHANNEL);
  }

  // --- the record ---
  const std::vector<Ran> &records() const { return records_; }
  void clearRecords() { records_.clear(); }
  uint64_t runNs(const SimTsg &tsg) const { return chip_tsg_run_ns(chip_, tsg.id()); }
  chip_totals totals(uint32_t engine = 0) const {
    chip_totals totals;
    chip_engine_totals(chip_, engine, &totals);
    return totals;
  }
  const std::vector<std::string> &protocolErrors() const { return protocol_errors_; }

 private:
  friend class SimChannel;

  struct Timer {
    uint64_t at_ns, number;
    std::function<void()> fn;
    bool operator<(const Timer &o) const {
      return std::pair(at_ns, number) > std::pair(o.at_ns, o.number);
    }
  };
  struct Done {
    SimChannel *channel;
    chip_completion completion;
  };

  static uint32_t runlistReg(uint32_t runlist, uint32_t reg) {
    return CHIP_RUNLIST_REGS + 16 * runlist + reg;
  }
  uint64_t nextTimerNs() const { return timers_.empty() ? ~0ull : timers_.top().at_ns; }
  void charge(uint64_t ns) {
    if (ns && !advancing_) advanceTo(now_ + ns);
  }
  void deliver() {
    for (size_t i = 0; i < done_.size(); i++) {
      const Done done = done_[i];
      done.channel->completedOne(done.completion);
    }
    done_.clear();
  }
  void fireTimers() {
    while (nextTimerNs() <= now_) {
      auto fn = timers_.top().fn;
      timers_.pop();
      fn();
    }
  }
  SimTsg *space(uint64_t pdb) const {
    return (pdb >> 12) < spaces_.size() ? spaces_[pdb >> 12] : nullptr;
  }
  std::unique_ptr<SimChannel> createChannel(SimTsg &tsg, uint64_t va, unsigned ring_log2);
  uint16_t takeId(std::vector<uint16_t> &spare, uint16_t &next) {
    if (spare.empty()) {
      if (next == 4096) throw std::length_error("the card has no more ids");
      return next++;
    }
    const uint16_t id = spare.back();
    spare.pop_back();
    return id;
  }

  // What the model asks of its host.
  static SimCard &self(void *ctx) { return *static_cast<SimCard *>(ctx); }
  static int read(void *ctx, u32 target, u64 addr, void *buf, u32 bytes) {
    const uint8_t *p = self(ctx).memory_.at(target, addr, bytes);
    if (!p) return -EFAULT;
    std::memcpy(buf, p, bytes);
    return 0;
  }
  static int write(void *ctx, u32 target, u64 addr, const void *buf, u32 bytes) {
    uint8_t *p = self(ctx).memory_.at(target, addr, bytes);
    if (!p) return -EFAULT;
    std::memcpy(p, buf, bytes);
    return 0;
  }
  static int vaRead(void *ctx, u64 pdb, u64 va, void *buf, u32 bytes) {
    SimTsg *tsg = self(ctx).space(pdb);
    const uint8_t *p = tsg ? tsg->at(va, bytes) : nullptr;
    if (!p) return -EFAULT;
    std::memcpy(buf, p, bytes);
    return 0;
  }
  static int vaWrite(void *ctx, u64 pdb, u64 va, const void *buf, u32 bytes) {
    SimTsg *tsg = self(ctx).space(pdb);
    uint8_t *p = tsg ? tsg->at(va, bytes) : nullptr;
    if (!p) return -EFAULT;
    std::memcpy(p, buf, bytes);
    for (const auto &channel : tsg->channels_)
      if (bytes == sizeof(chip_completion) && va >= channel->completionsVa() &&
          va < channel->endVa()) {
        Done done{channel.get(), {}};
        std::memcpy(&done.completion, buf, sizeof(done.completion));
        self(ctx).done_.push_back(done);
      }
    return 0;
  }
  static void ran(void *ctx, u32 engine, u16 tsg, u64 from_ns, u64 to_ns) {
    if (self(ctx).options_.keep_records)
      self(ctx).records_.push_back({engine, tsg, from_ns, to_ns});
  }
  static void protocolError(void *ctx, const char *what) {
    self(ctx).protocol_errors_.push_back(what);
  }

  SimOptions options_;
  SimMemory memory_;
  chip *chip_ = nullptr;
  uint64_t now_;
  bool advancing_ = false, lost_ = false;
  std::vector<SimTsg *> spaces_;  // by page directory page
  std::deque<std::unique_ptr<SimTsg>> tsgs_;
  std::vector<uint16_t> spare_tsgs_, spare_channels_;
  uint16_t next_tsg_ = 1, next_channel_ = 1;
  std::map<uint32_t, std::array<hw_mem, 2>> list_buffers_;
  std::map<uint32_t, unsigned> list_turn_;
  std::priority_queue<Timer> timers_;
  uint64_t timer_number_ = 0;
  std::vector<Done> done_;
  std::vector<Ran> records_;
  std::vector<std::string> protocol_errors_;
};

// --- SimChannel ---

inline uint64_t SimChannel::push(const Kernel &kernel) {
  if (launched_ - completed_ >= entries() - 1) throw std::length_error("the ring is full");
  const chip_kernel descriptor = {
      .duration_ns = kernel.duration_ns,
      .preemption = kernel.preemption,
      .block_ns = kernel.block_ns,
      .semaphore_va = completionsVa() + put_ * sizeof(chip_completion),
      .payload = launched_ + 1,
  };
  const uint64_t va = kernelsVa() + put_ * sizeof(chip_kernel);
  std::memcpy(ring_ + (va - va_), &descriptor, sizeof(descriptor));
  writeEntry(put_, static_cast<uint32_t>(va),
             static_cast<uint32_t>(va >> 32) | sizeof(chip_kernel) / 4 << 10 | CHIP_GP1_SYNC);
  put_ = static_cast<uint32_t>((put_ + 1) & (entries() - 1));
  return ++launched_;
}

inline void SimChannel::writeEntry(uint32_t index, uint32_t word0, uint32_t word1) {
  const uint32_t words[2] = {word0, word1};
  std::memcpy(ring_ + index * sizeof(words), words, sizeof(words));
}

inline void SimChannel::writeVa(uint64_t va, const void *data, size_t bytes) {
  uint8_t *p = tsg_->at(va, bytes);
  if (!p) throw std::out_of_range("not in the address space");
  std::memcpy(p, data, bytes);
}

inline void SimChannel::readVa(uint64_t va, void *data, size_t bytes) const {
  const uint8_t *p = tsg_->at(va, bytes);
  if (!p) throw std::out_of_range("not in the address space");
  std::memcpy(data, p, bytes);
}

inline void SimChannel::ring() {
  chip_write32(card_->chip_, card_->now_, CHIP_USERMODE_PAGE + CHIP_USERMODE_DOORBELL,
               tsg_->runlist_ << CHIP_DOORBELL_RUNLIST_SHIFT | id_);
}

inline void SimChannel::enable() {
  card_->write32(CHIP_PCCSR + 8u * id_ + CHIP_PCCSR_CHANNEL, CHIP_CH_ENABLE_SET);
}

inline void SimChannel::disable() {
  card_->write32(CHIP_PCCSR + 8u * id_ + CHIP_PCCSR_CHANNEL, CHIP_CH_ENABLE_CLR);
}

inline void SimChannel::completedOne(const chip_completion &completion) {
  completed_++;
  last_completion_ns_ = completion.time_ns;
  if (on_complete_) on_complete_(*this, completion);
  if (gap_ns_ == kNoGap || gap_ns_ == 0)
    refill();
  else if (source_)
    card_->at(card_->now_ + gap_ns_, [this, alive = std::weak_ptr<bool>(alive_)] {
      if (!alive.expired()) refill();
    });
}

// --- SimCard ---

inline hw_io SimCard::io() {
  static constexpr hw_io_ops ops = {
      .read32 = [](void *ctx, u32 offset) -> u32 { return self(ctx).read32(offset); },
      .write32 = [](void *ctx, u32 offset, u32 value) { self(ctx).write32(offset, value); },
      .now_ns = [](void *ctx) -> u64 { return self(ctx).nowNs(); },
      .wait_ns = [](void *ctx, u64 ns) { self(ctx).advanceBy(ns); },
      .flush = [](void *, const hw_mem *) {},
  };
  return {&ops, this};
}

inline std::unique_ptr<SimChannel> SimCard::createChannel(SimTsg &tsg, uint64_t va,
                                                          unsigned ring_log2) {
  auto channel = std::make_unique<SimChannel>();
  channel->card_ = this;
  channel->tsg_ = &tsg;
  channel->id_ = takeId(spare_channels_, next_channel_);
  channel->ring_log2_ = ring_log2;
  channel->va_ = va;
  channel->inst_ = allocate(4096, HW_TARGET_VIDMEM);
  channel->userd_ = allocate(512, HW_TARGET_SYSMEM_COHERENT);
  auto *words = static_cast<uint32_t *>(channel->inst_.cpu);
  words[CHIP_RAMFC_USERD] =
      static_cast<uint32_t>(channel->userd_.bus_addr) | HW_TARGET_SYSMEM_COHERENT;
  words[CHIP_RAMFC_USERD + 1] = static_cast<uint32_t>(channel->userd_.bus_addr >> 32);
  words[4] = 0xface;
  words[CHIP_RAMFC_GP_BASE] = static_cast<uint32_t>(va);
  words[CHIP_RAMFC_GP_BASE + 1] = static_cast<uint32_t>(va >> 32) | ring_log2
                                                                        << CHIP_RAMFC_GP_LOG2_SHIFT;
  words[63] = static_cast<uint32_t>(channel->id_) << 16;
  words[CHIP_RAMIN_PDB] = static_cast<uint32_t>(tsg.pdb()) | 1u << 10 | 1u << 11;
  words[CHIP_RAMIN_PDB + 1] = static_cast<uint32_t>(tsg.pdb() >> 32);
  return channel;
}

inline SimTsg &SimCard::createTsg(const TsgOptions &options) {
  auto &tsg = *tsgs_.emplace_back(std::make_unique<SimTsg>());
  tsg.id_ = takeId(spare_tsgs_, next_tsg_);
  tsg.runlist_ = options.runlist;
  tsg.timeout = options.timeout;
  tsg.scale = options.scale;
  tsg.pdb_ = allocate(4096, HW_TARGET_VIDMEM);
  spaces_[tsg.pdb() >> 12] = &tsg;
  for (unsigned i = 0; i < options.channels; i++) addChannel(tsg, options.ring_log2);
  return tsg;
}

inline SimChannel &SimCard::addChannel(SimTsg &tsg, unsigned ring_log2) {
  const uint64_t va = (SimTsg::kVaBase + tsg.space_.size() + 4095) & ~4095ull;
  tsg.channels_.push_back(createChannel(tsg, va, ring_log2));
  SimChannel &added = *tsg.channels_.back();
  tsg.space_.resize(added.endVa() - SimTsg::kVaBase);
  // The space may have moved.
  for (auto &channel : tsg.channels_)
    channel->ring_ = tsg.at(channel->va_, channel->endVa() - channel->va_);
  write32(CHIP_PCCSR + 8u * added.id_,
          static_cast<uint32_t>(added.inst_.bus_addr >> 12) | CHIP_INST_BIND);
  added.enable();
  return added;
}

inline void SimCard::destroyTsg(SimTsg &tsg) {
  for (auto &channel : tsg.channels_) {
    channel->stop();
    channel->on_complete_ = nullptr;
    channel->disable();
  }
  preempt(tsg);
  if (!advanceUntil([&] { return !(read32(CHIP_PREEMPT) & CHIP_PREEMPT_PENDING); },
                    now_ + 10'000'000'000))
    throw std::runtime_error("a TSG that runs uncuttable work cannot be destroyed yet");
  for (auto &channel : tsg.channels_) {
    write32(CHIP_PCCSR + 8u * channel->id_, 0);
    spare_channels_.push_back(channel->id_);
    release(channel->inst_);
    release(channel->userd_);
  }
  spaces_[tsg.pdb() >> 12] = nullptr;
  release(tsg.pdb_);
  spare_tsgs_.push_back(tsg.id_);
  chip_tsg_forget(chip_, tsg.id_);
  std::erase_if(tsgs_, [&](const auto &t) { return t.get() == &tsg; });
}

inline std::vector<SimCard::Entry> SimCard::entriesOf(const std::vector<SimTsg *> &tsgs) {
  std::vector<Entry> entries;
  for (SimTsg *tsg : tsgs) {
    entries.push_back({CHIP_RL0_TSG | uint32_t{tsg->scale} << CHIP_RL0_SCALE_SHIFT |
                           uint32_t{tsg->timeout} << CHIP_RL0_TIMEOUT_SHIFT,
                       static_cast<uint32_t>(tsg->channelCount()), tsg->id(), 0});
    for (size_t i = 0; i < tsg->channelCount(); i++) {
      const hw_channel c = tsg->channel(i).hwChannel();
      entries.push_back({static_cast<uint32_t>(c.userd_addr & 0xffffff00u) |
                             uint32_t{c.inst_target} << 4 | uint32_t{c.userd_target} << 6,
                         static_cast<uint32_t>(c.userd_addr >> 32),
                         static_cast<uint32_t>(c.inst_addr & 0xfffff000u) | c.id,
                         static_cast<uint32_t>(c.inst_addr >> 32)});
    }
  }
  return entries;
}

inline void SimCard::submitEntries(const std::vector<Entry> &entries, uint32_t runlist,
                                   uint32_t offset) {
  const auto bytes = static_cast<uint32_t>(entries.size() * sizeof(Entry));
  hw_mem &mem = list_buffers_[runlist][list_turn_[runlist]++ & 1];
  if (mem.bytes < bytes || !mem.cpu) {
    if (mem.cpu) release(mem);
    mem = allocate(std::max(bytes, 65536u), HW_TARGET_SYSMEM_COHERENT);
  }
  if (bytes) std::memcpy(mem.cpu, entries.data(), bytes);
  submitAt(mem, static_cast<uint32_t>(entries.size()), runlist, offset);
}

inline void SimCard::submitAt(const hw_mem &mem, uint32_t length, uint32_t runlist,
                              uint32_t offset) {
  write32(runlistReg(runlist, CHIP_RUNLIST_BASE_LO),
          static_cast<uint32_t>(mem.bus_addr) | mem.target);
  write32(runlistReg(runlist, CHIP_RUNLIST_BASE_HI), static_cast<uint32_t>(mem.bus_addr >> 32));
  write32(runlistReg(runlist, CHIP_RUNLIST_SUBMIT),
          length | offset << CHIP_RUNLIST_SUBMIT_OFFSET_SHIFT);
}

}  // namespace qgpu::fakes

#endif
