// SPDX-License-Identifier: GPL-2.0
// What must survive a restart and is not in the administrator's file: run-time edits, and which
// cycle override each card was given (the kernel does not tell).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config.hpp"
#include "result.hpp"

namespace qgpu {

// `qgpuctl tenant set`: wins over the file until the file's own entry changes or the edit is reset.
struct TenantEdit {
  std::string tenant;
  std::string card;  // uuid, empty = all cards
  std::optional<uint32_t> weight;
  std::optional<uint32_t> guarantee_tenths;
  std::optional<uint32_t> ceiling_tenths;
  std::optional<uint32_t> work_class;  // enum qgpu_class
  std::optional<uint64_t> wake_ns;     // 0 = no promise
  std::optional<uint64_t> hang_ns;     // 0 = off
  std::string basis;                   // fingerprint of the file's entry when it was made

  bool operator==(const TenantEdit &) const = default;
};

// `qgpuctl policy`
struct CardEdit {
  std::string card;  // uuid
  uint32_t policy = 0;
  std::string basis;

  bool operator==(const CardEdit &) const = default;
};

struct Edits {
  std::vector<TenantEdit> tenants;
  std::vector<CardEdit> cards;

  const TenantEdit *find(const std::string &tenant, const std::string &card) const;
  const CardEdit *findCard(const std::string &card) const;
  // Existing or new, for writing.
  TenantEdit &of(const std::string &tenant, const std::string &card);
  // Returns false when there was none.
  bool resetTenant(const std::string &tenant);

  bool operator==(const Edits &) const = default;
};

// The override last asked for; not sure while a request may have been cut off by a crash.
struct CycleRecord {
  uint64_t cycle_ns = 0;
  bool sure = false;

  bool operator==(const CycleRecord &) const = default;
};

struct State {
  Edits edits;
  std::map<std::string, CycleRecord> cycles;  // by uuid

  bool operator==(const State &) const = default;
};

// Drops the edits whose entry in the file has changed or gone; a sentence for each. Card edits are
// judged only by the caller's `entryOf`, which needs the inventory.
std::vector<std::string> dropOutdated(Edits &edits, const ConfigIr &config);

class StateFile {
 public:
  explicit StateFile(std::string path) : path_(std::move(path)) {}

  struct Loaded {
    State state;
    std::string complaint;  // why the file was put aside; empty when all is well
  };
  // Never fails: a file that cannot be understood is renamed to PATH.bad-N, its edits are not used.
  Loaded load();

  // Atomic: after a crash at any instant the file holds either the former or the new state.
  Result<void> save(const State &state);

  const std::string &path() const { return path_; }

 private:
  std::string path_;
};

// For the file and for tests.
std::string writeState(const State &state);
Result<State> readState(const std::string &text);

}  // namespace qgpu
