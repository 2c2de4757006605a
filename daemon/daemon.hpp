// SPDX-License-Identifier: GPL-2.0
// qgpud without its sockets: what the configuration and the run-time edits ask, kept true on the
// cards. All time comes from the Clock, all work is done in the calls below; none blocks.
//
//   file ── ConfigIr ─┐
//   edits ────────────┼─ policy: compute ── DesiredState ── Reconciler ── Card
//   inventory ────────┤
//   cgroup ids ───────┘
//
// Nothing is undone when the daemon goes away: the cards keep their last plan.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "card.hpp"
#include "cgroup.hpp"
#include "clock.hpp"
#include "config.hpp"
#include "journal.hpp"
#include "ledger.hpp"
#include "metrics.hpp"
#include "policy.hpp"
#include "reconcile.hpp"
#include "state.hpp"

namespace qgpu {

class Daemon {
 public:
  Daemon(Card &card, CgroupTree &cgroups, StateFile &state_file, Clock &clock);

  // Takes a configuration without problems. Loads the state; edits whose basis changed are dropped.
  void start(ConfigIr config);

  // All or nothing: what it returns is why the former configuration stays in force.
  std::vector<ConfigProblem> reload(const ConfigOutcome &outcome);

  // Does what is due: cgroups, reconciling, counters.
  void tick();
  // When tick() wants to be called at the latest.
  uint64_t deadlineNs() const;

  void onCardEvents();
  void onCgroupEvents();

  // Events of the cards, and {lost}: some did not arrive.
  std::function<void(const CardEvent &)> on_event;
  std::function<void()> on_lost;

  // --- what the control socket asks; every refusal leaves all as it was ---

  struct TenantWish {
    std::string tenant;
    std::string card;  // uuid or index, empty = all
    std::optional<uint32_t> weight;
    std::optional<uint32_t> guarantee_tenths;
    std::optional<uint32_t> ceiling_tenths = {};
    std::optional<uint32_t> work_class = {};  // enum qgpu_class
    std::optional<uint64_t> wake_ns = {};     // 0 = no promise
    std::optional<uint64_t> hang_ns = {};     // 0 = off
  };
  enum class Mode { kApply, kDryRun };
  // What a change came to: the cards' answer, or why there is none yet.
  struct Outcome {
    std::map<std::string, PlanReply> cards;  // by uuid; dry run: what it would be
    std::string note;                        // "" or why it is stored but not in force yet
  };
  Result<Outcome> setTenant(const TenantWish &wish, Mode mode);
  Result<Outcome> resetTenant(const std::string &tenant);
  Result<Outcome> setPolicy(const std::string &card, uint32_t policy, Mode mode);

  // Fails closed: ok only if this cgroup belongs to this tenant on every managed card, each card
  // can enforce and does. Looks at the cgroups and the cards afresh.
  // seen_id: what the caller holds for this cgroup; another mount or a later cgroup may have the
  // same path. 0 = whatever is there.
  Result<void> ensure(const std::string &tenant, const std::string &cgroup, uint64_t seen_id = 0);

  // Who was on the engine of a card (uuid or index), from this serial on.
  Result<LogPart> log(const std::string &card, uint64_t from_serial);

  // Effective values change with who is awake: reads the cards and their counters again unless that
  // was just done.
  void refresh();

  const ConfigIr &config() const { return config_; }
  const Edits &edits() const { return state_.edits; }
  const std::vector<CardSnapshot> &cards() const { return reconciler_.observed(); }
  const Metrics &metrics() const { return metrics_; }
  const Ledger &ledger() const { return ledger_; }
  // How often counters could not be read.
  uint64_t readFailures() const { return read_failures_; }
  // The cgroups that each tenant has now: paths below the mount.
  const CgroupPaths &cgroupPaths() const { return cgroup_paths_; }
  uint64_t nowNs() const { return clock_.nowNs(); }
  const std::map<std::string, Error> &refusals() const { return refusals_; }
  // Why nothing is applied at the moment: the file and the edits contradict each other.
  const std::vector<ConfigProblem> &held() const { return held_; }
  const std::vector<std::string> &complaints() const { return cgroup_complaints_; }
  // Why there are no cards to speak to; nullopt when there are.
  const std::optional<Error> &driverError() const { return driver_error_; }
  const std::string &cgroupRoot() const { return cgroups_.root(); }
  uint64_t plansSent() const { return reconciler_.plansSent(); }

  bool isManaged(const CardInfo &card) const { return entryOf(config_, card) != nullptr; }
  CardMethod methodOf(const CardInfo &card) const;
  bool usesMethod(CardMethod method) const;
  bool isEdited(const std::string &tenant, const std::string &uuid) const;

 private:
  std::vector<CardInfo> inventory() const;
  Result<const CardInfo *> findManaged(const std::string &selector);
  Result<Outcome> change(Edits edits, const std::string &only_card, Mode mode);
  Result<Outcome> dryRun(const Edits &edits, const std::string &only_card);
  void look();
  void sync();
  void noteDriver(const Result<void> &seen);
  void warnOfAbsentCards() const;
  void noteRefusals(std::map<std::string, Error> refusals);
  void noteHeld(std::vector<ConfigProblem> problems);
  void sample();
  void readCounters();
  void logLimited(const CardEvent &event, const char *what);
  void save();

  Card &card_;
  CgroupTree &cgroups_;
  StateFile &state_file_;
  Clock &clock_;

  ConfigIr config_;
  State state_;
  CgroupIds cgroup_ids_;
  CgroupPaths cgroup_paths_;
  std::vector<std::string> cgroup_complaints_;
  Reconciler reconciler_;
  Ledger ledger_;
  Metrics metrics_;
  uint64_t read_failures_ = 0;
  LogLimit log_limit_;

  std::map<std::string, Error> refusals_;  // by uuid
  std::vector<ConfigProblem> held_;
  std::optional<Error> driver_error_;
  uint64_t backoff_ns_ = 0;

  uint64_t look_due_ns_ = 0;  // cgroups
  uint64_t looked_ns_ = 0;
  uint64_t look_gap_ns_ = 0;    // to the next look, whatever happens meanwhile
  uint64_t sync_due_ns_ = 0;    // reconcile
  uint64_t resync_due_ns_ = 0;  // read all afresh
  uint64_t sample_due_ns_ = 0;
  uint64_t refreshed_ns_ = 0;
  uint64_t counted_ns_ = 0;
};

}  // namespace qgpu
