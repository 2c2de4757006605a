// SPDX-License-Identifier: GPL-2.0
//
// sim_tenant.hpp - programs that use the simulated card: channels with rings of kernels, in TSGs
// with an address space. Made by SimCard::createTsg(); include sim_card.hpp.
#ifndef QGPU_TESTS_FAKES_SIM_TENANT_HPP
#define QGPU_TESTS_FAKES_SIM_TENANT_HPP

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "qgpu_env.h"

extern "C" {
#include "chip.h"
#include "chip_regs.h"
#include "hw/hw_ops.h"
}

namespace qgpu::fakes {

class SimCard;
class SimTsg;

struct TsgOptions {
  unsigned channels = 1;
  uint8_t timeout = 128;  // slice = (timeout << scale) units of 1024 ns
  uint8_t scale = 3;
  uint32_t runlist = 0;
  unsigned ring_log2 = 10;  // GPFIFO entries of each channel
};

struct Kernel {
  uint64_t duration_ns = 0;
  uint32_t preemption = CHIP_CILP;
  uint32_t block_ns = 0;
};

// A channel and the program that uses it.
class SimChannel {
 public:
  using Source = std::function<Kernel()>;
  using OnComplete = std::function<void(SimChannel &, const chip_completion &)>;

  uint16_t id() const { return id_; }
  uint64_t launched() const { return launched_; }
  uint64_t completed() const { return completed_; }
  uint64_t lastCompletionNs() const { return last_completion_ns_; }
  SimTsg &tsg() const { return *tsg_; }

  // What an image needs of this channel.
  hw_channel hwChannel() const {
    hw_channel c{};
    c.id = id_;
    c.inst_target = HW_TARGET_VIDMEM;
    c.userd_target = HW_TARGET_SYSMEM_COHERENT;
    c.inst_addr = inst_.bus_addr;
    c.userd_addr = userd_.bus_addr;
    return c;
  }

  // Put a kernel in the ring, store GP_PUT and ring. Return: its number, counted from 1.
  uint64_t launch(const Kernel &kernel) {
    const uint64_t number = push(kernel);
    publish();
    ring();
    return number;
  }

  // The steps of launch(), for those who want to get them wrong.
  uint64_t push(const Kernel &kernel);
  void publish() { storeUserd(CHIP_USERD_GP_PUT, put_); }
  void ring();

  // Raw access to what a hostile tenant could write.
  uint64_t ringVa() const { return va_; }
  void writeEntry(uint32_t index, uint32_t word0, uint32_t word1);
  void writeVa(uint64_t va, const void *data, size_t bytes);
  void readVa(uint64_t va, void *data, size_t bytes) const;
  void setGpPut(uint32_t put) {
    put_ = put;
    publish();
  }
  uint32_t gpGet() const {
    uint32_t get;
    std::memcpy(&get, static_cast<uint8_t *>(userd_.cpu) + CHIP_USERD_GP_GET, sizeof(get));
    return get;
  }
  hw_mem &instMemory() { return inst_; }

  // Keep @depth kernels in flight from now on, topped up at each completion.
  void saturate(const Kernel &kernel, unsigned depth = 4) {
    saturate([kernel] { return kernel; }, depth);
  }
  void saturate(Source source, unsigned depth = 4) {
    source_ = std::move(source);
    depth_ = depth;
    gap_ns_ = kNoGap;
    refill();
  }
  // Launch one, wait for it, pause for @gap_ns, again.
  void syncLaunch(const Kernel &kernel, uint64_t gap_ns) {
    source_ = [kernel] { return kernel; };
    depth_ = 1;
    gap_ns_ = gap_ns;
    refill();
  }
  // Launch nothing more; what is in flight stays.
  void stop() { source_ = nullptr; }
  // Called at each completion, before the program launches what follows.
  void onComplete(OnComplete fn) { on_complete_ = std::move(fn); }

  void enable();
  void disable();

 private:
  friend class SimCard;
  static constexpr uint64_t kNoGap = ~0ull;

  void refill() {
    bool any = false;
    while (source_ && launched_ - completed_ < depth_) {
      push(source_());
      any = true;
    }
    if (!any) return;
    publish();
    ring();
  }
  void completedOne(const chip_completion &completion);
  void storeUserd(uint32_t offset, uint32_t value) {
    std::memcpy(static_cast<uint8_t *>(userd_.cpu) + offset, &value, sizeof(value));
  }
  uint64_t kernelsVa() const { return va_ + entries() * CHIP_GP_ENTRY_BYTES; }
  uint64_t completionsVa() const { return kernelsVa() + entries() * sizeof(chip_kernel); }
  uint64_t endVa() const { return completionsVa() + entries() * sizeof(chip_completion); }
  uint64_t entries() const { return 1ull << ring_log2_; }

  SimCard *card_ = nullptr;
  SimTsg *tsg_ = nullptr;
  uint16_t id_ = 0;
  unsigned ring_log2_ = 0;
  uint64_t va_ = 0;
  uint8_t *ring_ = nullptr;  // CPU view of va_
  hw_mem inst_{}, userd_{};
  uint32_t put_ = 0;
  uint64_t launched_ = 0, completed_ = 0, last_completion_ns_ = 0;
  Source source_;
  unsigned depth_ = 0;
  uint64_t gap_ns_ = kNoGap;
  OnComplete on_complete_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // timers may outlive a channel
};

// A TSG with its address space. The slice fields are what submit() will write.
class SimTsg {
 public:
  static constexpr uint64_t kVaBase = 0x7f'0000'0000ull;

  uint16_t id() const { return id_; }
  uint32_t runlist() const { return runlist_; }
  uint64_t pdb() const { return pdb_.bus_addr; }
  SimChannel &channel(size_t i = 0) { return *channels_.at(i); }
  size_t channelCount() const { return channels_.size(); }
  uint64_t sliceNs() const { return (static_cast<uint64_t>(timeout) << scale) * 1024; }

  uint8_t timeout = 128, scale = 3;

 private:
  friend class SimCard;
  friend class SimChannel;

  uint8_t *at(uint64_t va, uint64_t bytes) {
    if (va < kVaBase || va - kVaBase >= space_.size() || bytes > space_.size() - (va - kVaBase))
      return nullptr;
    return space_.data() + (va - kVaBase);
  }

  uint16_t id_ = 0;
  uint32_t runlist_ = 0;
  hw_mem pdb_{};
  std::vector<uint8_t> space_;
  std::vector<std::unique_ptr<SimChannel>> channels_;
};

}  // namespace qgpu::fakes

#endif
