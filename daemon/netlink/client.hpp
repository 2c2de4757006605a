// SPDX-License-Identifier: GPL-2.0
// The family "qgpu" as function calls. Used by qgpud's KernelCard and, for reading with a dead
// daemon, by qgpuctl. Holds nothing but the wire and the family's number.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "message.hpp"
#include "wire.hpp"

namespace qgpu::netlink {

class Client {
 public:
  explicit Client(std::unique_ptr<Wire> wire);

  // Asks for the family afresh. ENODEV: no such family, the module is not loaded.
  Result<Family> resolve();
  // Forgets the family: the next call asks again.
  void forget() { family_.id = 0; }

  Result<std::vector<CardInfo>> cards();
  Result<std::vector<TenantOfCard>> tenants();
  Result<std::vector<TsgOfCard>> tsgs();
  Result<std::vector<Sample>> samples();
  // EOPNOTSUPP: the module is of a version without a log; EPERM.
  Result<std::vector<LogOfCard>> log();
  Result<PlanReply> planSet(const PlanChange &change);

 private:
  using Messages = std::vector<Bytes>;

  Result<void> ready();
  // Sends and collects all answers up to the acknowledgement. EINTR: a dump that changed under the
  // reader's hands.
  Result<Messages> exchange(Request &request);
  Result<Messages> dump(uint8_t command);

  std::unique_ptr<Wire> wire_;
  Family family_;
  uint32_t sequence_ = 0;
};

// Calls visit(message) for each whole message of a datagram.
void eachMessage(std::span<const uint8_t> datagram,
                 const std::function<void(std::span<const uint8_t>)> &visit);

}  // namespace qgpu::netlink
