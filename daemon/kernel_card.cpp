// SPDX-License-Identifier: GPL-2.0
// Turns the family's messages into snapshots, and its events plus those of the generic netlink
// controller (family came, family went) into batches. Decides nothing.
#include "kernel_card.hpp"

#include <linux/genetlink.h>
#include <linux/netlink.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace qgpu {

namespace {

// The controller's own multicast group "notify" has the controller's id (genetlink, since 2.6.19).
constexpr uint32_t kControllerGroup = GENL_ID_CTRL;
constexpr int kDatagramsPerCall = 256;

}  // namespace

KernelCard::KernelCard(std::unique_ptr<netlink::Wire> requests,
                       std::unique_ptr<netlink::Wire> events)
    : client_(std::move(requests)), events_(std::move(events)) {
  // Without the controller's events a reload of the module is still found by the periodic look.
  (void)events_->join(kControllerGroup).ok();
}

Result<std::unique_ptr<KernelCard>> KernelCard::open() {
  auto requests = netlink::openWire(netlink::WireKind::kRequests);
  if (!requests) return requests.error();
  auto events = netlink::openWire(netlink::WireKind::kEvents);
  if (!events) return events.error();
  return std::make_unique<KernelCard>(std::move(*requests), std::move(*events));
}

void KernelCard::subscribe(const netlink::Family &family) {
  family_id_ = family.id;
  if (family.events_group == 0 || family.events_group == joined_group_) return;
  if (events_->join(family.events_group)) joined_group_ = family.events_group;
}

Result<std::vector<CardSnapshot>> KernelCard::inventory() {
  // The number is asked for each time: events may be lost, and a stale one must not be believed.
  auto family = client_.resolve();
  if (!family) {
    family_id_ = 0;
    joined_group_ = 0;
    return family.error();
  }
  subscribe(*family);

  auto cards = client_.cards();
  if (!cards) return cards.error();
  auto tenants = client_.tenants();
  if (!tenants) return tenants.error();

  std::vector<CardSnapshot> snapshots;
  for (CardInfo &info : *cards) snapshots.push_back({std::move(info), {}});
  for (netlink::TenantOfCard &found : *tenants) {
    auto at = std::find_if(snapshots.begin(), snapshots.end(), [&](const CardSnapshot &card) {
      return card.info.index == found.card_index;
    });
    if (at != snapshots.end()) at->tenants.push_back(std::move(found.tenant));
  }
  return snapshots;
}

Result<PlanReply> KernelCard::apply(const PlanChange &change) { return client_.planSet(change); }

Result<std::vector<Sample>> KernelCard::samples() { return client_.samples(); }

Result<LogPart> KernelCard::log(uint32_t card_index, uint64_t) {
  return Error{EOPNOTSUPP, "the module's log is read from the kernel", std::to_string(card_index)};
}

void KernelCard::readMessage(std::span<const uint8_t> message, EventBatch &batch) {
  auto incoming = netlink::readIncoming(message);
  if (!incoming) return;
  if (incoming->type == GENL_ID_CTRL) {
    std::string name;
    if (!netlink::readFamily(*incoming, &name) || name != QGPU_GENL_NAME) return;
    if (incoming->command != CTRL_CMD_NEWFAMILY && incoming->command != CTRL_CMD_DELFAMILY) return;
    client_.forget();
    family_id_ = 0;
    joined_group_ = 0;
    batch.driver_changed = true;
    return;
  }
  if (family_id_ == 0 || incoming->type != family_id_ || incoming->command != QGPU_CMD_EVENT)
    return;
  if (auto event = netlink::readEvent(*incoming))
    batch.events.push_back(std::move(*event));
  else
    batch.lost = true;
}

EventBatch KernelCard::events() {
  EventBatch batch;
  for (int i = 0; i < kDatagramsPerCall; ++i) {
    auto datagram = events_->receive();
    if (!datagram) {
      if (datagram.error().err == EAGAIN) break;
      batch.lost = true;
      // An overflow is reported once, then reading goes on.
      if (datagram.error().err == ENOBUFS) continue;
      break;
    }
    netlink::eachMessage(*datagram,
                         [&](std::span<const uint8_t> message) { readMessage(message, batch); });
  }
  return batch;
}

}  // namespace qgpu
