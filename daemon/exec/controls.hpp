// SPDX-License-Identifier: GPL-2.0
// What the executor does to a tenant's objects: slices, preemption, gates, doorbells. Nothing else
// in the executor issues a control that changes something.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "objects.hpp"
#include "rm_client.hpp"

namespace qgpu::exec {

// A client that is not ours, through a duplicate of its control node.
struct Foreign {
  int fd = -1;
  uint32_t client = 0;
  uint32_t subdevice = 0;
};

// A channel of any client. The control that gates takes channels of several clients at once and
// needs no descriptor of theirs: it is issued on the executor's own subdevice.
struct GatedChannel {
  uint32_t client = 0, channel = 0, token = 0;
};

std::vector<GatedChannel> channelsOf(const Foreign &of, const Tsg &tsg);

struct ControlCounts {
  uint64_t issued = 0, refused = 0;
  uint64_t slowest_ns = 0;
};

class Controls {
 public:
  explicit Controls(RmClient &own) : own_(own) {}

  Result<uint64_t> timesliceUs(const Foreign &of, const Tsg &tsg);
  Result<void> setTimeslice(const Foreign &of, const Tsg &tsg, uint64_t us);
  // Takes it off the engine and waits for that; with work it comes back in its turn.
  Result<void> preempt(const Foreign &of, const Tsg &tsg);
  // Stops the channels, with preemption, so that a running kernel is cut.
  Result<void> disable(std::span<const GatedChannel> channels);
  // Lets them run again and rings one of each client: without a ring, channels that submit nothing
  // more may not be looked at.
  Result<void> enable(std::span<const GatedChannel> channels);
  void ring(std::span<const GatedChannel> channels);

  const ControlCounts &counts() const { return counts_; }
  // Of the last call that failed.
  uint32_t lastStatus() const { return last_status_; }

 private:
  Result<void> gate(std::span<const GatedChannel> channels, bool disable);
  Result<void> done(const RmOutcome &out, const std::string &what);

  RmClient &own_;
  ControlCounts counts_;
  uint32_t last_status_ = 0;
};

}  // namespace qgpu::exec
