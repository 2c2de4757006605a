// SPDX-License-Identifier: GPL-2.0
// The cards that qgpu.ko drives. Follows the module through unload and reload.
#pragma once

#include <memory>

#include "card.hpp"
#include "netlink/client.hpp"

namespace qgpu {

class KernelCard final : public Card {
 public:
  // Two sockets: requests wait for their answer, events never do.
  KernelCard(std::unique_ptr<netlink::Wire> requests, std::unique_ptr<netlink::Wire> events);

  static Result<std::unique_ptr<KernelCard>> open();

  Result<std::vector<CardSnapshot>> inventory() override;
  Result<PlanReply> apply(const PlanChange &change) override;
  Result<std::vector<Sample>> samples() override;
  Result<LogPart> log(uint32_t card_index, uint64_t from_serial) override;
  int eventFd() const override { return events_->fd(); }
  EventBatch events() override;

 private:
  // Joins the family's event group; again after the module came back with another number.
  void subscribe(const netlink::Family &family);
  void readMessage(std::span<const uint8_t> message, EventBatch &batch);

  netlink::Client client_;
  std::unique_ptr<netlink::Wire> events_;
  uint16_t family_id_ = 0;     // whose events are read; 0 = none
  uint32_t joined_group_ = 0;  // of that family
};

}  // namespace qgpu
