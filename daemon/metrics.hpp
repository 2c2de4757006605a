// SPDX-License-Identifier: GPL-2.0
// Rates from cumulative counters: every rate that is shown is computed here, none in the kernel.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "card.hpp"

namespace qgpu {

// One tenant over the last interval.
struct Rates {
  uint64_t interval_ns = 0;
  uint32_t share_ppm = 0;  // of the time delivered to tenants
  uint32_t use_ppm = 0;    // of wall time
  uint32_t error_ppm = 0;  // bound of the error of share_ppm
  uint32_t source = QGPU_SOURCE_INFERRED;
  uint32_t work_ppm = 0;       // of wall time it had work
  uint32_t throttled_ppm = 0;  // of wall time it had work and had used up its share
  bool new_plan = false;       // the plan changed within the interval: it is of no one plan
  // It has been waiting for so long at least, ceilings' pauses apart; 0: it ran in the interval.
  uint64_t waiting_ns = 0;
  // Since counting began, counted_ns ago.
  uint64_t counted_ns = 0;
  uint64_t run_ns = 0;
  uint64_t wait_ns = 0;
  uint64_t wait_max_ns = 0;  // the longest single one that is over
  uint64_t hangs = 0;
};

// Of a card's time over the interval that the rates of its tenants are of, what they did not get.
struct CardRates {
  uint64_t interval_ns = 0;
  uint32_t idle_ppm = 0, switch_ppm = 0, nobody_ppm = 0;
};

// What the settings of a card's plan are, as a number that another plan has not: by card. Cgroups
// come and go without a new one.
using PlanMarks = std::map<uint32_t, uint64_t>;
PlanMarks planMarksOf(const std::vector<CardSnapshot> &cards);

class Metrics {
 public:
  // Takes one dump of all counters, with the plans that are in force. A shorter interval than 0.5 s
  // since the last dump is not a new one: it would make the rates noise.
  void update(const std::vector<Sample> &samples, const PlanMarks &plans = {});
  // Forgets everything, for example when the driver was reloaded.
  void clear();

  std::optional<Rates> tenant(uint32_t card_index, uint32_t tenant_id) const;
  // Absent: there is no interval yet.
  std::optional<CardRates> card(uint32_t card_index) const;

 private:
  using Key = std::pair<uint32_t, uint32_t>;  // card, tenant
  struct CardSamples {
    const Sample *totals = nullptr;
    std::vector<const Sample *> tenants;
  };
  void updateCard(uint32_t card, const CardSamples &samples, uint64_t plan);
  void updateTotals(uint32_t card, const CardSamples &samples);
  Rates ratesOf(const Sample &now, uint64_t delivered_ns) const;
  bool isNewPlan(uint32_t card, uint64_t plan) const;
  const Sample *formerOf(const Sample &now) const;

  std::map<Key, Sample> last_;
  std::map<Key, Rates> rates_;
  std::map<uint32_t, Sample> last_totals_;
  std::map<uint32_t, CardRates> card_rates_;
  PlanMarks plans_;  // at the last dump
};

}  // namespace qgpu
