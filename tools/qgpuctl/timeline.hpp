// SPDX-License-Identifier: GPL-2.0
// The scheduler's log as lines, as JSON and as a trace for Perfetto or chrome://tracing. No input,
// no output.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "netlink/message.hpp"

namespace qgpu::ctl {

// Names of tenants by card and id; of one that is gone: "tenant 7".
class TenantNames {
 public:
  explicit TenantNames(const nlohmann::json &status);
  std::string of(uint32_t card, uint32_t id) const;

 private:
  std::map<std::pair<uint32_t, uint32_t>, std::string> names_;
};

// Records of several readings of the rings as one log: each once, in the order of their serials,
// and how many were overwritten between two readings. A log that began anew is another one.
class LogCollector {
 public:
  // What is over and new, card by card.
  std::vector<netlink::LogOfCard> add(const std::vector<netlink::LogOfCard> &reading);
  // What was on at the last reading.
  const std::vector<netlink::LogOfCard> &ongoing() const { return ongoing_; }
  // Since the first reading.
  uint64_t lost() const { return lost_; }
  // The cards whose log another one had taken the place of at the last reading.
  const std::vector<uint32_t> &renewed() const { return renewed_; }

 private:
  struct Place {
    uint64_t since_ns, next;  // next: serial
  };
  std::map<uint32_t, Place> places_;  // by card
  std::vector<netlink::LogOfCard> ongoing_;
  std::vector<uint32_t> renewed_;
  uint64_t lost_ = 0;
};

// "  12.345678901  card 0   2.034 ms  web: slice" ... "web: still on"
std::string logText(const netlink::LogOfCard &entry, const TenantNames &names);
nlohmann::json logJson(const netlink::LogOfCard &entry, const TenantNames &names);

// Trace Event Format: a process for each card, in it a thread for the engine, whoever is on it, and
// one for each tenant.
nlohmann::json traceJson(const std::vector<netlink::LogOfCard> &entries, const TenantNames &names,
                         uint64_t lost);

}  // namespace qgpu::ctl
