// SPDX-License-Identifier: GPL-2.0
// The scheduler's log as lines, as JSON and as a trace for Perfetto or chrome://tracing. No input,
// no output.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "netlink/message.hpp"

namespace qgpu::ctl {

// Names of tenants by card and id, log by log, for whoever gives ids gives them anew with a new
// one; of one that is gone: "tenant 7".
class TenantNames {
 public:
  explicit TenantNames(const nlohmann::json &status);
  // What is known of this card is of its log that began then.
  void settle(uint32_t card, uint64_t since_ns);
  // As they are now, of the logs that are read of the cards now.
  void learn(const nlohmann::json &status, const std::function<uint64_t(uint32_t card)> &since_ns);

  bool knows(const netlink::LogOfCard &entry, uint32_t id) const { return find(entry, id); }
  std::string of(const netlink::LogOfCard &entry, uint32_t id) const;

 private:
  const std::string *find(const netlink::LogOfCard &entry, uint32_t id) const;

  using Key = std::tuple<uint32_t, uint64_t, uint32_t>;  // card, when its log began, id
  std::map<Key, std::string> names_;                     // those that are not settled: began at 0
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
  // When this card's log began; 0: none was read.
  uint64_t sinceNs(uint32_t card) const {
    const auto place = places_.find(card);
    return place == places_.end() ? 0 : place->second.since_ns;
  }

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
