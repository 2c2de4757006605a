// SPDX-License-Identifier: GPL-2.0
#include "timeline.hpp"

#include <cstdio>

#include "names.hpp"
#include "screen.hpp"

namespace qgpu::ctl {

using Json = nlohmann::json;

namespace {

// Threads of a card's process in a trace; a tenant's is its id beyond these.
constexpr uint32_t kEngineThread = 1, kTenantThreads = 16;

std::string whoOf(const netlink::LogOfCard &entry, const TenantNames &names) {
  const LogRecord &record = entry.record;
  if (record.seen != QGPU_SEEN_TENANT) return seenName(record.seen);
  return record.tenant_id ? names.of(entry, *record.tenant_id) : "a tenant that is gone";
}

Json nameEvent(const char *what, uint32_t process, uint32_t thread, const std::string &name) {
  return {
      {"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

double microseconds(uint64_t ns) { return static_cast<double>(ns) / 1000; }

}  // namespace

TenantNames::TenantNames(const Json &status) {
  learn(status, [](uint32_t) { return 0; });
}

void TenantNames::learn(const Json &status, const std::function<uint64_t(uint32_t)> &since_ns) {
  for (const Json &card : status.value("cards", Json::array())) {
    const uint32_t index = card.value("index", 0u);
    for (const Json &tenant : card.value("tenants", Json::array()))
      names_[{index, since_ns(index), tenant.value("id", 0u)}] = tenant.value("name", "");
  }
}

void TenantNames::settle(uint32_t card, uint64_t since_ns) {
  std::map<Key, std::string> settled;
  for (auto &[key, name] : names_) {
    auto [of_card, began_ns, id] = key;
    settled[{of_card, of_card == card && !began_ns ? since_ns : began_ns, id}] = std::move(name);
  }
  names_ = std::move(settled);
}

const std::string *TenantNames::find(const netlink::LogOfCard &entry, uint32_t id) const {
  for (const uint64_t since_ns : {entry.record.since_ns, uint64_t{0}})
    if (auto found = names_.find({entry.card_index, since_ns, id}); found != names_.end())
      return &found->second;
  return nullptr;
}

std::string TenantNames::of(const netlink::LogOfCard &entry, uint32_t id) const {
  const std::string *name = find(entry, id);
  return name ? *name : "tenant " + std::to_string(id);
}

std::vector<netlink::LogOfCard> LogCollector::add(const std::vector<netlink::LogOfCard> &reading) {
  std::vector<netlink::LogOfCard> fresh;
  ongoing_.clear();
  renewed_.clear();
  for (const netlink::LogOfCard &entry : reading) {
    const auto &[serial, since_ns] = std::pair(entry.record.serial, entry.record.since_ns);
    auto [found, is_first] = places_.try_emplace(entry.card_index, Place{since_ns, serial});
    Place &place = found->second;
    if (place.since_ns != since_ns) {
      place = {since_ns, serial};
      renewed_.push_back(entry.card_index);
    }
    if (entry.record.ongoing) ongoing_.push_back(entry);
    if (entry.record.ongoing || serial < place.next) continue;
    lost_ += serial - place.next;
    place.next = serial + 1;
    fresh.push_back(entry);
  }
  return fresh;
}

std::string logText(const netlink::LogOfCard &entry, const TenantNames &names) {
  const LogRecord &record = entry.record;
  char head[96];
  std::snprintf(head, sizeof(head), "%15.6f  card %u  %10s  ",
                static_cast<double>(record.from_ns) / 1e9, entry.card_index,
                duration(record.to_ns - record.from_ns).c_str());
  std::string out = head + whoOf(entry, names);
  if (record.ongoing) out += ": still on";
  if (record.end) out += ": " + endName(*record.end);
  if (record.due_id)
    out += ", " + windowName(record.window) + " window of " + names.of(entry, *record.due_id);
  return out;
}

Json logJson(const netlink::LogOfCard &entry, const TenantNames &names) {
  const LogRecord &record = entry.record;
  Json json = {{"card", entry.card_index},      {"serial", record.serial},
               {"from_ns", record.from_ns},     {"to_ns", record.to_ns},
               {"seen", seenName(record.seen)}, {"window", windowName(record.window)},
               {"ongoing", record.ongoing}};
  if (record.tenant_id) {
    json["tenant_id"] = *record.tenant_id;
    json["tenant"] = names.of(entry, *record.tenant_id);
  }
  if (record.end) json["end"] = endName(*record.end);
  if (record.due_id) json["due"] = names.of(entry, *record.due_id);
  return json;
}

Json traceJson(const std::vector<netlink::LogOfCard> &entries, const TenantNames &names,
               uint64_t lost) {
  Json events = Json::array();
  std::map<uint32_t, std::map<uint32_t, std::string>> threads;  // by card
  for (const netlink::LogOfCard &entry : entries) {
    const LogRecord &record = entry.record;
    // An idle engine is a gap.
    if (record.seen == QGPU_SEEN_IDLE) continue;
    const std::string who = whoOf(entry, names);
    Json event = {{"ph", "X"},
                  {"cat", seenName(record.seen)},
                  {"name", who},
                  {"ts", microseconds(record.from_ns)},
                  {"dur", microseconds(record.to_ns - record.from_ns)},
                  {"pid", entry.card_index + 1},
                  {"tid", kEngineThread},
                  {"args", logJson(entry, names)}};
    threads[entry.card_index][kEngineThread] = "engine";
    events.push_back(event);
    if (!record.tenant_id) continue;
    const uint32_t thread = kTenantThreads + *record.tenant_id;
    threads[entry.card_index][thread] = who;
    event["tid"] = thread;
    event["name"] = record.end ? endName(*record.end) : "still on";
    events.push_back(std::move(event));
  }
  for (const auto &[card, of_card] : threads) {
    events.push_back(nameEvent("process_name", card + 1, 0, "card " + std::to_string(card)));
    for (const auto &[thread, name] : of_card)
      events.push_back(nameEvent("thread_name", card + 1, thread, name));
  }
  return {{"displayTimeUnit", "ns"},
          {"otherData", {{"clock", "CLOCK_MONOTONIC"}, {"lost_records", lost}}},
          {"traceEvents", std::move(events)}};
}

}  // namespace qgpu::ctl
