// SPDX-License-Identifier: GPL-2.0
#include "ledger.hpp"

#include <algorithm>

namespace qgpu {

uint64_t CardLedger::elapsedNs() const {
  return totals.time_ns - std::min(totals.since_ns, totals.time_ns);
}

uint64_t CardLedger::tenantsNs() const {
  uint64_t run_ns = 0;
  for (const auto &[id, tenant] : tenants) run_ns += tenant.run_ns;
  return run_ns;
}

int64_t CardLedger::unaccountedNs() const {
  const uint64_t counted_ns = tenantsNs() + nobody_ns + totals.switch_ns + totals.idle_ns;
  return static_cast<int64_t>(elapsedNs() - counted_ns);
}

void Ledger::update(const std::vector<Sample> &samples, uint64_t now_ns) {
  std::map<uint32_t, CardLedger> fresh;
  for (const Sample &sample : samples) {
    CardLedger &card = fresh[sample.card_index];
    card.read_ns = now_ns;
    if (!sample.tenant_id)
      card.totals = sample;
    else if (*sample.tenant_id == QGPU_TENANT_NOBODY)
      card.nobody_ns = sample.run_ns;
    else
      card.tenants[*sample.tenant_id] = sample;
  }
  for (auto &[index, card] : fresh) cards_[index] = std::move(card);
}

const CardLedger *Ledger::card(uint32_t index) const {
  auto found = cards_.find(index);
  return found == cards_.end() ? nullptr : &found->second;
}

}  // namespace qgpu
