// SPDX-License-Identifier: GPL-2.0
// qgpuctl survey: what the registers of the cards on the PCI bus say, as JSON, for a report or an
// issue. Needs the module loaded and root; asks no daemon. Only reads.
#include "survey.hpp"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "verb.hpp"

extern "C" {
#include "hw/tu104/survey.h"
#include "hw/tu104/tu104.h"
}

namespace qgpu::ctl {

namespace {

using Registers = std::map<uint32_t, uint32_t>;

std::string hex(uint32_t value, int digits = 8) {
  char text[16];
  std::snprintf(text, sizeof(text), "0x%0*x", digits, value);
  return text;
}

// A card that reads what was dumped; what was not dumped is refused, as a card refuses.
struct Dumped {
  const Registers &registers;

  static u32 read32(void *ctx, u32 offset) {
    const Registers &registers = static_cast<Dumped *>(ctx)->registers;
    const auto found = registers.find(offset);
    return found == registers.end() ? 0xbadf1000u : found->second;
  }
  static void write32(void *, u32, u32) {}
  static u64 now(void *) { return 0; }
  static void wait(void *, u64) {}
  static void flush(void *, const hw_mem *) {}
  static constexpr hw_io_ops kOps = {
      .read32 = read32, .write32 = write32, .now_ns = now, .wait_ns = wait, .flush = flush};
};

const char *typeName(hw_engine_type type) {
  switch (type) {
    case HW_ENGINE_GRAPHICS:
      return "graphics";
    case HW_ENGINE_COPY:
      return "copy";
    case HW_ENGINE_VIDEO:
      return "video";
    case HW_ENGINE_OTHER:
      break;
  }
  return "other";
}

Json engineOf(struct hw &hw, const hw_engine &engine) {
  static constexpr const char *kStates[] = {"empty", "idle", "running", "switching"};
  Json out = {
      {"index", engine.index}, {"type", typeName(engine.type)}, {"runlist", engine.runlist}};
  hw_status status;
  if (tu104_ops.status(&hw, engine.index, &status)) return out;
  out["state"] = kStates[status.state];
  if (status.tsg_id != HW_NO_ID) out["tsg"] = status.tsg_id;
  return out;
}

Json runlistOf(const struct hw &hw, Dumped &dumped, uint32_t runlist) {
  const auto at = [&](uint32_t offset) { return Dumped::read32(&dumped, offset); };
  const uint32_t base = at(TU104_RUNLIST_BASE_LO(runlist)),
                 info = at(TU104_RUNLIST_SUBMIT_INFO(runlist));
  static constexpr const char *kTargets[] = {"video memory", "?", "coherent system memory",
                                             "system memory"};
  Json pbdmas = Json::array();
  for (uint32_t p = 0; p < TU104_PBDMAS; p++)
    if (hw.id.pbdmas[runlist] >> p & 1) pbdmas.push_back(p);
  return {{"runlist", runlist},
          {"pbdmas", pbdmas},
          {"entries", at(TU104_RUNLIST_SUBMIT(runlist)) & TU104_RUNLIST_SUBMIT_LENGTH},
          {"list_in", kTargets[base & TU104_RUNLIST_BASE_LO_TARGET]},
          {"pending", (info & TU104_RUNLIST_SUBMIT_INFO_PENDING) != 0},
          {"submit_info", hex(info)},
          {"info", hex(at(TU104_SURVEY_RUNLIST_INFO(runlist)))},
          {"disabled", (at(TU104_SURVEY_SCHED_DISABLE) >> runlist & 1) != 0}};
}

// What only a TU104's dump has.
void addTopology(Json &out, const Registers &registers) {
  Dumped dumped{registers};
  struct hw hw {};
  hw.ops = &tu104_ops;
  hw.io = {&Dumped::kOps, &dumped};
  const int err = tu104_ops.probe(&hw);
  if (err) {
    out["supported"] = false;
    out["why"] =
        err == -EOPNOTSUPP ? "another chip than a TU104" : "its engine table cannot be understood";
    return;
  }
  out["supported"] = true;
  out["channels"] = hw.id.channels;
  Json engines = Json::array(), runlists = Json::array();
  for (uint32_t i = 0; i < hw.id.engine_count; i++)
    engines.push_back(engineOf(hw, hw.id.engines[i]));
  for (uint32_t r = 0; r < TU104_RUNLISTS; r++)
    if (hw.id.pbdmas[r]) runlists.push_back(runlistOf(hw, dumped, r));
  out["engines"] = engines;
  out["runlists"] = runlists;
  out["ctxsw_timeout"] = hex(Dumped::read32(&dumped, TU104_SURVEY_CTXSW_TIMEOUT));
}

// Of one line. Return: it is a register.
bool isRegister(const std::string &name, const std::string &text, Registers &registers) {
  uint32_t offset, value;
  if (name.size() != 6 || std::sscanf(name.c_str(), "%x", &offset) != 1 ||
      std::sscanf(text.c_str(), "%x", &value) != 1)
    return false;
  registers[offset] = value;
  return true;
}

Result<std::string> readFile(const std::filesystem::path &path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) return Error{errno ? errno : EIO, "cannot be read", path.string()};
  return text.str();
}

// What the driver says about firmware that runs the card, in its own words.
void addDriver(Json &out, const std::string &folder) {
  std::ifstream file(folder + "/gpus/" + out.value("address", "") + "/information");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const size_t from = line.find_first_not_of(" \t", colon + 1);
    if (from != std::string::npos) out["driver_says"][line.substr(0, colon)] = line.substr(from);
  }
}

int survey(const std::string &folder, const std::string &driver_folder) {
  Json cards = Json::array();
  std::error_code error;
  for (const auto &entry : std::filesystem::directory_iterator(folder, error)) {
    auto dump = readFile(entry.path());
    if (!dump) return complain(dump.error());
    cards.push_back(surveyOf(*dump));
    addDriver(cards.back(), driver_folder);
  }
  if (error)
    return complain({error.value() == EACCES ? EACCES : ENODEV,
                     "no survey: load the module qgpu, mount debugfs, and be root", folder});
  std::printf("%s\n", Json{{"cards", cards}}.dump(2).c_str());
  return kExitOk;
}

}  // namespace

Json surveyOf(const std::string &dump) {
  Registers registers;
  Json out = Json::object(), raw = Json::object();
  std::istringstream lines(dump);
  for (std::string line; std::getline(lines, line);) {
    const size_t space = line.find(' ');
    if (space == std::string::npos) continue;
    const std::string name = line.substr(0, space), text = line.substr(space + 1);
    if (!isRegister(name, text, registers)) out[name] = text;
  }
  if (registers.empty()) return out;
  for (const auto &[offset, value] : registers) raw[hex(offset, 6)] = hex(value);
  const auto boot0 = registers.find(TU104_PMC_BOOT_0);
  if (boot0 != registers.end())
    out["chip"] = hex(tu104_get(boot0->second, TU104_PMC_BOOT_0_CHIP_ID), 3);
  addTopology(out, registers);
  out["registers"] = raw;
  return out;
}

void addSurvey(CLI::App &app, Context &context) {
  struct Options {
    std::string folder = "/sys/kernel/debug/qgpu", driver = "/proc/driver/nvidia";
  };
  auto options = std::make_shared<Options>();
  CLI::App *verb =
      app.add_subcommand("survey", "what the registers of real cards say, as JSON; only reads");
  verb->add_option("--folder", options->folder, "where the module shows them")
      ->capture_default_str();
  verb->add_option("--driver", options->driver, "where the driver shows its cards")
      ->capture_default_str();
  verb->footer("example: qgpuctl survey > card.json");
  verb->callback(
      [options, &context] { context.exit_code = survey(options->folder, options->driver); });
}

}  // namespace qgpu::ctl
