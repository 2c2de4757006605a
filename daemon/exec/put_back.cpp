// SPDX-License-Identifier: GPL-2.0
#include "put_back.hpp"

#include "process.hpp"
#include "rm_abi.hpp"

namespace qgpu::exec {
namespace {

constexpr uint64_t kLookMaxNs = 5'000'000'000;

void putBackOne(RmClient &own, Controls &controls, const Stored &stored, const ProcessId &id) {
  const auto pidfd = openProcess(id);
  if (!pidfd) return;
  Process process(own, id.pid, *pidfd, rm::kClientBase, monotonicNs());
  const uint64_t until_ns = monotonicNs() + kLookMaxNs;
  do process.step(monotonicNs());
  while (process.looks() && monotonicNs() < until_ns);
  for (const Tsg &tsg : process.tsgs()) {
    const std::vector<GatedChannel> channels = channelsOf(process.foreign(), tsg);
    (void)controls.enable(channels);
    controls.ring(channels);
    if (const uint64_t us = stored.foundUs(id, tsg.handle))
      (void)controls.setTimeslice(process.foreign(), tsg, us);
  }
}

}  // namespace

void putBack(RmClient &own, Controls &controls, const Stored &stored) {
  for (const StoredProcess &named : stored.processes) putBackOne(own, controls, stored, named.id);
}

}  // namespace qgpu::exec
