// SPDX-License-Identifier: GPL-2.0
// What qgpuctl doctor finds, from facts that were gathered before: facts in, findings out. Each
// that is not good has a remedy.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "result.hpp"

namespace qgpu::ctl {

// The machine as it was found; empty texts: there is none.
struct MachineFacts {
  std::string driver_version;  // of the NVIDIA driver
  std::string gsp;             // version of the firmware on the cards, "N/A": not used
  bool is_module_loaded = false;
  std::optional<uint32_t> family_version;  // of the module's netlink family
  std::string cgroup_mount;                // of cgroup v2
  std::string clocksource;
  bool is_root = false;
  std::optional<Error> daemon_error;                 // why qgpud does not answer
  nlohmann::json status = nlohmann::json::object();  // of qgpud
};
// root: "" or, for tests, a folder that stands for /.
MachineFacts gatherFacts(const std::string &root);

enum class Severity { kGood, kHint, kBad };

struct Finding {
  Severity severity = Severity::kGood;
  std::string what;  // "driver", "card 0"
  std::string sentence;
  std::string remedy;  // empty when good
};

std::vector<Finding> findingsOf(const MachineFacts &facts);

// What two probe tenants, at work at the same time, were to have and had of what both had.
struct Proof {
  std::string first, second;
  uint64_t first_run_ns = 0, second_run_ns = 0;
  uint64_t error_ns = 0;                               // of both together
  uint32_t first_share_ppm = 0, second_share_ppm = 0;  // by the plan
};
Finding findingOf(const Proof &proof);

bool isHealthy(const std::vector<Finding> &findings);
std::string findingsText(const std::vector<Finding> &findings);
nlohmann::json findingsJson(const std::vector<Finding> &findings);

}  // namespace qgpu::ctl
