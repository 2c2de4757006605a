// SPDX-License-Identifier: GPL-2.0
// The configuration file's own language as plain values (the IR), and every reason why a file is
// refused. What a percentage means for a card is policy.hpp's business: here it is the number
// written in the file, in tenths of a percent, with the line where it stands.
#pragma once

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "result.hpp"

namespace qgpu {

template <class Value>
struct Located {
  Value value{};
  int line = 0;
};

struct ConfigProblem {
  std::string file;
  int line = 0;        // 0 = the file as a whole
  std::string key;     // "tenant.a.guarantee"; empty for the file as a whole
  std::string reason;  // one sentence without a final full stop
  int err = EINVAL;    // ENOSPC: over-committed; EOPNOTSUPP: not enforced in this version

  // "FILE:LINE: KEY: REASON"
  std::string text() const;
};

struct CgroupPattern {
  std::string path;   // below the cgroup2 mount, begins with '/'
  bool glob = false;  // has *, ? or [; each matches within one component
  int line = 0;
};

// Settings that a tenant may have for all cards and again for one card.
struct TenantNumbers {
  std::optional<Located<uint32_t>> weight;
  std::optional<Located<uint32_t>> guarantee_tenths;
  std::optional<Located<uint32_t>> ceiling_tenths;
  std::optional<Located<uint32_t>> work_class;  // enum qgpu_class
  std::optional<Located<uint64_t>> wake_ns;     // 0 = no promise
  std::optional<Located<uint64_t>> hang_ns;     // 0 = off
};

struct TenantOnCard {
  std::string selector;  // uuid or index
  int line = 0;
  TenantNumbers numbers;
};

struct TenantEntry {
  std::string name;
  int line = 0;
  std::vector<CgroupPattern> cgroups;  // empty for "default" only
  TenantNumbers numbers;
  std::vector<TenantOnCard> cards;

  // Says the same for two entries if and only if they ask the same; run-time edits are valid as
  // long as it stays.
  std::string fingerprint() const;
  // Where `qgpuctl run` puts a command; empty for "default".
  std::string homeCgroup() const;
};

// Who drives a card.
enum class CardMethod {
  kModule,  // qgpu.ko, by whichever method it has for the card
  kRm,      // an executor, through the stock driver
};

struct CardEntry {
  std::string match;  // uuid, index or "all"
  int line = 0;
  CardMethod method = CardMethod::kModule;
  Located<uint32_t> policy;  // enum qgpu_policy
  uint64_t cycle_ns = 0;     // 0 = computed

  std::string fingerprint() const;
};

struct ConfigIr {
  std::string file;
  std::string socket = "/run/qgpu/qgpud.sock";
  std::string state = "/var/lib/qgpu/state.json";
  std::string log_level = "info";
  std::string metrics;  // where they are read, "127.0.0.1:9401"; empty = nowhere
  std::vector<CardEntry> cards;
  std::vector<TenantEntry> tenants;

  const TenantEntry *findTenant(std::string_view name) const;
};

struct ConfigOutcome {
  ConfigIr ir;  // complete only when there are no problems
  std::vector<ConfigProblem> problems;
};

// All problems of the text at once, in the order of their lines.
ConfigOutcome parseConfig(std::string_view text, const std::string &file);
// The same from a file; one that cannot be read is a problem.
ConfigOutcome loadConfig(const std::string &file);

}  // namespace qgpu
