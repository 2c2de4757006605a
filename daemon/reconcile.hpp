// SPDX-License-Identifier: GPL-2.0
// Desired − observed = delta, sent until nothing differs. Level-triggered: after any doubt
// everything is read again. A card that already is as desired gets no message: that is how a
// restart adopts.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "card.hpp"
#include "policy.hpp"
#include "state.hpp"

namespace qgpu {

// The whole difference as one transaction. cycle_in_force: absent = not known. Pure.
PlanChange diff(const DesiredCard &desired, const CardSnapshot &observed,
                std::optional<uint64_t> cycle_in_force);

class Reconciler {
 public:
  // cycles is part of the daemon's state; remember() stores it before this returns.
  Reconciler(Card &card, std::map<std::string, CycleRecord> &cycles,
             std::function<void()> remember);

  // Forgets what was observed: the next observe() reads all.
  void invalidate() { fresh_ = false; }
  bool fresh() const { return fresh_; }

  // Reads everything unless it is known to be fresh.
  Result<void> observe();
  const std::vector<CardSnapshot> &observed() const { return observed_; }
  const CardSnapshot *find(const std::string &uuid) const;

  // Sends differences until every desired card is as desired or refuses. Empty = all converged;
  // else what each card (by uuid) said. The observed state is true afterwards.
  std::map<std::string, Error> converge(const DesiredState &desired);

  // What converge() would send first, without sending; with the card's own opinion of it.
  Result<PlanReply> dryRun(const DesiredCard &desired);

  uint64_t plansSent() const { return plans_sent_; }

 private:
  Result<void> convergeCard(const DesiredCard &desired);
  std::optional<uint64_t> cycleInForce(const CardSnapshot &card) const;
  Result<void> send(const PlanChange &change, const std::string &uuid);
  void merge(CardSnapshot &card, const PlanChange &change, PlanReply reply);

  Card &card_;
  std::map<std::string, CycleRecord> &cycles_;
  std::function<void()> remember_;
  std::vector<CardSnapshot> observed_;
  bool fresh_ = false;
  uint64_t plans_sent_ = 0;
};

}  // namespace qgpu
