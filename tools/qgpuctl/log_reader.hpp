// SPDX-License-Identifier: GPL-2.0
// The logs of the cards that are meant, wherever they are kept: the module's rings are read from
// the kernel, those of executors (method rm) by qgpud.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "connection.hpp"
#include "timeline.hpp"

namespace qgpu::ctl {

class LogReader {
 public:
  // card: uuid or index; empty = all. Of all, those that keep none are told of on stderr and left
  // out; the one that is named is an error.
  static Result<LogReader> open(const std::string &socket, const std::string &card);

  // What is over and new since the last call.
  Result<std::vector<netlink::LogOfCard>> next();
  // What was on at the last call.
  const std::vector<netlink::LogOfCard> &ongoing() const { return collector_.ongoing(); }

  const TenantNames &names() const { return names_; }
  // Records that were overwritten before they were read.
  uint64_t lost() const { return collector_.lost(); }

 private:
  explicit LogReader(const Json &status) : names_(status) {}
  Result<void> readModule(std::vector<netlink::LogOfCard> &out);
  Result<void> readExecutor(uint32_t card, std::vector<netlink::LogOfCard> &out);

  TenantNames names_;
  LogCollector collector_;
  std::optional<uint32_t> card_;           // the only one that is meant
  std::optional<netlink::Client> client_;  // a card of the module is meant
  std::string socket_;
  std::optional<Connection> daemon_;  // a card of an executor is
  struct LogPlace {
    uint64_t since_ns = 0;  // 0: not asked yet
    uint64_t serial = 0;    // of the next
  };
  std::map<uint32_t, LogPlace> places_;  // of each of those
};

}  // namespace qgpu::ctl
