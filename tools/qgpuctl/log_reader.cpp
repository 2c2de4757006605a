// SPDX-License-Identifier: GPL-2.0
#include "log_reader.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "snapshot_json.hpp"

namespace qgpu::ctl {

Result<LogReader> LogReader::open(const std::string &socket, const std::string &card) {
  auto status = readStatus(socket);
  if (!status) return status.error();
  LogReader reader(*status);
  reader.socket_ = socket;
  bool found = false, has_module = card.empty();
  for (const Json &json : status->at("cards")) {
    const uint32_t index = json.at("index");
    if (!card.empty() && card != std::to_string(index) && json.at("uuid") != card) continue;
    found = true;
    if (!card.empty()) reader.card_ = index;
    if (json.at("method") == "rm")
      reader.places_[index] = {};
    else
      has_module = true;
  }
  if (!found && !card.empty()) return Error{ENODEV, "no such card", card};
  // Where all cards are executors' the module need not be there.
  if (!reader.places_.empty() && status->at("cards").size() == reader.places_.size())
    has_module = false;
  if (has_module) {
    auto wire = netlink::openWire(netlink::WireKind::kRequests);
    if (!wire) return wire.error();
    reader.client_.emplace(std::move(*wire));
  }
  if (reader.places_.empty()) return reader;
  auto daemon = Connection::open(socket);
  if (!daemon) return daemon.error();
  reader.daemon_.emplace(std::move(*daemon));
  return reader;
}

Result<void> LogReader::readModule(std::vector<netlink::LogOfCard> &out) {
  auto reading = client_->log();
  if (!reading) return reading.error();
  for (netlink::LogOfCard &entry : *reading)
    if (card_ ? entry.card_index == *card_ : !places_.count(entry.card_index))
      out.push_back(std::move(entry));
  return {};
}

Result<void> LogReader::readExecutor(uint32_t card, std::vector<netlink::LogOfCard> &out) {
  LogPlace &place = places_[card];
  // Up to the one that was on when it was asked first: the log grows meanwhile.
  for (uint64_t until = UINT64_MAX; place.serial <= until;) {
    auto answer =
        daemon_->ask({{"verb", "log"}, {"card", std::to_string(card)}, {"from", place.serial}});
    if (!answer) return answer.error();
    const uint64_t since_ns = answer->at("since_ns");
    // Another executor's, which is read from its beginning.
    const bool is_other = place.since_ns && place.since_ns != since_ns;
    place.since_ns = since_ns;
    if (is_other) {
      place.serial = 0;
      until = UINT64_MAX;
      continue;
    }
    until = std::min<uint64_t>(until, answer->at("next"));
    for (const Json &json : answer->at("records")) {
      out.push_back({card, logRecordFrom(json)});
      out.back().record.since_ns = since_ns;
      if (out.back().record.ongoing) return {};
      place.serial = out.back().record.serial + 1;
    }
    if (answer->at("records").empty()) return {};
  }
  return {};
}

Result<std::vector<netlink::LogOfCard>> LogReader::next() {
  std::vector<netlink::LogOfCard> reading;
  if (client_)
    if (auto done = readModule(reading); !done) return done.error();
  for (auto it = places_.begin(); it != places_.end();) {
    const uint32_t card = it->first;
    auto done = readExecutor(card, reading);
    ++it;
    if (done) continue;
    if (card_ || isUnreachable(done.error())) return done.error();
    std::fprintf(stderr, "qgpuctl: card %u: %s\n", card, done.error().sentence.c_str());
    places_.erase(card);
  }
  return collector_.add(reading);
}

}  // namespace qgpu::ctl
