// SPDX-License-Identifier: GPL-2.0
// How numbers and tables look; no input, no output.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace qgpu::ctl {

// "33.3 %"
std::string percent(uint64_t ppm);
// "26.7 ms", "512.0 us"; "-" for 0
std::string duration(uint64_t ns);
// As one word for a shell.
std::string shellQuoted(const std::string &text);

// Columns as wide as needed, the first to the left, the others to the right (but for those from
// leftFrom() on), two blanks between.
class Table {
 public:
  explicit Table(std::vector<std::string> head) : rows_{std::move(head)} {}
  void add(std::vector<std::string> row);
  void leftFrom(size_t column) { left_from_ = column; }
  std::string text(const std::string &indent) const;

 private:
  std::vector<std::vector<std::string>> rows_;
  size_t left_from_ = SIZE_MAX;
};

// One card of a status with its tenants.
std::string cardText(const nlohmann::json &card);
std::string statusText(const nlohmann::json &status);
// What the daemon's file asks, for when there is no card to show it on; "" when it asks nothing.
std::string configuredText(const nlohmann::json &status);
// The counters of a status and nothing else of it.
nlohmann::json countersOf(const nlohmann::json &status);
// The same for people: a line for each part of each card's time, then its tenants.
std::string countersText(const nlohmann::json &status);
// One event as a line.
std::string eventText(const nlohmann::json &event);
// The answer to a change: what each card made of it.
std::string outcomeText(const nlohmann::json &outcome, bool dry_run);

}  // namespace qgpu::ctl
