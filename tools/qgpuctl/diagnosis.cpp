// SPDX-License-Identifier: GPL-2.0
#include "diagnosis.hpp"

#include <dirent.h>
#include <linux/qgpu.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <sstream>

#include "screen.hpp"
#include "starved.hpp"

namespace qgpu::ctl {

using Json = nlohmann::json;

namespace {

// Off by more than this, beyond the error of the measurement, is not what was promised.
constexpr double kProofPoints = 5;

std::string firstLine(const std::string &path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build ..."
std::string versionIn(const std::string &line) {
  std::istringstream words(line);
  for (std::string word; words >> word;)
    if (isdigit(static_cast<unsigned char>(word.front())) && word.find('.') != std::string::npos)
      return word;
  return "";
}

// What the driver says of the first card's firmware.
std::string gspOf(const std::string &folder) {
  std::unique_ptr<DIR, int (*)(DIR *)> cards(opendir(folder.c_str()), closedir);
  while (const dirent *entry = cards ? readdir(cards.get()) : nullptr) {
    std::ifstream file(folder + "/" + entry->d_name + "/information");
    for (std::string line; std::getline(file, line);) {
      if (!line.starts_with("GPU Firmware:")) continue;
      const size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
      return begin == std::string::npos ? "" : line.substr(begin);
    }
  }
  return "";
}

std::string cgroupMountIn(const std::string &path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.find(" - cgroup2 ") == std::string::npos) continue;
    std::istringstream words(line);
    std::string id, parent, device, root, point;
    words >> id >> parent >> device >> root >> point;
    return point;
  }
  return "";
}

std::string text(const Json &json, const char *key) { return json.value(key, std::string()); }

bool anyCard(const Json &status, const char *key, const char *value) {
  for (const Json &card : status.value("cards", Json::array()))
    if (text(card, key) == value) return true;
  return false;
}

class Findings {
 public:
  void good(std::string what, std::string sentence) {
    list.push_back({Severity::kGood, std::move(what), std::move(sentence), ""});
  }
  void hint(std::string what, std::string sentence, std::string remedy) {
    list.push_back({Severity::kHint, std::move(what), std::move(sentence), std::move(remedy)});
  }
  void bad(std::string what, std::string sentence, std::string remedy) {
    list.push_back({Severity::kBad, std::move(what), std::move(sentence), std::move(remedy)});
  }

  std::vector<Finding> list;
};

void addMachine(Findings &findings, const MachineFacts &facts) {
  const bool is_simulated = [&] {
    for (const Json &card : facts.status.value("cards", Json::array()))
      if (card.value("simulated", false)) return true;
    return false;
  }();
  if (!facts.driver_version.empty())
    findings.good("driver",
                  "NVIDIA " + facts.driver_version +
                      (facts.gsp.empty() || facts.gsp == "N/A" ? ", no GSP firmware in use"
                                                               : ", GSP firmware " + facts.gsp));
  else if (is_simulated)
    findings.good("driver", "the simulated one");
  else
    findings.bad("driver", "the NVIDIA driver is not loaded", "modprobe nvidia");

  const bool needs_module = !anyCard(facts.status, "method", "rm");
  if (facts.is_module_loaded && facts.family_version == QGPU_GENL_VERSION)
    findings.good("module", "qgpu.ko is loaded and speaks version " +
                                std::to_string(*facts.family_version) + " of the interface");
  else if (facts.is_module_loaded && !facts.family_version)
    findings.bad("module", "qgpu.ko is loaded and does not answer", "rmmod qgpu; modprobe qgpu");
  else if (facts.family_version)
    findings.bad("module",
                 "qgpu.ko speaks version " + std::to_string(*facts.family_version) +
                     " of the interface, qgpuctl version " + std::to_string(QGPU_GENL_VERSION),
                 "install module and programs of one release");
  else if (needs_module)
    findings.bad("module", "qgpu.ko is not loaded and no card has method rm",
                 "modprobe qgpu, or method = \"rm\" in /etc/qgpu/qgpud.toml");
  else
    findings.good("module", "not loaded; the cards have method rm");

  if (facts.cgroup_mount.empty())
    findings.bad("cgroups", "no cgroup v2 is mounted: no process can be told to be a tenant's",
                 "boot with systemd.unified_cgroup_hierarchy=1");
  else
    findings.good("cgroups", "version 2 at " + facts.cgroup_mount);

  const bool is_slow = facts.clocksource == "hpet" || facts.clocksource == "acpi_pm" ||
                       facts.clocksource == "jiffies";
  if (is_slow)
    findings.bad(
        "clock",
        "the kernel's clock is " + facts.clocksource + ": each look at a card costs microseconds",
        "find out why the kernel gave up tsc: dmesg | grep -i tsc");
  else
    findings.good("clock", facts.clocksource.empty() ? "not told" : facts.clocksource);

  if (facts.is_root)
    findings.good("permissions", "root: may read and change");
  else
    findings.hint("permissions", "not root: may not change anything", "run doctor as root");
}

void addDaemon(Findings &findings, const MachineFacts &facts) {
  if (facts.daemon_error) {
    findings.bad("qgpud", facts.daemon_error->text(),
                 "systemctl start qgpud; if it does not stay: journalctl -u qgpud");
    return;
  }
  const Json &status = facts.status;
  findings.good("qgpud", "answers, with " + text(status, "config"));
  if (!text(status, "driver_error").empty())
    findings.bad("qgpud", text(status, "driver_error"), "see driver and module above");
  for (const Json &held : status.value("held", Json::array()))
    findings.bad("configuration", "nothing is applied: " + held.get<std::string>(),
                 "correct the file and systemctl reload qgpud, or qgpuctl tenant reset NAME");
  for (const Json &complaint : status.value("complaints", Json::array()))
    findings.hint("cgroups", complaint.get<std::string>(),
                  "correct the tenants' cgroup in " + text(status, "config"));
}

void addCard(Findings &findings, const Json &card) {
  const std::string what = "card " + std::to_string(card.value("index", 0));
  if (!card.value("managed", true)) {
    findings.hint(what, "is observed only: the configuration does not name it", "add a [[card]]");
    return;
  }
  const bool is_rm = text(card, "method") == "rm";
  if (text(card, "state") != "ok")
    findings.bad(what, text(card, "state") + ": " + text(card, "reason"),
                 is_rm ? "systemctl status qgpu-exec@" + text(card, "uuid") : "dmesg | grep qgpu");
  else if (!text(card, "refusal").empty())
    findings.bad(what, "is not as configured: " + text(card, "refusal"),
                 "change what it refuses, then systemctl reload qgpud");
  else if (text(card, "policy") == "best-effort")
    findings.hint(what, "enforces nothing: its policy is best-effort",
                  "qgpuctl policy " + std::to_string(card.value("index", 0)) + " burst-share");
  else
    findings.good(what, text(card, "policy") + " by method " + text(card, "method"));
  if (text(card, "state") == "ok" && !card.contains("counters"))
    findings.bad(what, "tells no counters", "journalctl -u qgpud");
  for (const Json &tenant : card.value("tenants", Json::array()))
    if (isStarved(tenant))
      findings.bad(what,
                   "tenant " + text(tenant, "name") + " is starved: it " + starvationText(tenant),
                   "qgpuctl explain " + text(tenant, "name"));
  const Json executor = card.value("executor", Json::object());
  if (executor.value("controls_refused", uint64_t{0}))
    findings.hint(what,
                  "the driver refused " +
                      std::to_string(executor.value("controls_refused", uint64_t{0})) +
                      " controls since its executor started",
                  "journalctl -u qgpu-exec@" + text(card, "uuid"));
}

const char *nameOf(Severity severity) {
  switch (severity) {
    case Severity::kGood:
      return "good";
    case Severity::kHint:
      return "hint";
    case Severity::kBad:
      return "BAD";
  }
  return "";
}

}  // namespace

MachineFacts gatherFacts(const std::string &root) {
  MachineFacts facts;
  facts.driver_version = versionIn(firstLine(root + "/proc/driver/nvidia/version"));
  facts.gsp = gspOf(root + "/proc/driver/nvidia/gpus");
  struct stat status {};
  facts.is_module_loaded = stat((root + "/sys/module/qgpu").c_str(), &status) == 0;
  facts.cgroup_mount = cgroupMountIn(root + "/proc/self/mountinfo");
  facts.clocksource =
      firstLine(root + "/sys/devices/system/clocksource/clocksource0/current_clocksource");
  facts.is_root = geteuid() == 0;
  return facts;
}

std::vector<Finding> findingsOf(const MachineFacts &facts) {
  Findings findings;
  addMachine(findings, facts);
  addDaemon(findings, facts);
  const Json cards = facts.status.value("cards", Json::array());
  for (const Json &card : cards) addCard(findings, card);
  if (!facts.daemon_error && cards.empty())
    findings.bad("cards", "there is none", "see driver and module above");
  return std::move(findings.list);
}

Finding findingOf(const Proof &proof) {
  const std::string what = "enforcement", pair = proof.first + " and " + proof.second;
  const uint64_t run_ns = proof.first_run_ns + proof.second_run_ns;
  const uint64_t shares_ppm = uint64_t{proof.first_share_ppm} + proof.second_share_ppm;
  if (run_ns == 0 || shares_ppm == 0)
    return {Severity::kBad, what, "the probes of " + pair + " did not run on the card",
            "start qgpu-load by hand: qgpuctl run --tenant " + proof.first + " -- qgpu-load"};
  const auto whole = static_cast<double>(run_ns);
  const double got = 100 * static_cast<double>(proof.first_run_ns) / whole;
  const double asked = 100 * proof.first_share_ppm / static_cast<double>(shares_ppm);
  const double error = 100 * static_cast<double>(proof.error_ns) / whole;
  char sentence[256];
  std::snprintf(sentence, sizeof(sentence),
                "of what %s had together, %s had %.1f %% (+- %.1f), to have was %.1f %%",
                pair.c_str(), proof.first.c_str(), got, error, asked);
  if (std::fabs(got - asked) <= kProofPoints + error) return {Severity::kGood, what, sentence, ""};
  return {Severity::kBad, what, sentence, "qgpuctl explain " + proof.first + "; qgpuctl log"};
}

bool isHealthy(const std::vector<Finding> &findings) {
  return std::none_of(findings.begin(), findings.end(),
                      [](const Finding &f) { return f.severity == Severity::kBad; });
}

std::string findingsText(const std::vector<Finding> &findings) {
  std::string out;
  for (const Finding &finding : findings) {
    std::string head = nameOf(finding.severity);
    head.resize(6, ' ');
    out += head + finding.what + ": " + finding.sentence + "\n";
    if (!finding.remedy.empty()) out += "      remedy: " + finding.remedy + "\n";
  }
  return out + (isHealthy(findings) ? "healthy\n" : "NOT healthy\n");
}

Json findingsJson(const std::vector<Finding> &findings) {
  Json list = Json::array();
  for (const Finding &finding : findings)
    list.push_back(
        {{"severity", finding.severity == Severity::kBad ? "bad" : nameOf(finding.severity)},
         {"what", finding.what},
         {"sentence", finding.sentence},
         {"remedy", finding.remedy}});
  return {{"healthy", isHealthy(findings)}, {"findings", std::move(list)}};
}

}  // namespace qgpu::ctl
