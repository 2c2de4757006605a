// SPDX-License-Identifier: GPL-2.0
//
// chip_driver.hpp - what a driver does to the simulated card when work on it fails (hardware page
// 10.6): the sequence, its deadlines, and whether it got the runlist back.
#ifndef QGPU_TESTS_UNIT_CHIP_DRIVER_HPP
#define QGPU_TESTS_UNIT_CHIP_DRIVER_HPP

#include "fakes/sim_card.hpp"

extern "C" {
#include "chip_fault.h"
}

namespace qgpu::fakes {

constexpr uint64_t kRecoveryPatienceNs = 2'000'000'000;

inline uint32_t statusCode(uint32_t status) { return (status >> 13) & 7; }
inline uint32_t pbdmaBase(uint32_t pbdma) { return CHIP_PBDMA_REGS + CHIP_PBDMA_STRIDE * pbdma; }

// Clears what stops the PBDMAs of a runlist from letting go. Return: all of them are empty.
inline bool servePbdmas(SimCard &card, uint32_t runlist) {
  bool empty = true;
  for (uint32_t p = 0; p < CHIP_PBDMAS; p++) {
    if (!(card.read32(CHIP_PBDMA_MAP + 4 * p) & 1u << runlist)) continue;
    const uint32_t pending = card.read32(pbdmaBase(p) + CHIP_PBDMA_INTR_0);
    if (pending) card.write32(pbdmaBase(p) + CHIP_PBDMA_INTR_0, pending);
    empty &= statusCode(card.read32(CHIP_PBDMA_STATUS + 4 * p)) == CHIP_STATUS_INVALID;
  }
  return empty;
}

// PMC_ENABLE off and on for one engine; @bit as its PTOP entry says.
inline void resetEngine(SimCard &card, uint32_t bit) {
  const uint32_t enabled = card.read32(CHIP_PMC_ENABLE);
  card.write32(CHIP_PMC_ENABLE, enabled & ~bit);
  card.write32(CHIP_PMC_ENABLE, enabled | bit);
}

struct RunlistUnits {
  uint32_t runlist, engine, reset_bit;
};
constexpr RunlistUnits kGraphicsUnits = {0, 0, 1u << 12}, kCopyUnits = {1, 3, 1u << 21};

enum class Recovery { kLeft, kEngineReset, kGaveUp };

// Stop the runlist, disable the TSG's channels, preempt whatever is there, wait for the PBDMA,
// reset an engine that does not let go, clear the faults, let the runlist go on. The TSG's
// channels stay disabled; it is for the caller to take it off its list.
// @pass lets time pass: others may act in it.
template <typename Pass>
Recovery recover(SimCard &card, SimTsg &tsg, const RunlistUnits &units, Pass pass) {
  const uint32_t runlist_bit = 1u << units.runlist;
  const uint64_t deadline = card.nowNs() + kRecoveryPatienceNs;
  card.write32(CHIP_SCHED_DISABLE, card.read32(CHIP_SCHED_DISABLE) | runlist_bit);
  for (size_t i = 0; i < tsg.channelCount(); i++) tsg.channel(i).disable();
  card.write32(CHIP_RUNLIST_PREEMPT, runlist_bit);
  while (!servePbdmas(card, units.runlist)) {
    if (card.nowNs() >= deadline) {
      card.write32(CHIP_SCHED_DISABLE, card.read32(CHIP_SCHED_DISABLE) & ~runlist_bit);
      return Recovery::kGaveUp;
    }
    pass(10'000);
  }
  pass(200'000);  // what can be saved is saved by then
  Recovery how = Recovery::kLeft;
  const uint32_t code = statusCode(card.engineStatus(units.engine));
  if (code != CHIP_STATUS_INVALID) {
    resetEngine(card, units.reset_bit);
    how = Recovery::kEngineReset;
  }
  for (size_t i = 0; i < tsg.channelCount(); i++)
    card.write32(CHIP_PCCSR + 8u * tsg.channel(i).id() + CHIP_PCCSR_CHANNEL,
                 CHIP_CH_PBDMA_FAULTED | CHIP_CH_ENG_FAULTED);
  card.write32(CHIP_SCHED_DISABLE, card.read32(CHIP_SCHED_DISABLE) & ~runlist_bit);
  return how;
}

inline int fail(SimCard &card, const SimChannel &channel, enum chip_fault fault) {
  return chip_fault(card.model(), card.nowNs(), channel.id(), fault);
}

inline Recovery recover(SimCard &card, SimTsg &tsg, const RunlistUnits &units = kGraphicsUnits) {
  return recover(card, tsg, units, [&](uint64_t ns) { card.advanceBy(ns); });
}

// chip_trouble, of which only what matters has to be named.
struct Trouble {
  uint32_t preempt_stuck = 0, pbdma_stuck = 0, save_stuck = 0, load_stuck = 0;
  uint32_t fetch_stuck = 0, fetch_garbled = 0, doorbell_late_ns = 0;
  std::vector<chip_refusal> refused = {};
};

inline void setTrouble(SimCard &card, const Trouble &trouble = {}) {
  chip_trouble out{};
  out.preempt_stuck = trouble.preempt_stuck;
  out.pbdma_stuck = trouble.pbdma_stuck;
  out.save_stuck = trouble.save_stuck;
  out.load_stuck = trouble.load_stuck;
  out.fetch_stuck = trouble.fetch_stuck;
  out.fetch_garbled = trouble.fetch_garbled;
  out.doorbell_late_ns = trouble.doorbell_late_ns;
  std::copy(trouble.refused.begin(), trouble.refused.end(), out.refused);
  chip_trouble_set(card.model(), card.nowNs(), &out);
}

inline void setPresence(SimCard &card, chip_presence presence) {
  chip_presence_set(card.model(), card.nowNs(), presence);
}

}  // namespace qgpu::fakes

#endif
