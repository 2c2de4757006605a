// SPDX-License-Identifier: GPL-2.0
// Tenants and their TSGs on one card, on both sides: as the plan and the processes name them, and
// as the core schedules them. Knows no driver; what it holds of the driver's objects it only
// carries.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <vector>

#include "answers.hpp"
#include "controls.hpp"
#include "proc.hpp"
#include "protocol.hpp"

extern "C" {
#include "core/core.h"
}

namespace qgpu::exec {

struct ManagedTenant {
  PlanTenant asked{};
  core_tenant core{};
  uint64_t gates = 0, foreign_changes = 0;
  uint64_t past_visits = 0;  // of TSGs that are gone
  // What was counted before counting began anew.
  core_counters counted_before{};
  uint64_t visits_before = 0;
  // Askings whether one of its TSGs that ended early has work, whatever becomes of the TSGs: when
  // the last was; how many by then, less those that were forgotten.
  uint64_t asked_ns = 0;
  unsigned asks = 0;
  // After windows that one left empty: how often it is asked, since when, because of whom; and what
  // it was before that.
  uint64_t distrust_ns = 0, distrusted_ns = 0, distrust_before_ns = 0;
  ProcessId distrusted{};
  // Without the trace: by how much what the ledger has may be wrong; and what NVML has.
  uint64_t inferred_err_ns = 0;
  uint64_t nvml_run_ns = 0, nvml_err_ns = 0;
};

// A graphics/compute TSG under control. Times are the card's.
struct ManagedTsg {
  core_tsg core{};
  ManagedTenant *tenant = nullptr;  // null: the plan no longer has its tenant
  ProcessId process;
  Foreign of;
  Tsg tsg;
  uint64_t found_us = 0;    // its slice when it was found
  uint64_t written_us = 0;  // what was written since; 0 = nothing
  uint64_t uncontrolled_ns = 0;
  uint64_t found_at_ns = 0;  // since when it is managed
  unsigned set_ups = 0;      // how often its own driver has set its slice since
  bool gated = false;
  uint64_t gated_ns = 0, opened_ns = 0;  // when that last changed: the control was issued
  uint64_t gate_done_ns = 0;             // and when it was over, of stopping
  bool leaks = false;                    // not all of it may be stopped: all is, anew
  uint64_t escaped_ns = 0;  // of the own clock: it was seen running so; 0 = not, as it is known
  bool breathes = false;    // let run for a moment, because nobody may be stopped for longer
  uint64_t foreign_ns = 0;  // when somebody else last wrote its slice, or let it run
  bool quarantined = false;
  uint64_t refused_until_ns = 0;   // no writing before that
  uint64_t skipped_window_ns = 0;  // the window of the rotation in which it is not due
  // Of the probes whether it has work: answers in a row that it works; all it answered with nobody
  // in its way; when it was last asked in a window of its own, and with the others stopped.
  unsigned busy_answers = 0;
  Answers answers;
  uint64_t window_asked_ns = 0, asked_ns = 0;
  uint64_t hold_until_ns = 0;  // stopped until then, to see what piles up
  // Of progress.cpp: since it was let run at opened_ns.
  struct Watch {
    uint64_t opened_ns = 0;
    bool cut = false;   // it was stopped while it computed
    bool done = false;  // it has gone on, or is not waited for
    unsigned tried = 0;
    uint64_t tried_ns = 0;
  } watch;

  uint64_t sliceUs() const { return written_us ? written_us : found_us; }
};

// Tenants whose limits are kept by stopping them.
uint64_t gatedOf(const Plan &plan);

class Roster {
 public:
  explicit Roster(core &core) : core_(core) {}

  // May this plan be set? A sentence and the guilty tenant if not; changes nothing.
  Result<void> check(const Plan &plan, uint32_t &guilty) const;
  // Sets a plan that was checked.
  void apply(const Plan &plan);
  // From now on nothing is known of who has work: a ceiling is enforced by windows of its own on
  // the clock, which are as long as it whether they are used or not; what needs to know is refused.
  // The plan in force is to be set again.
  void goByClock() { by_clock_ = true; }
  const PlanRequest &plan() const { return plan_; }
  bool enforcing() const { return plan_.policy != CORE_BEST_EFFORT; }
  // Does anybody have a wake_within?
  bool promisesWaits() const { return promises_waits_; }
  // A window that its owner leaves empty is nobody else's.
  bool leavesIdle() const {
    return plan_.policy == CORE_FIXED_SHARE || plan_.policy == CORE_EQUAL_SHARE;
  }

  ManagedTenant *tenant(uint32_t id) const;
  const std::map<uint32_t, std::unique_ptr<ManagedTenant>> &tenants() const { return tenants_; }

  ManagedTsg &add(ManagedTsg tsg, ManagedTenant *tenant);
  // Its object is gone.
  void remove(const ProcessId &process, uint32_t handle);
  // All of a process.
  void removeProcess(const ProcessId &process);
  void move(const ProcessId &process, ManagedTenant *tenant);
  ManagedTsg *find(const ProcessId &process, uint32_t handle);
  std::list<std::unique_ptr<ManagedTsg>> &tsgs() { return tsgs_; }
  const std::list<std::unique_ptr<ManagedTsg>> &tsgs() const { return tsgs_; }

 private:
  void moveTsg(ManagedTsg &tsg, ManagedTenant *tenant);

  core &core_;
  bool by_clock_ = false, promises_waits_ = false;
  PlanRequest plan_{};
  std::map<uint32_t, std::unique_ptr<ManagedTenant>> tenants_;
  std::list<std::unique_ptr<ManagedTsg>> tsgs_;
};

}  // namespace qgpu::exec
