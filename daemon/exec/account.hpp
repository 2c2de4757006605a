// SPDX-License-Identifier: GPL-2.0
// From the context-switch trace to the core's ledger: who computed from when to when, who had
// nothing to do, when the engine was switching or idle.
//
//   trace    START(A)                         END(A)   START(B)
//             |--tail--|------ A computes ------|--save--|--gap--|--tail--|---- B computes ...
//   core     SWITCH    TSG A                    SWITCH                    TSG B
//
// The core is told of the edges themselves, so nothing is sampled. Who has work:
//   - START: it has.
//   - END before its slice had run out: it had none at that moment. Whether it has some right after
//     that (launch-and-sync) or a while later cannot be seen, for others run then. A Belief from
//     probes decides; without one it is taken at its word and has none until its next START.
//   - no START for a round of all others: it has none.
// A tenant that is alone holds the engine without records, working or not. Whoever drives this
// finds out (a preemption makes records only if there is work) and says so with probed().
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "answers.hpp"
#include "card_params.hpp"
#include "trace.hpp"

extern "C" {
#include "core/core.h"
}

namespace qgpu::exec {

// A TSG as the account knows it. Times are the card's.
struct Visitor {
  core_tsg *tsg = nullptr;
  uint64_t visits = 0;
  uint64_t last_start_ns = 0, last_end_ns = 0;
  uint64_t off_ns = 0;  // before its last START
  // Numbers of what the trace restored for it, the last ones; one came that was not among them.
  std::vector<uint32_t> contexts;
  bool new_context = false;
  bool early = false;   // its last visit ended before its slice
  // Of its last visits that nobody disturbed, a bit each, the last one lowest: it ended early.
  uint8_t early_visits = 0;
  // What its last visit computed that ended early and began after it had been off for long; when;
  // and how many visits there had been.
  uint64_t long_visit_ns = 0, long_visit_at_ns = 0, long_visit_no = 0;
  // When a visit last went on well beyond its slice with others waiting, or beyond its being
  // stopped; and until when it is therefore believed that it cannot be cut.
  uint64_t overlong_at_ns = 0, uncut_until_ns = 0;
  Belief belief = Belief::kPaced;
  // Set by who drives this, after every change:
  bool open = true;           // it may run
  uint64_t open_from_ns = 0;  // since when
  uint64_t slice_ns = 0;
  uint64_t disturbed_ns = 0;  // when it was last taken off on purpose
  uint64_t stopped_ns = 0;    // when it was last stopped

  // Not now and then, as somebody whose processor was late, but as one that has gaps.
  bool mostlyEarly() const { return std::popcount(early_visits & 0xfu) >= 3; }
  bool endsEarly() const { return early && mostlyEarly(); }
  // Of its last visit: it was stopped in it; by how much it went on beyond that, or its slice.
  bool wasStopped() const { return stopped_ns > last_start_ns; }
  uint64_t overNs() const;
  // What it does after a long wait says something of what it does now.
  bool knowsLongVisit(uint64_t now_ns) const;
};

class Account {
 public:
  // Nothing before `now_ns` is charged.
  Account(core &core, const CardParams &params, uint64_t now_ns);

  void setParams(const CardParams &params) { params_ = params; }

  // What is recorded with this pid is the TSG's. Pids that are not known are nobody's.
  void know(uint32_t pid, core_tsg *tsg);
  void forget(uint32_t pid);
  Visitor *visitor(uint32_t pid);
  // When somebody who is not known first ran; 0 = was not seen.
  uint64_t strangerSinceNs(uint32_t pid) const;
  // Whether that goes on: it got the engine after this instant, or has it.
  bool strangerRuns(uint32_t pid, uint64_t after_ns) const;

  // Records in the trace's order.
  void take(std::span<const Switch> records);
  // Every record up to this instant has been taken.
  void upTo(uint64_t now_ns);
  // Of the one that holds the engine: it has work, or has none.
  void probed(uint64_t now_ns, bool has_work);
  // It was taken off and did not come back, with nobody else on: it has no work.
  void left(uint32_t pid);

  // Whoever was on was taken off at this instant, or before: the visit says nothing of its work.
  void tookOff(uint64_t ns) { taken_off_ns_ = ns; }
  // What visits lasted until now says nothing: nobody could end them.
  void forgive();

  // Who holds the engine; 0 = nobody that is known. Since when: its START.
  uint32_t holder() const { return on_ ? pid_ : 0; }
  uint64_t heldFromNs() const { return start_ns_; }
  // The holder was found without work, and no record said otherwise since.
  bool holderIdle() const { return on_ && idle_; }
  // How long it takes at most until each that may run and has work has had its turn.
  uint64_t roundNs() const;
  // Records say which context of a process they are of.
  bool namesContexts() const { return names_contexts_; }
  // Up to when everything is charged.
  uint64_t chargedNs() const { return core_.looked_ns; }

 private:
  struct Stranger {
    uint64_t first_ns, last_ns;  // STARTs
  };

  void start(const Switch &record);
  void noteStranger(uint32_t pid, uint64_t at_ns);
  void noteContext(Visitor &visitor, uint32_t context);
  void end(const Switch &record);
  void begin(uint64_t at_ns);
  void look(uint64_t at_ns, core_seen seen);
  void lookGap(uint64_t until_ns);
  bool othersWaited(const Visitor &visitor) const;
  bool wasDisturbed(const Visitor &visitor) const;
  bool wasOverlong(const Visitor &visitor) const;
  void noteEarly(Visitor &visitor);
  void noteOverlong(Visitor &visitor);
  uint64_t absentFromNs(const Visitor &visitor, uint64_t round_ns) const;
  // How long a round takes of those that may run and of whom this is so, and some slack.
  uint64_t roundOf(bool core_tsg::*counts) const;
  void noteAbsent(uint64_t now_ns);
  Visitor *current();

  core &core_;
  CardParams params_;
  std::map<uint32_t, Visitor> visitors_;
  std::map<uint32_t, Stranger> strangers_;  // by pid
  uint64_t taken_off_ns_ = 0;
  bool on_ = false;        // START seen, END not yet
  bool begun_ = false;     // the visit is charged from its first instruction on
  bool idle_ = false;      // the holder has no work
  bool gap_idle_ = false;  // nobody is on, and the engine is known to be idle
  bool names_contexts_ = false;
  uint32_t pid_ = 0;
  uint64_t start_ns_ = 0, end_ns_ = 0;
};

}  // namespace qgpu::exec
