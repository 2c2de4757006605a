// SPDX-License-Identifier: GPL-2.0
// TOML to ConfigIr. Knows syntax, types, ranges and duplicates of the file; sums and everything
// that depends on a card's policy are policy.cpp's. Never stops at the first mistake, never
// guesses.
#include "config.hpp"

#include <linux/qgpu.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <functional>
#include <map>

#include "cgroup_pattern.hpp"
#include "config_size.hpp"
#include "file.hpp"
#include "metrics_endpoint.hpp"
#include "names.hpp"
#include "nesting.hpp"
#include "policy.hpp"
#include "printable.hpp"

namespace qgpu {

namespace {

constexpr size_t kFileMax = 1024 * 1024;
constexpr int kDotsMax = 1000;  // of a line; keys have six at most
constexpr uint64_t kCycleMinMs = 1;
constexpr uint64_t kCycleMaxMs = 1000;

const char *typeName(const toml::node &node) {
  switch (node.type()) {
    case toml::node_type::none:
      return "nothing";
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "a list";
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a number";
    case toml::node_type::boolean:
      return "a boolean";
    case toml::node_type::date:
      return "a date";
    case toml::node_type::time:
      return "a time";
    case toml::node_type::date_time:
      return "a date and time";
  }
  return "something else";
}

int lineOf(const toml::source_region &source) { return static_cast<int>(source.begin.line); }

class Reader {
 public:
  explicit Reader(const std::string &file) { outcome_.ir.file = file; }

  ConfigOutcome read(const toml::table &root) {
    for (const auto &[key, node] : root) {
      std::string name(key.str());
      int line = lineOf(key.source());
      if (name == "daemon")
        table(node, name, line, [&](const toml::table &daemon) { readDaemon(daemon); });
      else if (name == "card")
        readCards(node, line);
      else if (name == "tenant")
        table(node, name, line, [&](const toml::table &tenants) { readTenants(tenants); });
      else
        problem(line, name, "unknown key; known here: daemon, card, tenant");
    }
    // A table's keys come sorted by name; what counts is where they stand.
    std::stable_sort(outcome_.ir.tenants.begin(), outcome_.ir.tenants.end(),
                     [](const TenantEntry &a, const TenantEntry &b) { return a.line < b.line; });
    checkDuplicates();
    std::stable_sort(
        outcome_.problems.begin(), outcome_.problems.end(),
        [](const ConfigProblem &a, const ConfigProblem &b) { return a.line < b.line; });
    return std::move(outcome_);
  }

 private:
  void problem(int line, std::string key, std::string reason, int err = EINVAL) {
    outcome_.problems.push_back({outcome_.ir.file, line, std::move(key), std::move(reason), err});
  }

  void problem(int line, std::string key, const Error &error) {
    problem(line, std::move(key), error.sentence, error.err);
  }

  void wrongType(const toml::node &node, int line, const std::string &key, const char *wanted) {
    problem(line, key, std::string("must be ") + wanted + ", is " + typeName(node));
  }

  void table(const toml::node &node, const std::string &key, int line,
             const std::function<void(const toml::table &)> &body) {
    if (const toml::table *found = node.as_table())
      body(*found);
    else
      wrongType(node, line, key, "a table");
  }

  std::optional<std::string> string(const toml::node &node, int line, const std::string &key) {
    if (const auto *text = node.as_string()) return text->get();
    wrongType(node, line, key, "a string");
    return std::nullopt;
  }

  std::optional<uint64_t> integer(const toml::node &node, int line, const std::string &key,
                                  uint64_t min, uint64_t max) {
    const auto *number = node.as_integer();
    if (!number) {
      const std::string wanted =
          "an integer, " + std::to_string(min) + " to " + std::to_string(max) + " without quotes";
      wrongType(node, line, key, wanted.c_str());
      return std::nullopt;
    }
    int64_t value = number->get();
    if (value < 0 || static_cast<uint64_t>(value) < min || static_cast<uint64_t>(value) > max) {
      problem(line, key,
              "is " + std::to_string(value) + ", must be " + std::to_string(min) + " to " +
                  std::to_string(max));
      return std::nullopt;
    }
    return static_cast<uint64_t>(value);
  }

  std::optional<uint32_t> percent(const toml::node &node, int line, const std::string &key,
                                  Result<uint32_t> (*tenths_from)(double) = tenthsFromPercent) {
    double value = 0;
    if (const auto *integer = node.as_integer())
      value = static_cast<double>(integer->get());
    else if (const auto *number = node.as_floating_point())
      value = number->get();
    else {
      wrongType(node, line, key, "a number of percent such as 30 or 12.5, without quotes");
      return std::nullopt;
    }
    auto tenths = tenths_from(value);
    if (tenths) return *tenths;
    problem(line, key, tenths.error());
    return std::nullopt;
  }

  void path(const toml::node &node, int line, const std::string &key, std::string &value) {
    auto text = string(node, line, key);
    if (!text) return;
    if (text->empty() || text->front() != '/' || text->find('\0') != std::string::npos)
      problem(line, key, "must be an absolute path");
    else
      value = *text;
  }

  void readDaemon(const toml::table &daemon) {
    for (const auto &[key, node] : daemon) {
      std::string name = "daemon." + std::string(key.str());
      int line = lineOf(key.source());
      if (key == "socket") {
        path(node, line, name, outcome_.ir.socket);
        if (outcome_.ir.socket.size() > 107)
          problem(line, name, "is longer than the 107 bytes that a socket's path may have");
      } else if (key == "state") {
        path(node, line, name, outcome_.ir.state);
      } else if (key == "log") {
        auto level = string(node, line, name);
        if (!level) continue;
        if (*level == "debug" || *level == "info" || *level == "warning" || *level == "error")
          outcome_.ir.log_level = *level;
        else
          problem(line, name, "is \"" + *level + "\", must be debug, info, warning or error");
      } else if (key == "metrics") {
        auto address = string(node, line, name);
        if (!address) continue;
        if (*address == "off")
          outcome_.ir.metrics.clear();
        else if (const char *mistake = listenAddressMistake(*address))
          problem(line, name, "\"" + *address + "\" " + mistake + ", or off");
        else
          outcome_.ir.metrics = *address;
      } else {
        problem(line, name, "unknown key; known here: socket, state, log, metrics");
      }
    }
  }

  void readCards(const toml::node &node, int line) {
    const toml::array *cards = node.as_array();
    if (!cards) {
      problem(line, "card", "must be written as [[card]], once for each card");
      return;
    }
    for (const toml::node &element : *cards) {
      if (const toml::table *card = element.as_table())
        readCard(*card);
      else
        wrongType(element, lineOf(element.source()), "card", "a table");
    }
  }

  void readCard(const toml::table &card) {
    CardEntry entry;
    entry.line = lineOf(card.source());
    entry.policy = {QGPU_POLICY_BURST_SHARE, entry.line};
    bool has_match = false;
    for (const auto &[key, node] : card) {
      std::string name = "card." + std::string(key.str());
      int line = lineOf(key.source());
      if (key == "match") {
        has_match = true;
        entry.match = readSelector(node, line, name);
        if (entry.match.empty())
          problem(line, name, "must be a card's uuid (\"GPU-...\"), its index (0) or \"all\"");
      } else if (key == "policy") {
        auto text = string(node, line, name);
        if (!text) continue;
        auto policy = policyFromName(*text);
        if (!policy)
          problem(
              line, name,
              "is \"" + *text + "\", must be best-effort, equal-share, fixed-share or burst-share");
        else
          entry.policy = {*policy, line};
      } else if (key == "method") {
        auto text = string(node, line, name);
        if (!text) continue;
        if (*text == "rm")
          entry.method = CardMethod::kRm;
        else if (*text != "module")
          problem(line, name, "is \"" + *text + "\", must be module or rm");
      } else if (key == "cycle_ms") {
        if (auto ms = integer(node, line, name, kCycleMinMs, kCycleMaxMs))
          entry.cycle_ns = *ms * 1'000'000;
      } else {
        problem(line, name, "unknown key; known here: match, method, policy, cycle_ms");
      }
    }
    if (!has_match) problem(entry.line, "card", "has no \"match\"");
    outcome_.ir.cards.push_back(std::move(entry));
  }

  // A uuid, an index (as a number or as text) or "all"; empty when it is none of them.
  std::string readSelector(const toml::node &node, int line, const std::string &key) {
    if (const auto *index = node.as_integer()) {
      std::string number = std::to_string(index->get());
      return index->get() >= 0 && isSelector(number) ? number : "";
    }
    auto text = string(node, line, key);
    if (!text) return "-";
    return isSelector(*text) ? *text : "";
  }

  // Of what looks like a number only how a card's index is written: "00" would match no card.
  static bool isSelector(std::string_view text) {
    if (text.empty()) return false;
    if (text.find_first_not_of("0123456789") == std::string_view::npos)
      return text.size() < 10 && (text.size() == 1 || text.front() != '0');
    if (text == "all") return true;
    constexpr std::string_view kUuid = "GPU-";
    if (!text.starts_with(kUuid) || text == kUuid) return false;
    return std::all_of(text.begin() + kUuid.size(), text.end(),
                       [](unsigned char c) { return c < 0x80 && (std::isalnum(c) || c == '-'); });
  }

  void readTenants(const toml::table &tenants) {
    for (const auto &[key, node] : tenants) {
      std::string name(key.str());
      std::string path = "tenant." + name;
      int line = lineOf(key.source());
      if (const char *mistake = tenantNameMistake(name)) {
        problem(line, path, mistake);
        continue;
      }
      table(node, path, line, [&](const toml::table &tenant) { readTenant(name, line, tenant); });
    }
  }

  void readTenant(const std::string &name, int line, const toml::table &tenant) {
    TenantEntry entry;
    entry.name = name;
    entry.line = line;
    std::string path = "tenant." + name;
    for (const auto &[key, node] : tenant) {
      std::string key_path = path + "." + std::string(key.str());
      int key_line = lineOf(key.source());
      if (key == "cgroup")
        readCgroups(node, key_line, key_path, entry);
      else if (key == "card")
        table(node, key_path, key_line,
              [&](const toml::table &cards) { readOverrides(key_path, cards, entry); });
      else if (!readNumber(key.str(), node, key_line, key_path, entry.numbers))
        problem(key_line, key_path,
                "unknown key; known here: cgroup, weight, guarantee, ceiling, wake_within, class, "
                "hang_timeout, memory, card");
    }
    if (name == "default" && !entry.cgroups.empty())
      problem(
          entry.cgroups.front().line, path + ".cgroup",
          "the tenant \"default\" is whoever no other tenant claims: it has no cgroup of its own");
    if (name != "default") addHome(entry);
    outcome_.ir.tenants.push_back(std::move(entry));
  }

  // Without an exact path of its own a tenant is reached by `qgpuctl run` at /qgpu/NAME.
  static void addHome(TenantEntry &entry) {
    bool exact = std::any_of(entry.cgroups.begin(), entry.cgroups.end(),
                             [](const CgroupPattern &pattern) { return !pattern.glob; });
    if (!exact) entry.cgroups.push_back({"/qgpu/" + entry.name, false, entry.line});
  }

  void readOverrides(const std::string &path, const toml::table &cards, TenantEntry &entry) {
    for (const auto &[key, node] : cards) {
      std::string card_path = path + "." + std::string(key.str());
      int line = lineOf(key.source());
      if (key == "all" || !isSelector(key.str()))
        problem(line, card_path, "must be a card's uuid (\"GPU-...\") or its index (0)");
      table(node, card_path, line, [&](const toml::table &numbers) {
        TenantOnCard card{std::string(key.str()), line, {}};
        for (const auto &[number_key, number] : numbers) {
          std::string number_path = card_path + "." + std::string(number_key.str());
          int number_line = lineOf(number_key.source());
          if (!readNumber(number_key.str(), number, number_line, number_path, card.numbers))
            problem(number_line, number_path,
                    "unknown key; known here: weight, guarantee, ceiling, wake_within, class, "
                    "hang_timeout, memory");
        }
        entry.cards.push_back(std::move(card));
      });
    }
  }

  // False when the key is none of a tenant's settings.
  bool readNumber(std::string_view key, const toml::node &node, int line, const std::string &path,
                  TenantNumbers &numbers) {
    if (key == "weight") {
      if (auto weight = integer(node, line, path, QGPU_WEIGHT_MIN, QGPU_WEIGHT_MAX))
        numbers.weight = {static_cast<uint32_t>(*weight), line};
    } else if (key == "guarantee") {
      if (auto tenths = percent(node, line, path)) numbers.guarantee_tenths = {*tenths, line};
    } else if (key == "ceiling") {
      if (auto tenths = percent(node, line, path, ceilingFromPercent))
        numbers.ceiling_tenths = {*tenths, line};
    } else if (key == "class") {
      auto text = string(node, line, path);
      if (!text) return true;
      if (auto work_class = workClassFromText(*text))
        numbers.work_class = {*work_class, line};
      else
        problem(line, path, work_class.error());
    } else if (key == "wake_within" || key == "hang_timeout") {
      bool is_wake = key == "wake_within";
      const auto *text = node.as_string();
      if (!text)
        wrongType(
            node, line, path,
            is_wake ? "a time such as \"2ms\", or \"none\"" : "a time such as \"2ms\", or \"off\"");
      else if (auto ns = is_wake ? wakeFromText(text->get()) : hangFromText(text->get()))
        (is_wake ? numbers.wake_ns : numbers.hang_ns) = {*ns, line};
      else
        problem(line, path, ns.error());
    } else if (key == "memory") {
      if (node.is_string() || node.is_integer())
        problem(line, path, "memory is not enforced in this version and is therefore refused",
                EOPNOTSUPP);
      else
        wrongType(node, line, path, "a size such as \"8GiB\"");
    } else {
      return false;
    }
    return true;
  }

  void readCgroups(const toml::node &node, int line, const std::string &path, TenantEntry &entry) {
    if (const toml::array *list = node.as_array()) {
      if (list->empty()) problem(line, path, "is empty; leave it out for /qgpu/NAME");
      for (const toml::node &element : *list)
        readCgroup(element, lineOf(element.source()), path, entry);
    } else {
      readCgroup(node, line, path, entry);
    }
  }

  void readCgroup(const toml::node &node, int line, const std::string &path, TenantEntry &entry) {
    auto text = string(node, line, path);
    if (!text) return;
    if (const std::string mistake = cgroupPatternMistake(*text); !mistake.empty())
      return problem(line, path, "\"" + *text + "\" " + mistake);
    entry.cgroups.push_back({*text, isGlob(*text), line});
  }

  void checkDuplicates() {
    std::map<std::string, int> matches;
    for (const CardEntry &card : outcome_.ir.cards) {
      auto [first, is_new] = matches.emplace(card.match, card.line);
      if (!is_new && !card.match.empty())
        problem(card.line, "card.match",
                "\"" + card.match + "\" stands already in line " + std::to_string(first->second));
    }
    std::map<std::string, const TenantEntry *> owners;
    for (const TenantEntry &tenant : outcome_.ir.tenants) {
      for (const CgroupPattern &pattern : tenant.cgroups) {
        auto [first, is_new] = owners.emplace(pattern.path, &tenant);
        if (is_new) continue;
        problem(pattern.line, "tenant." + tenant.name + ".cgroup",
                first->second == &tenant ? "\"" + pattern.path + "\" is named twice"
                                         : "\"" + pattern.path + "\" belongs to tenant \"" +
                                               first->second->name + "\" already");
      }
    }
  }

  ConfigOutcome outcome_;
};

// Nothing of it was read.
ConfigOutcome refusedFile(const std::string &file, std::vector<ConfigProblem> problems) {
  ConfigOutcome outcome;
  outcome.ir.file = file;
  outcome.problems = std::move(problems);
  return outcome;
}

std::string numbersText(const TenantNumbers &numbers) {
  std::string text;
  if (numbers.weight) text += " weight=" + std::to_string(numbers.weight->value);
  if (numbers.guarantee_tenths)
    text += " guarantee=" + std::to_string(numbers.guarantee_tenths->value);
  if (numbers.ceiling_tenths) text += " ceiling=" + std::to_string(numbers.ceiling_tenths->value);
  if (numbers.work_class) text += " class=" + className(numbers.work_class->value);
  if (numbers.wake_ns) text += " wake_ns=" + std::to_string(numbers.wake_ns->value);
  if (numbers.hang_ns) text += " hang_ns=" + std::to_string(numbers.hang_ns->value);
  return text;
}

}  // namespace

std::string ConfigProblem::text() const {
  std::string out = file;
  if (line > 0) out += ":" + std::to_string(line);
  if (!key.empty()) out += ": " + key;
  return harmless(out + ": " + reason);
}

std::string TenantEntry::fingerprint() const {
  std::string text = "tenant" + numbersText(numbers);
  for (const CgroupPattern &pattern : cgroups) text += " cgroup=" + pattern.path;
  for (const TenantOnCard &card : cards)
    text += " card=" + card.selector + numbersText(card.numbers);
  return text;
}

std::string TenantEntry::homeCgroup() const {
  for (const CgroupPattern &pattern : cgroups)
    if (!pattern.glob) return pattern.path;
  return "";
}

std::string CardEntry::fingerprint() const {
  return "card match=" + match + (method == CardMethod::kRm ? " method=rm" : "") +
         " policy=" + policyName(policy.value) + " cycle_ns=" + std::to_string(cycle_ns);
}

const TenantEntry *ConfigIr::findTenant(std::string_view name) const {
  auto at = std::find_if(tenants.begin(), tenants.end(),
                         [&](const TenantEntry &tenant) { return tenant.name == name; });
  return at == tenants.end() ? nullptr : &*at;
}

ConfigOutcome parseConfig(std::string_view text, const std::string &file) {
  if (const int line = lineTooDeep(text, kDotsMax))
    return refusedFile(file, {{file, line, "", "has a key of too many parts", EINVAL}});
  try {
    toml::table root = toml::parse(text, file);
    if (auto problems = sizeProblems(root, file); !problems.empty())
      return refusedFile(file, std::move(problems));
    return Reader(file).read(root);
  } catch (const toml::parse_error &error) {
    return refusedFile(
        file, {{file, lineOf(error.source()), "", std::string(error.description()), EINVAL}});
  }
}

ConfigOutcome loadConfig(const std::string &file) {
  auto text = readFile(file, kFileMax);
  if (text) return parseConfig(*text, file);
  return refusedFile(file, {{file, 0, "", text.error().sentence, text.error().err}});
}

}  // namespace qgpu
