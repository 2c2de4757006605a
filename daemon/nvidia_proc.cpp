// SPDX-License-Identifier: GPL-2.0
// gpus/ADDRESS/information has lines "Name: <blanks> value".
#include "nvidia_proc.hpp"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <memory>

namespace qgpu {

namespace {

constexpr size_t kLineMax = 256;

std::string trimmed(const std::string &text) {
  size_t from = text.find_first_not_of(" \t");
  if (from == std::string::npos) return "";
  return text.substr(from, text.find_last_not_of(" \t\r") - from + 1);
}

bool readCard(const std::string &file, NvidiaCard &card) {
  std::ifstream lines(file);
  std::string line;
  bool has_minor = false;
  while (std::getline(lines, line)) {
    size_t colon = line.find(':');
    if (colon == std::string::npos || line.size() > kLineMax) continue;
    std::string key = line.substr(0, colon);
    std::string value = trimmed(line.substr(colon + 1));
    if (key == "Model") card.name = value;
    if (key == "GPU UUID") card.uuid = value;
    if (key != "Device Minor" || value.empty() || value.size() > 3) continue;
    if (value.find_first_not_of("0123456789") != std::string::npos) continue;
    card.minor = static_cast<uint32_t>(std::stoul(value));
    has_minor = true;
  }
  // Before the card was first used the driver shows question marks for its uuid.
  return has_minor && card.uuid.starts_with("GPU-") && card.uuid.find('?') == std::string::npos;
}

}  // namespace

Result<std::vector<NvidiaCard>> nvidiaCards(const std::string &root) {
  const std::string folder = root + "/gpus";
  std::unique_ptr<DIR, int (*)(DIR *)> listing(opendir(folder.c_str()), closedir);
  if (!listing) return Error{ENODEV, "the NVIDIA driver is not loaded: there is no " + folder, ""};
  std::vector<NvidiaCard> cards;
  while (const dirent *entry = readdir(listing.get())) {
    NvidiaCard card;
    if (entry->d_name[0] == '.') continue;
    if (readCard(folder + "/" + entry->d_name + "/information", card))
      cards.push_back(std::move(card));
  }
  std::sort(cards.begin(), cards.end(),
            [](const NvidiaCard &a, const NvidiaCard &b) { return a.minor < b.minor; });
  return cards;
}

}  // namespace qgpu
