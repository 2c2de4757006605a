// SPDX-License-Identifier: GPL-2.0
// The logs of the cards that are meant, wherever they are kept: the module's rings are read from
// the kernel, those of executors (method rm) by qgpud. Who follows them goes on when one of these
// was not there for a while, and is told when a log that he follows began anew.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "connection.hpp"
#include "timeline.hpp"

namespace qgpu::ctl {

class LogReader {
 public:
  using OpenWire = std::function<Result<std::unique_ptr<netlink::Wire>>()>;
  using Say = std::function<void(const std::string &line)>;

  // Where what it reads is, and who is told what a person should know.
  struct Places {
    std::string socket;
    OpenWire open_wire = [] { return netlink::openWire(netlink::WireKind::kRequests); };
    Say say = {};  // empty: stderr
  };

  // card: uuid or index; empty = all. Of all, those that keep none are told of and left out; the
  // one that is named is an error. So is a tenant that is named and is none; empty = all, and
  // whoever is gone is "tenant 7".
  static Result<LogReader> open(const Places &places, const std::string &card,
                                const std::string &tenant = "");

  // What is over and new since the last call.
  Result<std::vector<netlink::LogOfCard>> next();
  // The same for who goes on: what cannot be read now is told of once and read when it is back.
  std::vector<netlink::LogOfCard> follow();
  // What was on at the last call.
  const std::vector<netlink::LogOfCard> &ongoing() const { return collector_.ongoing(); }

  const TenantNames &names() const { return names_; }
  // Records that were overwritten before they were read.
  uint64_t lost() const { return collector_.lost(); }

 private:
  struct LogPlace {
    uint64_t since_ns = 0;  // 0: not asked yet
    uint64_t serial = 0;    // of the next
  };
  using Entries = std::vector<netlink::LogOfCard>;

  LogReader(const Places &places, const nlohmann::json &status);
  Result<void> readModule(Entries &out);
  Result<void> readExecutor(uint32_t card, Entries &out);
  Entries collect(const Entries &reading);
  void learnNames(const Entries &fresh);
  void note(const std::string &source, const Result<void> &done);

  Places places_;
  TenantNames names_;
  std::set<uint32_t> settled_;  // cards whose names are known to be of which log
  LogCollector collector_;
  std::optional<uint32_t> card_;  // the only one that is meant
  bool has_module_ = false;       // a card of the module is meant
  std::optional<netlink::Client> client_;
  std::optional<Connection> daemon_;            // a card of an executor is
  std::map<uint32_t, LogPlace> executors_;      // of each of those
  std::map<std::string, std::string> missing_;  // what is not there now, and why
};

}  // namespace qgpu::ctl
