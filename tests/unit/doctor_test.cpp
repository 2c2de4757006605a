// SPDX-License-Identifier: GPL-2.0
// What doctor makes of a machine: each thing that is missing is found, named and has a remedy.
#include <gtest/gtest.h>
#include <linux/qgpu.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "diagnosis.hpp"
#include "fakes/temp_folder.hpp"

namespace qgpu::ctl {
namespace doctor_test {

using Json = nlohmann::json;

MachineFacts healthy() {
  MachineFacts facts;
  facts.driver_version = "580.1";
  facts.is_module_loaded = true;
  facts.family_version = QGPU_GENL_VERSION;
  facts.cgroup_mount = "/sys/fs/cgroup";
  facts.clocksource = "tsc";
  facts.is_root = true;
  facts.status = {{"config", "f"},
                  {"driver_error", ""},
                  {"cards",
                   {{{"index", 0},
                     {"uuid", "GPU-0"},
                     {"managed", true},
                     {"state", "ok"},
                     {"refusal", ""},
                     {"policy", "burst-share"},
                     {"method", "images"},
                     {"counters", Json::object()}}}}};
  return facts;
}

TEST(Doctor, HealthyMachineHasNoRemedies) {
  const auto findings = findingsOf(healthy());
  EXPECT_TRUE(isHealthy(findings)) << findingsText(findings);
  for (const Finding &finding : findings) EXPECT_EQ(finding.remedy, "") << finding.what;
  EXPECT_NE(findingsText(findings).find("\nhealthy\n"), std::string::npos);
}

struct Illness {
  const char *what;
  void (*afflict)(MachineFacts &);
};

TEST(Doctor, EachIllnessIsNamedAndHasARemedy) {
  const Illness illnesses[] = {
      {"driver", [](MachineFacts &f) { f.driver_version.clear(); }},
      {"module",
       [](MachineFacts &f) {
         f.is_module_loaded = false;
         f.family_version.reset();
       }},
      {"module", [](MachineFacts &f) { f.family_version.reset(); }},
      {"module", [](MachineFacts &f) { f.family_version = QGPU_GENL_VERSION + 1; }},
      {"cgroups", [](MachineFacts &f) { f.cgroup_mount.clear(); }},
      {"clock", [](MachineFacts &f) { f.clocksource = "hpet"; }},
      {"qgpud",
       [](MachineFacts &f) {
         f.daemon_error = Error{ENOTCONN, "qgpud does not answer", ""};
         f.status = Json::object();
       }},
      {"configuration", [](MachineFacts &f) { f.status["held"] = {"a contradiction"}; }},
      {"card 0", [](MachineFacts &f) { f.status["cards"][0]["state"] = "degraded"; }},
      {"card 0", [](MachineFacts &f) { f.status["cards"][0]["refusal"] = "EIO: no"; }},
      {"card 0", [](MachineFacts &f) { f.status["cards"][0].erase("counters"); }},
      {"cards", [](MachineFacts &f) { f.status["cards"] = Json::array(); }},
  };
  for (const Illness &illness : illnesses) {
    MachineFacts facts = healthy();
    illness.afflict(facts);
    const auto findings = findingsOf(facts);
    EXPECT_FALSE(isHealthy(findings)) << illness.what;
    bool found = false;
    for (const Finding &finding : findings) {
      if (finding.severity == Severity::kBad) {
        EXPECT_NE(finding.remedy, "") << finding.what;
      }
      found |= finding.severity == Severity::kBad && finding.what == illness.what;
    }
    EXPECT_TRUE(found) << illness.what << "\n" << findingsText(findings);
  }
}

TEST(Doctor, WhoGetsNothingIsNamed) {
  MachineFacts facts = healthy();
  facts.status["cards"][0]["tenants"] = {
      {{"name", "poor"},
       {"effective", {{"share_ppm", 250'000}}},
       {"measured",
        {{"interval_ns", 1'000'000'000},
         {"share_ppm", 0},
         {"work_ppm", 1'000'000},
         {"waiting_ns", 12'000'000'000}}}},
      {{"name", "rich"},
       {"effective", {{"share_ppm", 750'000}}},
       {"measured",
        {{"interval_ns", 1'000'000'000}, {"share_ppm", 1'000'000}, {"work_ppm", 1'000'000}}}}};
  const auto findings = findingsOf(facts);
  EXPECT_FALSE(isHealthy(findings));
  const std::string text = findingsText(findings);
  EXPECT_NE(text.find("tenant poor is starved: it had work for 100.0 % of the last 1.0 s and got "
                      "0.0 % of the card, entitled to 25.0 %; it has been waiting for 12.0 s"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("qgpuctl explain poor"), std::string::npos) << text;
  EXPECT_EQ(text.find("rich"), std::string::npos) << text;
}

TEST(Doctor, MethodRmNeedsNoModule) {
  MachineFacts facts = healthy();
  facts.is_module_loaded = false;
  facts.family_version.reset();
  facts.status["cards"][0]["method"] = "rm";
  EXPECT_TRUE(isHealthy(findingsOf(facts))) << findingsText(findingsOf(facts));
}

TEST(Doctor, HintsAloneAreHealthy) {
  MachineFacts facts = healthy();
  facts.is_root = false;
  facts.status["cards"][0]["policy"] = "best-effort";
  const auto findings = findingsOf(facts);
  EXPECT_TRUE(isHealthy(findings));
  EXPECT_NE(findingsText(findings).find("best-effort"), std::string::npos);
}

TEST(Doctor, ProofHoldsWhenTheRatioDoes) {
  EXPECT_EQ(findingOf({"a", "b", 2000, 1000, 0, 600'000, 300'000}).severity, Severity::kGood);
  const Finding off = findingOf({"a", "b", 1000, 1000, 0, 600'000, 300'000});
  EXPECT_EQ(off.severity, Severity::kBad);
  EXPECT_NE(off.sentence.find("a had 50.0 %"), std::string::npos) << off.sentence;
  EXPECT_NE(off.sentence.find("66.7 %"), std::string::npos) << off.sentence;
  EXPECT_EQ(findingOf({"a", "b", 0, 0, 0, 500'000, 500'000}).severity, Severity::kBad);
}

TEST(Doctor, ReadsTheMachine) {
  fakes::TempFolder root;
  const auto write = [&](const std::string &path, const std::string &text) {
    std::filesystem::create_directories(std::filesystem::path(root / path).parent_path());
    std::ofstream(root / path) << text;
  };
  write("proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release\nGCC\n");
  write("proc/driver/nvidia/gpus/0000:01:00.0/information",
        "Model: \t\t NVIDIA H200\nGPU Firmware: \t 580.159.04\n");
  write("proc/self/mountinfo", "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  write("sys/module/qgpu/refcnt", "0\n");
  write("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
  const MachineFacts facts = gatherFacts(root.path());
  EXPECT_EQ(facts.driver_version, "580.159.04");
  EXPECT_EQ(facts.gsp, "580.159.04");
  EXPECT_EQ(facts.cgroup_mount, "/sys/fs/cgroup");
  EXPECT_EQ(facts.clocksource, "tsc");
  EXPECT_TRUE(facts.is_module_loaded);
  const MachineFacts none = gatherFacts(root / "nowhere");
  EXPECT_EQ(none.driver_version + none.gsp + none.cgroup_mount, "");
  EXPECT_FALSE(none.is_module_loaded);
}

}  // namespace doctor_test
}  // namespace qgpu::ctl
