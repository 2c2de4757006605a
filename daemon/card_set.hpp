// SPDX-License-Identifier: GPL-2.0
// The cards of qgpu.ko and those of method rm as one Card. A card that rm has is rm's alone: what
// the module says of it is left out, and rm is held off it while the module enforces anything
// there.
#pragma once

#include <set>

#include "card.hpp"
#include "rm_card.hpp"
#include "unique_fd.hpp"

namespace qgpu {

class CardSet final : public Card {
 public:
  // Both must live as long.
  CardSet(Card &module, RmCard &rm);

  Result<std::vector<CardSnapshot>> inventory() override;
  Result<PlanReply> apply(const PlanChange &change) override;
  Result<std::vector<Sample>> samples() override;
  Result<LogPart> log(uint32_t card_index, uint64_t from_serial) override;
  int eventFd() const override { return epoll_.get(); }
  EventBatch events() override;

 private:
  void noteConflicts(const std::vector<CardSnapshot> &module_cards);

  Card &module_;
  RmCard &rm_;
  UniqueFd epoll_;
  std::string rm_error_;  // said last
};

}  // namespace qgpu
