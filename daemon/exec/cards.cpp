// SPDX-License-Identifier: GPL-2.0
#include "cards.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "text_file.hpp"

namespace qgpu::exec {
namespace {

namespace fs = std::filesystem;

// "Device Minor: \t 0" -> "0"; empty when the line is not there.
std::string valueOf(const std::string &text, const std::string &key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(key + ":", 0) != 0) continue;
    const size_t from = line.find_first_not_of(" \t", key.size() + 1);
    return from == std::string::npos ? "" : line.substr(from);
  }
  return {};
}

// Every partition has a folder of its own.
bool partitioned(const std::string &folder, const std::string &minor) {
  std::error_code none;
  for (const auto &entry :
       fs::directory_iterator(folder + "/capabilities/gpu" + minor + "/mig", none))
    if (entry.path().filename().string().rfind("gi", 0) == 0) return true;
  return false;
}

}  // namespace

Result<DriverVersion> driverVersion(const std::string &folder) {
  const auto text = readTextFile(folder + "/version");
  if (!text) return Error{ENODEV, "the NVIDIA driver is not loaded", folder};
  return parseDriverVersion(*text);
}

Result<std::vector<DriverCard>> driverCards(const std::string &folder) {
  std::error_code error;
  std::vector<DriverCard> out;
  for (const auto &entry : fs::directory_iterator(folder + "/gpus", error)) {
    const auto text = readTextFile((entry.path() / "information").string());
    if (!text) continue;
    const std::string minor = valueOf(*text, "Device Minor");
    if (minor.empty()) continue;
    out.push_back({valueOf(*text, "GPU UUID"), valueOf(*text, "Model"),
                   static_cast<unsigned>(std::strtoul(minor.c_str(), nullptr, 10)),
                   partitioned(folder, minor)});
  }
  if (error) return Error{ENODEV, "the NVIDIA driver is not loaded", folder};
  return out;
}

Result<DriverCard> findCard(const std::vector<DriverCard> &cards, const std::string &which) {
  for (const DriverCard &card : cards) {
    if (card.uuid != which && std::to_string(card.minor) != which) continue;
    if (card.partitioned)
      return Error{EOPNOTSUPP, "the card is partitioned (MIG), which is not supported", which};
    return card;
  }
  return Error{ENOENT, "the driver has no card " + which, which};
}

}  // namespace qgpu::exec
