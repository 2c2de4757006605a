// SPDX-License-Identifier: GPL-2.0
// A kernel that keeps the contract of include/uapi/linux/qgpu.h, in two depths: FakeCard answers
// the Card interface, FakeWire answers netlink messages byte by byte (decoded with libnl, not with
// the code under test). Both record what was asked and fail by name when told to.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "card.hpp"
#include "netlink/message.hpp"
#include "netlink/wire.hpp"

namespace qgpu::fakes {

// What is guilty in a refused plan, so that FakeWire can point at the attribute.
struct Guilt {
  std::string tenant;  // empty = the plan itself
  int attribute = 0;
};

class FakeWire;

class FakeKernel {
 public:
  // Adds a card with the tenant "default"; returns its index.
  uint32_t addCard(const std::string &uuid);
  CardSnapshot &card(uint32_t index) { return cards.at(index); }
  TenantStatus *findTenant(uint32_t index, const std::string &name);

  // The module goes, with all plans; or comes, with another family number and fresh cards.
  void unload();
  void load();

  Result<PlanReply> planSet(const PlanChange &change, Guilt *guilt = nullptr);
  // Somebody else than the daemon writes a plan.
  void foreignChange(uint32_t index, const std::string &tenant, uint32_t weight);
  void emit(CardEvent event);

  // Fails the next `times` calls of "plan_set", "inventory" or "samples".
  void failNext(const std::string &what, Error error, int times = 1);

  std::map<uint32_t, CardSnapshot> cards;
  std::map<uint32_t, uint64_t> cycle_overrides;
  std::vector<Sample> samples;
  std::vector<netlink::LogOfCard> log;
  bool loaded = true;
  bool admin = true;  // what the caller is
  bool obeys = true;  // false: says yes to every plan and does nothing
  uint16_t family_id = 0x1c;
  uint32_t events_group = 7;
  std::vector<PlanChange> plans;  // asked, dry runs and refused ones included
  int plans_committed = 0;
  int inventories = 0;

  // Message level.
  int interrupt_dumps = 0;  // so many dumps report that they changed meanwhile
  bool lose_next_answer = false;
  bool unloading = false;  // dumps are refused as the kernel does while a module goes
  std::vector<FakeWire *> listeners;
  std::function<void()> before_plan_set;  // a race: runs before the plan is looked at

  std::optional<Error> takeFailure(const std::string &what);

 private:
  Result<void> validate(const CardSnapshot &card, const PlanChange &change, Guilt &guilt) const;

  std::map<std::string, std::deque<Error>> failures_;
  uint32_t next_tenant_id_ = 2;
};

class FakeCard final : public Card {
 public:
  explicit FakeCard(FakeKernel &kernel) : kernel_(kernel) {}

  Result<std::vector<CardSnapshot>> inventory() override;
  Result<PlanReply> apply(const PlanChange &change) override;
  Result<std::vector<Sample>> samples() override;
  // As an executor's: the kernel's log in parts.
  Result<LogPart> log(uint32_t card_index, uint64_t from_serial) override;
  int eventFd() const override { return -1; }
  EventBatch events() override;

  EventBatch pending;
  size_t log_part = 100;

 private:
  FakeKernel &kernel_;
};

// One netlink socket of the fake kernel.
class FakeWire final : public netlink::Wire {
 public:
  explicit FakeWire(FakeKernel &kernel);
  ~FakeWire() override;

  int fd() const override { return -1; }
  Result<void> send(std::span<const uint8_t> message) override;
  Result<netlink::Bytes> receive() override;
  Result<void> join(uint32_t group) override;

  // A datagram as it is; ENOBUFS comes before what is queued.
  void push(netlink::Bytes datagram) { queue_.push_back(std::move(datagram)); }
  void pushEvent(const CardEvent &event);
  void pushFamily(uint8_t controller_command);
  void overflow() { overflowed_ = true; }

  std::vector<uint32_t> groups;
  netlink::Bytes last_request;

 private:
  void answerController(std::span<const uint8_t> message);
  void answerFamily(std::span<const uint8_t> message);
  void answerDump(std::span<const uint8_t> message, uint8_t command);
  void answerPlanSet(std::span<const uint8_t> message);
  void acknowledge(std::span<const uint8_t> message, const Error &error, uint32_t offset);

  FakeKernel &kernel_;
  std::deque<netlink::Bytes> queue_;
  bool overflowed_ = false;
};

}  // namespace qgpu::fakes
