// SPDX-License-Identifier: GPL-2.0
#include "screen.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "printable.hpp"
#include "starved.hpp"

namespace qgpu::ctl {

using Json = nlohmann::json;

namespace {

constexpr uint64_t kWholePpm = 1'000'000;

std::string format(const char *pattern, double value) {
  char text[64];
  snprintf(text, sizeof(text), pattern, value);
  return text;
}

uint64_t partPpm(uint64_t part, uint64_t whole) {
  return static_cast<uint64_t>(static_cast<double>(part) / static_cast<double>(whole) * 1e6 + 0.5);
}

uint64_t number(const Json &json, const char *key) { return json.value(key, uint64_t{0}); }

std::string text(const Json &json, const char *key) { return json.value(key, std::string()); }

std::string measured(const Json &tenant, const char *key) {
  auto rates = tenant.find("measured");
  if (rates == tenant.end() || number(*rates, "interval_ns") == 0) return "-";
  return percent(number(*rates, key));
}

std::string timeOf(const Json &asked, const char *key) { return duration(number(asked, key)); }

// Settings that most tenants have not: a column for each that one of them has.
struct RareColumn {
  const char *title;
  std::string (*text)(const Json &asked);  // "-" = as by default
};
constexpr RareColumn kRareColumns[] = {
    {"ceiling",
     [](const Json &asked) {
       uint64_t ppm = asked.value("ceiling_ppm", kWholePpm);
       return ppm == kWholePpm ? "-" : percent(ppm);
     }},
    {"class",
     [](const Json &asked) {
       std::string name = text(asked, "class");
       return name.empty() || name == "normal" ? "-" : name;
     }},
    {"wake within", [](const Json &asked) { return timeOf(asked, "wake_ns"); }},
    {"hang timeout", [](const Json &asked) { return timeOf(asked, "hang_ns"); }},
};

std::vector<RareColumn> rareColumns(const std::vector<Json> &all_asked) {
  std::vector<RareColumn> columns;
  for (const RareColumn &column : kRareColumns)
    if (std::any_of(all_asked.begin(), all_asked.end(),
                    [&](const Json &asked) { return column.text(asked) != "-"; }))
      columns.push_back(column);
  return columns;
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
  if (const Json costs = executor.value("costs", Json::object()); number(costs, "measured_s"))
    out += ", calibrated (a switch costs " +
           duration(number(costs, "visit_ns") + number(costs, "switch_gap_ns")) + ")";
  return out + "\n";
}

void append(std::vector<std::string> &row, std::vector<std::string> more) {
  row.insert(row.end(), more.begin(), more.end());
}

std::string tenantsText(const Json &tenants) {
  std::vector<Json> all_asked;
  for (const Json &tenant : tenants) all_asked.push_back(tenant.at("asked"));
  const std::vector<RareColumn> rare = rareColumns(all_asked);

  std::vector<std::string> head = {"tenant", "weight", "guarantee"};
  for (const RareColumn &column : rare) head.push_back(column.title);
  append(head, {"entitled", "slice", "window", "measured", "of wall time", "awake", "TSGs"});
  Table table(std::move(head));
  for (const Json &tenant : tenants) {
    const Json &asked = tenant.at("asked");
    const Json &effective = tenant.at("effective");
    std::vector<std::string> row = {
        text(tenant, "name") + (tenant.value("edited", false) ? "*" : ""),
        std::to_string(number(asked, "weight")), percent(number(asked, "guarantee_ppm"))};
    for (const RareColumn &column : rare) row.push_back(column.text(asked));
    append(row, {percent(number(effective, "share_ppm")), duration(number(effective, "slice_ns")),
                 duration(number(effective, "window_ns")), measured(tenant, "share_ppm"),
                 measured(tenant, "use_ppm"), tenant.value("awake", false) ? "yes" : "no",
                 std::to_string(number(tenant, "tsgs"))});
    table.add(std::move(row));
  }
  return table.text("  ");
}

// What a change made of tenants.
std::string changedText(const std::vector<Json> &tenants) {
  const std::vector<RareColumn> rare = rareColumns(tenants);
  std::vector<std::string> head = {"tenant", "weight", "guarantee"};
  for (const RareColumn &column : rare) head.push_back(column.title);
  append(head, {"entitled", "slice"});
  Table table(std::move(head));
  for (const Json &tenant : tenants) {
    std::vector<std::string> row = {text(tenant, "name"), std::to_string(number(tenant, "weight")),
                                    percent(number(tenant, "guarantee_ppm"))};
    for (const RareColumn &column : rare) row.push_back(column.text(tenant));
    append(row, {tenant.contains("share_ppm") ? percent(number(tenant, "share_ppm")) : "-",
                 duration(number(tenant, "slice_ns"))});
    table.add(std::move(row));
  }
  return tenants.empty() ? "  nothing changes\n" : table.text("  ");
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

std::string shellQuoted(const std::string &text) {
  std::string out = "'";
  for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

void Table::add(std::vector<std::string> row) {
  for (std::string &cell : row) cell = harmless(cell);
  rows_.push_back(std::move(row));
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
      const bool is_left = i == 0 || i >= left_from_;
      line += (i ? "  " : "") + (is_left ? row[i] + fill : fill + row[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
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

  const Json tenants = card.value("tenants", Json::array());
  out += tenantsText(tenants);
  if (const std::string starved = starvedText(card); !starved.empty()) out += "  " + starved + "\n";
  if (std::any_of(tenants.begin(), tenants.end(),
                  [](const Json &tenant) { return tenant.value("edited", false); }))
    out += "  * set at run time; `qgpuctl tenant reset NAME` goes back to the configuration\n";
  if (card.value("policy_edited", false))
    out +=
        "  * policy set at run time; `qgpuctl policy` with the configuration's own goes back to "
        "it\n";
  return out;
}

std::string configuredText(const Json &status) {
  const Json tenants = status.value("configured", Json::array());
  if (tenants.empty()) return "";
  Table table({"tenant", "weight", "guarantee", "cgroup"});
  for (const Json &tenant : tenants) {
    std::string paths;
    for (const Json &path : tenant.value("cgroup", Json::array()))
      paths += (paths.empty() ? "" : " ") + path.get<std::string>();
    table.add({text(tenant, "name") + (tenant.value("edited", false) ? "*" : ""),
               std::to_string(number(tenant, "weight")), percent(number(tenant, "guarantee_ppm")),
               paths.empty() ? "-" : paths});
  }
  return "configured, and on no card yet:\n" + table.text("  ");
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
  if (cards.empty()) out += configuredText(status);
  return out;
}

Json countersOf(const Json &status) {
  Json cards = Json::array();
  for (const Json &card : status.value("cards", Json::array())) {
    if (!card.contains("counters")) continue;
    Json tenants = Json::object();
    for (const Json &tenant : card.value("tenants", Json::array()))
      if (tenant.contains("counters")) tenants[text(tenant, "name")] = tenant.at("counters");
    cards.push_back({{"index", card.at("index")},
                     {"uuid", card.at("uuid")},
                     {"counters", card.at("counters")},
                     {"tenants", std::move(tenants)}});
  }
  return {{"cards", std::move(cards)}};
}

std::string countersText(const Json &status) {
  std::string out;
  const Json counted = countersOf(status);
  for (const Json &card : counted.at("cards")) {
    out += "card " + std::to_string(number(card, "index")) + "  " + text(card, "uuid") + "\n";
    const Json &counters = card.at("counters");
    const uint64_t elapsed_ns = number(counters, "elapsed_ns");
    Table parts({"", "ns", "of elapsed"});
    for (const char *key :
         {"elapsed_ns", "tenants_ns", "nobody_ns", "switch_ns", "idle_ns", "unaccounted_ns"}) {
      const auto part_ns = counters.value(key, int64_t{0});
      parts.add({std::string(key, strlen(key) - 3), std::to_string(part_ns),
                 elapsed_ns && part_ns >= 0
                     ? percent(partPpm(static_cast<uint64_t>(part_ns), elapsed_ns))
                     : "-"});
    }
    out += parts.text("  ") + "\n";
    constexpr std::pair<const char *, const char *> kColumns[] = {
        {"run_ns", "run ns"},       {"run_err_ns", "+- ns"},          {"wait_ns", "wait ns"},
        {"wait_max_ns", "longest"}, {"throttled_ns", "throttled ns"}, {"visits", "visits"},
        {"windows", "windows"},     {"preempts", "preempts"},         {"overruns", "overruns"},
        {"hangs", "hangs"}};
    std::vector<std::string> head = {"tenant"};
    for (const auto &[key, title] : kColumns) head.push_back(title);
    Table tenants(std::move(head));
    for (const auto &[name, tenant] : card.at("tenants").items()) {
      std::vector<std::string> row = {name};
      for (const auto &[key, title] : kColumns) row.push_back(std::to_string(number(tenant, key)));
      tenants.add(std::move(row));
    }
    out += tenants.text("  ");
  }
  return out.empty() ? "no card has told counters\n" : out;
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
    out += uuid +
           (dry_run ? ": would be" : ": generation " + std::to_string(number(card, "generation"))) +
           "\n";
    out += changedText(card.value("tenants", std::vector<Json>()));
  }
  if (dry_run && !cards.empty())
    out += "shares and slices are computed by the card when it is set\n";
  return out;
}

}  // namespace qgpu::ctl
