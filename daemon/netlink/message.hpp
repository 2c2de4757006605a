// SPDX-License-Identifier: GPL-2.0
// Messages of the family "qgpu" to and from plain structs: nothing here sends anything. Requests
// are written with libnl; what comes in is checked for length and type before it is believed.
#pragma once

#include <netlink/attr.h>
#include <netlink/msg.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "../card.hpp"
#include "wire.hpp"

namespace qgpu::netlink {

// A request under construction.
class Request {
 public:
  // flags: NLM_F_* besides NLM_F_REQUEST.
  Request(uint16_t family, uint8_t command, uint8_t version, uint16_t flags);
  // The same with room for so many bytes.
  Request(uint16_t family, uint8_t command, uint8_t version, uint16_t flags, size_t bytes);

  void u32(int attribute, uint32_t value);
  void u64(int attribute, uint64_t value);
  void string(int attribute, const std::string &value);
  void binary(int attribute, std::span<const uint8_t> value);

  template <class Body>
  void nest(int attribute, Body body) {
    nlattr *start = nla_nest_start(message_.get(), attribute | NLA_F_NESTED);
    if (!start) {
      overflow_ = true;
      return;
    }
    body();
    if (nla_nest_end(message_.get(), start) < 0) overflow_ = true;
  }

  // E2BIG: does not fit a netlink message (a nest holds 64 KiB).
  Result<Bytes> finish(uint32_t sequence);

 private:
  struct Free {
    void operator()(nl_msg *message) const { nlmsg_free(message); }
  };
  std::unique_ptr<nl_msg, Free> message_;
  bool overflow_ = false;
};

// One message of the family as it came in: command and attributes.
struct Incoming {
  uint16_t type = 0;  // netlink type = family id
  uint8_t command = 0;
  std::span<const uint8_t> attributes;
};

// Splits a datagram's message; EBADMSG when it is too short for its header.
Result<Incoming> readIncoming(std::span<const uint8_t> message);

// The family's identity, from the controller.
struct Family {
  uint16_t id = 0;
  uint32_t version = 0;
  uint32_t events_group = 0;  // 0 = has none
};
Result<Family> readFamily(const Incoming &incoming, std::string *name);

void writePlan(Request &request, const PlanChange &change);
// Room that a request with this plan needs.
size_t planBytes(const PlanChange &change);

Result<CardInfo> readCard(const Incoming &incoming);
struct TenantOfCard {
  uint32_t card_index = 0;
  TenantStatus tenant;
};
Result<TenantOfCard> readTenant(const Incoming &incoming);
struct TsgOfCard {
  uint32_t card_index = 0;
  TsgStatus tsg;
};
Result<TsgOfCard> readTsg(const Incoming &incoming);
Result<PlanReply> readPlan(const Incoming &incoming);
Result<Sample> readSample(const Incoming &incoming);
struct LogOfCard {
  uint32_t card_index = 0;
  LogRecord record;
};
Result<LogOfCard> readLog(const Incoming &incoming);
Result<CardEvent> readEvent(const Incoming &incoming);

}  // namespace qgpu::netlink
