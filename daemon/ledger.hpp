// SPDX-License-Identifier: GPL-2.0
// The one ledger that every view shows: what the cards counted, as they counted it. All numbers are
// cumulative and of one instant per card; whoever wants a rate takes the difference of two
// readings.
//
//   elapsed = sum of the tenants' run + nobody + switching + idle + unaccounted
//
// Unaccounted is the time in which nobody looked: before the card's slot was taken, or under method
// rm what NVML's samples do not say. What removed tenants ran is nobody's from then on; how much
// that is the card says (totals.removed_ns).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "card.hpp"

namespace qgpu {

// One card at one instant.
struct CardLedger {
  uint64_t read_ns = 0;  // when it came, by the reader's clock
  Sample totals;         // of the card; its time and generation are those of all
  uint64_t nobody_ns = 0;
  std::map<uint32_t, Sample> tenants;  // by id

  uint64_t elapsedNs() const;
  uint64_t tenantsNs() const;
  // Below 0: more was counted than time has passed, which is a mistake of who counts.
  int64_t unaccountedNs() const;
};

class Ledger {
 public:
  // Takes one dump. A card that is not in it keeps what it had, and its read_ns.
  void update(const std::vector<Sample> &samples, uint64_t now_ns);
  void clear() { cards_.clear(); }

  // Null: nothing was read of this card.
  const CardLedger *card(uint32_t index) const;

 private:
  std::map<uint32_t, CardLedger> cards_;
};

}  // namespace qgpu
