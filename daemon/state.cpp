// SPDX-License-Identifier: GPL-2.0
// The state file: {"version", "checksum", "body"}; the checksum is FNV-1a over the body's text. The
// only writer is the daemon's thread.
#include "state.hpp"

#include <fcntl.h>
#include <linux/qgpu.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "file.hpp"
#include "names.hpp"
#include "nesting.hpp"
#include "policy.hpp"

namespace qgpu {

namespace {

using Json = nlohmann::json;

// 1 knew of weight and guarantee alone; it is still read, and never written: a program that knows
// no other must not take a half of the edits for all.
constexpr int kVersion = 2;
constexpr int kVersionOldest = 1;
constexpr size_t kFileMax = 4 * 1024 * 1024;
constexpr int kDepthMax = 16;
constexpr int kAsideMax = 1000;

std::string checksum(const std::string &text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3;
  char hex[17];
  snprintf(hex, sizeof(hex), "%016llx", static_cast<unsigned long long>(hash));
  return hex;
}

Json bodyOf(const State &state) {
  Json tenants = Json::array();
  for (const TenantEdit &edit : state.edits.tenants) {
    Json entry = {{"tenant", edit.tenant}, {"basis", edit.basis}};
    if (!edit.card.empty()) entry["card"] = edit.card;
    if (edit.weight) entry["weight"] = *edit.weight;
    if (edit.guarantee_tenths) entry["guarantee_tenths"] = *edit.guarantee_tenths;
    if (edit.ceiling_tenths) entry["ceiling_tenths"] = *edit.ceiling_tenths;
    if (edit.work_class) entry["class"] = className(*edit.work_class);
    if (edit.wake_ns) entry["wake_ns"] = *edit.wake_ns;
    if (edit.hang_ns) entry["hang_ns"] = *edit.hang_ns;
    tenants.push_back(std::move(entry));
  }
  Json cards = Json::array();
  for (const CardEdit &edit : state.edits.cards)
    cards.push_back(
        {{"card", edit.card}, {"policy", policyName(edit.policy)}, {"basis", edit.basis}});
  Json cycles = Json::object();
  for (const auto &[uuid, record] : state.cycles)
    cycles[uuid] = {{"cycle_ns", record.cycle_ns}, {"sure", record.sure}};
  return {{"tenants", tenants}, {"cards", cards}, {"cycles", cycles}};
}

// The number of that name, if there is one; out of range throws.
template <class Value>
void readRanged(const Json &entry, const char *name, uint64_t min, uint64_t max,
                std::optional<Value> &value) {
  auto found = entry.find(name);
  if (found == entry.end()) return;
  auto number = found->get<uint64_t>();
  if (!found->is_number_unsigned() || number < min || number > max)
    throw std::out_of_range("a number is outside its range");
  value = static_cast<Value>(number);
}

TenantEdit tenantEditOf(const Json &entry) {
  TenantEdit edit;
  edit.tenant = entry.at("tenant").get<std::string>();
  if (const char *mistake = tenantNameMistake(edit.tenant)) throw std::out_of_range(mistake);
  edit.basis = entry.at("basis").get<std::string>();
  edit.card = entry.value("card", "");
  readRanged(entry, "weight", QGPU_WEIGHT_MIN, QGPU_WEIGHT_MAX, edit.weight);
  readRanged(entry, "guarantee_tenths", 0, 1000, edit.guarantee_tenths);
  readRanged(entry, "ceiling_tenths", 1, 1000, edit.ceiling_tenths);
  readRanged(entry, "wake_ns", 0, kWakeMaxNs, edit.wake_ns);
  readRanged(entry, "hang_ns", 0, kHangMaxNs, edit.hang_ns);
  if (auto name = entry.find("class"); name != entry.end()) {
    edit.work_class = classFromName(name->get<std::string>());
    if (!edit.work_class) throw std::out_of_range("a class is unknown");
  }
  return edit;
}

State stateOf(const Json &body) {
  State state;
  for (const Json &entry : body.at("tenants")) state.edits.tenants.push_back(tenantEditOf(entry));
  for (const Json &entry : body.at("cards")) {
    auto policy = policyFromName(entry.at("policy").get<std::string>());
    if (!policy) throw std::out_of_range("a policy is unknown");
    state.edits.cards.push_back(
        {entry.at("card").get<std::string>(), *policy, entry.at("basis").get<std::string>()});
  }
  for (const auto &[uuid, record] : body.at("cycles").items())
    state.cycles[uuid] = {record.at("cycle_ns").get<uint64_t>(), record.at("sure").get<bool>()};
  return state;
}

// A byte that is not UTF-8 must not turn into an exception.
std::string dump(const Json &json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

bool writeAll(int fd, const std::string &text) {
  size_t at = 0;
  while (at < text.size()) {
    ssize_t written = write(fd, text.data() + at, text.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    at += static_cast<size_t>(written);
  }
  return true;
}

}  // namespace

const TenantEdit *Edits::find(const std::string &tenant, const std::string &card) const {
  for (const TenantEdit &edit : tenants)
    if (edit.tenant == tenant && edit.card == card) return &edit;
  return nullptr;
}

const CardEdit *Edits::findCard(const std::string &card) const {
  for (const CardEdit &edit : cards)
    if (edit.card == card) return &edit;
  return nullptr;
}

TenantEdit &Edits::of(const std::string &tenant, const std::string &card) {
  for (TenantEdit &edit : tenants)
    if (edit.tenant == tenant && edit.card == card) return edit;
  TenantEdit &edit = tenants.emplace_back();
  edit.tenant = tenant;
  edit.card = card;
  return edit;
}

bool Edits::resetTenant(const std::string &tenant) {
  return std::erase_if(tenants, [&](const TenantEdit &edit) { return edit.tenant == tenant; }) > 0;
}

std::vector<std::string> dropOutdated(Edits &edits, const ConfigIr &config) {
  std::vector<std::string> dropped;
  std::erase_if(edits.tenants, [&](const TenantEdit &edit) {
    const TenantEntry *entry = config.findTenant(edit.tenant);
    if (entry && entry->fingerprint() == edit.basis) return false;
    dropped.push_back("run-time edit of tenant \"" + edit.tenant + "\" ends: its entry in " +
                      config.file + (entry ? " changed" : " is gone"));
    return true;
  });
  std::erase_if(edits.cards, [&](const CardEdit &edit) {
    for (const CardEntry &entry : config.cards)
      if (entry.fingerprint() == edit.basis) return false;
    dropped.push_back("run-time policy of card " + edit.card + " ends: its entry in " +
                      config.file + " changed");
    return true;
  });
  return dropped;
}

std::string writeState(const State &state) {
  Json body = bodyOf(state);
  Json file = {{"version", kVersion}, {"checksum", checksum(dump(body, -1))}, {"body", body}};
  return dump(file, 2) + "\n";
}

Result<State> readState(const std::string &text) {
  try {
    if (isTooDeep(text, kDepthMax)) return Error{EBADMSG, "is nested too deeply", ""};
    Json file = Json::parse(text);
    const Json &version = file.at("version");
    if (!version.is_number_integer() || version < kVersionOldest || version > kVersion)
      return Error{EPROTONOSUPPORT,
                   "is of version " + dump(version, -1) + ", this program knows versions " +
                       std::to_string(kVersionOldest) + " to " + std::to_string(kVersion),
                   ""};
    if (file.at("checksum") != checksum(dump(file.at("body"), -1)))
      return Error{EBADMSG, "its checksum does not fit its content", ""};
    return stateOf(file.at("body"));
  } catch (const std::exception &error) {
    return Error{EBADMSG, std::string("cannot be understood: ") + error.what(), ""};
  }
}

StateFile::Loaded StateFile::load() {
  auto text = readFile(path_, kFileMax);
  if (!text && text.error().err == ENOENT) return {};
  Error why = text ? Error{} : text.error();
  if (text) {
    auto state = readState(*text);
    if (state) return {std::move(*state), ""};
    why = state.error();
  }
  std::string complaint = path_ + " " + why.sentence + "; its run-time edits are not in force";
  for (int i = 1; i <= kAsideMax; ++i) {
    std::string aside = path_ + ".bad-" + std::to_string(i);
    if (access(aside.c_str(), F_OK) == 0) continue;
    if (rename(path_.c_str(), aside.c_str()) == 0)
      complaint += ", it is kept as " + aside;
    else
      complaint += std::string(", it cannot be kept aside: ") + strerror(errno);
    break;
  }
  return {{}, complaint};
}

Result<void> StateFile::save(const State &state) {
  std::string fresh = path_ + ".new";
  std::string text = writeState(state);
  // It would be refused when it is read.
  if (text.size() > kFileMax)
    return Error{EFBIG, "there are more run-time edits than the state file may hold", path_};
  auto fail = [&](const char *what) -> Result<void> {
    int err = errno;
    unlink(fresh.c_str());
    return Error{err, std::string("cannot ") + what + " the state file: " + strerror(err), path_};
  };

  unlink(fresh.c_str());
  int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return fail("create");
  bool written = writeAll(fd, text) && fsync(fd) == 0;
  int err = errno;
  close(fd);
  errno = err;
  if (!written) return fail("write");
  if (rename(fresh.c_str(), path_.c_str()) != 0) return fail("replace");

  size_t slash = path_.rfind('/');
  std::string folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
  int folder_fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_fd >= 0) {
    fsync(folder_fd);
    close(folder_fd);
  }
  return {};
}

}  // namespace qgpu
