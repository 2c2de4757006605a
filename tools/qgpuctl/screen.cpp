// SPDX-License-Identifier: GPL-2.0
#include "screen.hpp"

#include <algorithm>
#include <cstdio>

namespace qgpu::ctl {

using Json = nlohmann::json;

namespace {

std::string format(const char *pattern, double value) {
  char text[64];
  snprintf(text, sizeof(text), pattern, value);
  return text;
}

uint64_t number(const Json &json, const char *key) { return json.value(key, uint64_t{0}); }

std::string text(const Json &json, const char *key) { return json.value(key, std::string()); }

std::string measured(const Json &tenant, const char *key) {
  auto rates = tenant.find("measured");
  if (rates == tenant.end() || number(*rates, "interval_ns") == 0) return "-";
  return percent(number(*rates, key));
}

// What goes wrong is named only when it did.
std::string executorText(const Json &executor) {
  std::string out = "  driver " + text(executor, "driver") + ", run times by " +
                    text(executor, "source") + ", " +
                    std::to_string(number(executor, "processes")) + " processes";
  if (number(executor, "gap_ns"))
    out += " under control within " + duration(number(executor, "gap_ns"));
  const std::pair<const char *, const char *> counts[] = {
      {"controls_refused", " controls refused"},
      {"foreign_changes", " foreign changes undone"},
      {"lost_records", " trace records lost"},
      {"restarts", " restarts"}};
  for (const auto &[key, what] : counts)
    if (number(executor, key)) out += ", " + std::to_string(number(executor, key)) + what;
  return out + "\n";
}

}  // namespace

std::string percent(uint64_t ppm) {
  uint64_t tenths = (ppm + 500) / 1000;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " %";
}

std::string duration(uint64_t ns) {
  if (ns == 0) return "-";
  if (ns < 1'000'000) return format("%.1f us", static_cast<double>(ns) / 1e3);
  if (ns < 1'000'000'000) return format("%.1f ms", static_cast<double>(ns) / 1e6);
  return format("%.1f s", static_cast<double>(ns) / 1e9);
}

std::string Table::text(const std::string &indent) const {
  std::vector<size_t> widths;
  for (const auto &row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto &row : rows_) {
    std::string line = indent;
    for (size_t i = 0; i < row.size(); ++i) {
      std::string fill(widths[i] - row[i].size(), ' ');
      line += (i ? "  " : "") + (i ? fill + row[i] : row[i] + fill);
    }
    out += line + "\n";
  }
  return out;
}

std::string cardText(const Json &card) {
  std::string out = "card " + std::to_string(number(card, "index")) + "  " + text(card, "uuid") +
                    "  " + text(card, "name") +
                    (card.value("simulated", false) ? " (simulated)" : "") + "\n";
  bool managed = card.value("managed", true);
  out += "  policy " + text(card, "policy") +
         (card.value("policy_edited", false) ? "* (set at run time)" : "") + ", method " +
         text(card, "method") + ", " + text(card, "state") + ", generation " +
         std::to_string(number(card, "generation")) + ", cycle " +
         duration(number(card, "cycle_ns")) +
         (managed ? "" : ", observed only: the configuration does not name it") + "\n";
  if (!text(card, "reason").empty()) out += "  reason: " + text(card, "reason") + "\n";
  if (card.contains("executor")) out += executorText(card.at("executor"));
  if (!text(card, "refusal").empty()) out += "  NOT as configured: " + text(card, "refusal") + "\n";

  Table table({"tenant", "weight", "guarantee", "effective", "slice", "window", "measured",
               "of wall time", "awake", "TSGs"});
  bool edited = false;
  for (const Json &tenant : card.value("tenants", Json::array())) {
    const Json &asked = tenant.at("asked");
    const Json &effective = tenant.at("effective");
    bool is_edited = tenant.value("edited", false);
    edited = edited || is_edited;
    table.add({text(tenant, "name") + (is_edited ? "*" : ""),
               std::to_string(number(asked, "weight")), percent(number(asked, "guarantee_ppm")),
               percent(number(effective, "share_ppm")), duration(number(effective, "slice_ns")),
               duration(number(effective, "window_ns")), measured(tenant, "share_ppm"),
               measured(tenant, "use_ppm"), tenant.value("awake", false) ? "yes" : "no",
               std::to_string(number(tenant, "tsgs"))});
  }
  out += table.text("  ");
  if (edited)
    out += "  * set at run time; `qgpuctl tenant reset NAME` goes back to the configuration\n";
  if (card.value("policy_edited", false))
    out +=
        "  * policy set at run time; `qgpuctl policy` with the configuration's own goes back to "
        "it\n";
  return out;
}

std::string statusText(const Json &status) {
  std::string out;
  if (!text(status, "driver_error").empty()) out += text(status, "driver_error") + "\n";
  for (const Json &problem : status.value("held", Json::array()))
    out += "NOT applied: " + problem.get<std::string>() + "\n";
  for (const Json &complaint : status.value("complaints", Json::array()))
    out += "warning: " + complaint.get<std::string>() + "\n";
  Json cards = status.value("cards", Json::array());
  if (cards.empty() && out.empty()) out += "no cards\n";
  for (const Json &card : cards) out += cardText(card);
  return out;
}

std::string eventText(const Json &event) {
  std::string out = format("%12.6f", static_cast<double>(number(event, "time_ns")) / 1e9);
  if (event.contains("card")) out += "  card " + std::to_string(number(event, "card"));
  out += "  " + text(event, "event");
  if (event.contains("tenant")) out += "  tenant " + text(event, "tenant");
  for (const char *key : {"tsg", "pid", "generation"})
    if (event.contains(key))
      out += std::string("  ") + key + " " + std::to_string(number(event, key));
  if (event.contains("state")) out += "  " + text(event, "state");
  if (event.contains("reason")) out += ": " + text(event, "reason");
  return out;
}

std::string outcomeText(const Json &outcome, bool dry_run) {
  std::string out;
  if (!text(outcome, "note").empty())
    out += std::string(dry_run ? "checked" : "stored") +
           ", not in force yet: " + text(outcome, "note") + "\n";
  const Json cards = outcome.value("cards", Json::object());
  for (const auto &[uuid, card] : cards.items()) {
    Table table({"tenant", "weight", "guarantee", "effective", "slice"});
    for (const Json &tenant : card.value("tenants", Json::array()))
      table.add({text(tenant, "name"), std::to_string(number(tenant, "weight")),
                 percent(number(tenant, "guarantee_ppm")), percent(number(tenant, "share_ppm")),
                 duration(number(tenant, "slice_ns"))});
    out += uuid +
           (dry_run ? ": would be" : ": generation " + std::to_string(number(card, "generation"))) +
           "\n";
    out += card.value("tenants", Json::array()).empty() ? "  nothing changes\n" : table.text("  ");
  }
  return out;
}

}  // namespace qgpu::ctl
