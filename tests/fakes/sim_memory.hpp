// SPDX-License-Identifier: GPL-2.0
//
// sim_memory.hpp - physical memory as the simulated card sees it.
#ifndef QGPU_TESTS_FAKES_SIM_MEMORY_HPP
#define QGPU_TESTS_FAKES_SIM_MEMORY_HPP

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "qgpu_env.h"

extern "C" {
#include "hw/hw_ops.h"
}

namespace qgpu::fakes {

// Memory of the card (target 0) or of the machine (targets 2 and 3): addresses do not overlap,
// so that a wrong target or a lost high word finds nothing.
class SimMemory {
 public:
  static constexpr uint64_t kBytes = 64ull << 20;
  static constexpr uint64_t kSysmemBase = 0x2'4000'0000ull;

  // Mapped, not allocated: pages nobody touches cost nothing, also under a sanitizer.
  SimMemory() {
    void *p = mmap(nullptr, 2 * kBytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    bytes_.reset(static_cast<uint8_t *>(p));
  }

  // Return: where the CPU sees it, or nullptr when it is not memory.
  uint8_t *at(uint32_t target, uint64_t addr, uint64_t bytes) const {
    if (target == HW_TARGET_VIDMEM && addr < kBytes && bytes <= kBytes - addr)
      return bytes_.get() + addr;
    if ((target == HW_TARGET_SYSMEM_COHERENT || target == HW_TARGET_SYSMEM_NONCOHERENT) &&
        addr >= kSysmemBase && addr - kSysmemBase < kBytes &&
        bytes <= kBytes - (addr - kSysmemBase))
      return bytes_.get() + kBytes + (addr - kSysmemBase);
    return nullptr;
  }

  // Zeroed, 4 KiB aligned.
  hw_mem allocate(uint32_t bytes, hw_target target) {
    const uint32_t size = (bytes + 4095u) & ~4095u;
    const bool vidmem = target == HW_TARGET_VIDMEM;
    auto &spare = free_[{vidmem, size}];
    uint64_t &used = vidmem ? vidmem_used_ : sysmem_used_;
    hw_mem mem{};
    if (spare.empty()) {
      if (used + size > kBytes) throw std::bad_alloc();
      mem.bus_addr = used + (vidmem ? 0 : kSysmemBase);
      used += size;
    } else {
      mem.bus_addr = spare.back();
      spare.pop_back();
    }
    mem.bytes = bytes;
    mem.target = target;
    mem.cpu = at(target, mem.bus_addr, bytes);
    std::memset(mem.cpu, 0, bytes);
    return mem;
  }

  void release(const hw_mem &mem) {
    free_[{mem.target == HW_TARGET_VIDMEM, (mem.bytes + 4095u) & ~4095u}].push_back(mem.bus_addr);
  }

 private:
  struct Unmap {
    void operator()(uint8_t *p) const { munmap(p, 2 * kBytes); }
  };
  std::unique_ptr<uint8_t, Unmap> bytes_;
  uint64_t vidmem_used_ = 4096;  // address 0 stays unused: it is what mistakes point to
  uint64_t sysmem_used_ = 4096;
  std::map<std::pair<bool, uint32_t>, std::vector<uint64_t>> free_;
};

}  // namespace qgpu::fakes

#endif
