// SPDX-License-Identifier: GPL-2.0
#include "log_reader.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "snapshot_json.hpp"
#include "tenants.hpp"

namespace qgpu::ctl {

LogReader::LogReader(const Places &places, const Json &status) : places_(places), names_(status) {
  if (!places_.say)
    places_.say = [](const std::string &line) {
      std::fprintf(stderr, "qgpuctl: %s\n", line.c_str());
    };
}

Result<LogReader> LogReader::open(const Places &places, const std::string &card,
                                  const std::string &tenant) {
  auto status = readStatus(places.socket);
  if (!status) return status.error();
  if (!tenant.empty() && !tenant.starts_with("tenant "))
    if (auto known = checkTenant(*status, tenant); !known) return known.error();
  LogReader reader(places, *status);
  bool found = false;
  reader.has_module_ = card.empty();
  for (const Json &json : status->at("cards")) {
    const uint32_t index = json.at("index");
    if (!card.empty() && card != std::to_string(index) && json.at("uuid") != card) continue;
    found = true;
    if (!card.empty()) reader.card_ = index;
    if (json.at("method") == "rm")
      reader.executors_[index] = {};
    else
      reader.has_module_ = true;
  }
  if (!found && !card.empty()) return Error{ENODEV, "no such card", card};
  // Where all cards are executors' the module need not be there.
  if (!reader.executors_.empty() && status->at("cards").size() == reader.executors_.size())
    reader.has_module_ = false;
  return reader;
}

Result<void> LogReader::readModule(Entries &out) {
  if (!client_) {
    auto wire = places_.open_wire();
    if (!wire) return wire.error();
    client_.emplace(std::move(*wire));
  }
  auto reading = client_->log();
  if (!reading) {
    // Another module has another family.
    client_.reset();
    return reading.error();
  }
  for (netlink::LogOfCard &entry : *reading)
    if (card_ ? entry.card_index == *card_ : !executors_.count(entry.card_index))
      out.push_back(std::move(entry));
  return {};
}

Result<void> LogReader::readExecutor(uint32_t card, Entries &out) {
  if (!daemon_) {
    auto daemon = Connection::open(places_.socket);
    if (!daemon) return daemon.error();
    daemon_.emplace(std::move(*daemon));
  }
  LogPlace &place = executors_[card];
  // Up to the one that was on when it was asked first: the log grows meanwhile.
  for (uint64_t until = UINT64_MAX; place.serial <= until;) {
    auto answer =
        daemon_->ask({{"verb", "log"}, {"card", std::to_string(card)}, {"from", place.serial}});
    if (!answer) {
      if (isUnreachable(answer.error())) daemon_.reset();
      return answer.error();
    }
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
    if (answer->at("records").empty()) return {};
    for (const Json &json : answer->at("records")) {
      out.push_back({card, logRecordFrom(json)});
      out.back().record.since_ns = since_ns;
      if (out.back().record.ongoing) return {};
      place.serial = out.back().record.serial + 1;
    }
  }
  return {};
}

// Those of a log that began anew are not those of the former. One that is not known may be new.
void LogReader::learnNames(const Entries &fresh) {
  const bool is_unknown = std::any_of(fresh.begin(), fresh.end(), [&](const auto &entry) {
    return entry.record.tenant_id && !names_.knows(entry, *entry.record.tenant_id);
  });
  if (!is_unknown && collector_.renewed().empty()) return;
  if (auto status = askDaemon(places_.socket, {{"verb", "status"}}))
    names_.learn(*status, [&](uint32_t card) { return collector_.sinceNs(card); });
}

LogReader::Entries LogReader::collect(const Entries &reading) {
  for (const netlink::LogOfCard &entry : reading)
    if (settled_.insert(entry.card_index).second)
      names_.settle(entry.card_index, entry.record.since_ns);
  Entries fresh = collector_.add(reading);
  for (const uint32_t card : collector_.renewed())
    places_.say("the log of card " + std::to_string(card) + " began anew");
  learnNames(fresh);
  return fresh;
}

Result<std::vector<netlink::LogOfCard>> LogReader::next() {
  Entries reading;
  if (has_module_)
    if (auto done = readModule(reading); !done) return done.error();
  for (auto it = executors_.begin(); it != executors_.end();) {
    const uint32_t card = it->first;
    auto done = readExecutor(card, reading);
    ++it;
    if (done) continue;
    if (card_ || isUnreachable(done.error())) return done.error();
    places_.say("card " + std::to_string(card) + ": " + done.error().sentence);
    executors_.erase(card);
  }
  return collect(reading);
}

void LogReader::note(const std::string &source, const Result<void> &done) {
  if (done) {
    missing_.erase(source);
    return;
  }
  // Said once, not at each try.
  std::string &why = missing_[source];
  if (why.empty()) places_.say(source + ": " + done.error().sentence + "; waiting for it");
  why = done.error().sentence;
}

std::vector<netlink::LogOfCard> LogReader::follow() {
  Entries reading;
  if (has_module_) note("the module's log", readModule(reading));
  for (const auto &[card, place] : executors_)
    note("the log of card " + std::to_string(card), readExecutor(card, reading));
  return collect(reading);
}

}  // namespace qgpu::ctl
