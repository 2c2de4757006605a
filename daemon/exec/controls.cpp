// SPDX-License-Identifier: GPL-2.0
#include "controls.hpp"

#include <algorithm>
#include <cerrno>

#include "rm_abi.hpp"

namespace qgpu::exec {
namespace {

constexpr uint32_t kPreemptTimeoutUs = 1'000'000;

}  // namespace

Result<void> Controls::done(const RmOutcome &out, const std::string &what) {
  counts_.issued++;
  counts_.slowest_ns = std::max(counts_.slowest_ns, out.took_ns);
  if (out.ok()) return {};
  counts_.refused++;
  last_status_ = out.status;
  return out.error(what);
}

Result<uint64_t> Controls::timesliceUs(const Foreign &of, const Tsg &tsg) {
  uint64_t us = 0;
  const auto out =
      done(rmControl(own_.io(), of.fd, of.client, tsg.handle, rm::kCtrlTsgGetTimeslice, us),
           "GET_TIMESLICE");
  if (!out) return out.error();
  return us;
}

Result<void> Controls::setTimeslice(const Foreign &of, const Tsg &tsg, uint64_t us) {
  return done(rmControl(own_.io(), of.fd, of.client, tsg.handle, rm::kCtrlTsgSetTimeslice, us),
              "SET_TIMESLICE");
}

Result<void> Controls::preempt(const Foreign &of, const Tsg &tsg) {
  rm::Preempt params{};
  params.wait = 1;
  params.manual_timeout = 1;
  params.timeout_us = kPreemptTimeoutUs;
  return done(rmControl(own_.io(), of.fd, of.client, tsg.handle, rm::kCtrlTsgPreempt, params),
              "PREEMPT");
}

std::vector<GatedChannel> channelsOf(const Foreign &of, const Tsg &tsg) {
  std::vector<GatedChannel> out;
  for (const Channel &channel : tsg.channels)
    out.push_back({of.client, channel.handle, channel.token});
  return out;
}

Result<void> Controls::gate(std::span<const GatedChannel> channels, bool disable) {
  Result<void> all;
  for (size_t at = 0; at < channels.size(); at += rm::kDisableChannelsMax) {
    const auto part =
        channels.subspan(at, std::min<size_t>(channels.size() - at, rm::kDisableChannelsMax));
    rm::DisableChannels params{};
    params.disable = disable;
    params.count = static_cast<uint32_t>(part.size());
    for (size_t i = 0; i < part.size(); i++) {
      params.clients[i] = part[i].client;
      params.channels[i] = part[i].channel;
    }
    const auto out =
        done(own_.control(own_.subdevice(), rm::kCtrlFifoDisableChannels, &params, sizeof(params)),
             disable ? "FIFO_DISABLE_CHANNELS" : "enabling channels");
    if (!out) all = out;
  }
  return all;
}

Result<void> Controls::disable(std::span<const GatedChannel> channels) {
  return gate(channels, true);
}

Result<void> Controls::enable(std::span<const GatedChannel> channels) {
  const auto out = gate(channels, false);
  uint32_t client = 0;
  for (const GatedChannel &channel : channels) {
    if (channel.client != client) own_.ring(channel.token);
    client = channel.client;
  }
  return out;
}

void Controls::ring(std::span<const GatedChannel> channels) {
  for (const GatedChannel &channel : channels) own_.ring(channel.token);
}

}  // namespace qgpu::exec
