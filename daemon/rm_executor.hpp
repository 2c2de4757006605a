// SPDX-License-Identifier: GPL-2.0
// One card under method rm, as qgpud has it: the plan, the tenants' processes, and the executor
// that is to know both. The plan is kept here while the executor is away or does not answer, and
// told again when it is back.
//
//   connect ── Hello ── Plan ── processes ── Stats each second
//      ▲                                        │ gone, or silent for 5 s: the card is degraded,
//      └────────────────────────────────────────┘ the plan stays
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "card.hpp"
#include "exec_link.hpp"
#include "nvidia_proc.hpp"
#include "process_watch.hpp"

namespace qgpu {

class RmExecutor {
 public:
  struct Places {
    std::string run_dir = "/run/qgpu";  // of the executors' sockets
    std::string cgroup_root;            // the cgroup2 mount
    std::string proc = "/proc";         // where a process' cgroup is read
  };
  RmExecutor(NvidiaCard card, const Places &places, const Clock &clock);

  const NvidiaCard &card() const { return card_; }
  int fd() const { return link_.fd(); }
  uint64_t connections() const { return link_.connections(); }

  // Does what is due and what came in; never waits.
  void tick(std::vector<CardEvent> &events);

  // With counters that are at most some milliseconds old, unless the executor is slow.
  CardSnapshot snapshot();
  // All or nothing. Accepted unseen while the executor cannot be asked: it is asked when it is
  // back.
  Result<PlanReply> apply(const PlanChange &change);
  // What is new since the last call; empty when nothing is.
  std::vector<Sample> samples();
  // ENOTCONN, ETIMEDOUT: the executor is not there or does not answer.
  Result<LogPart> log(uint64_t from_serial);

  // Somebody else drives the card: why nothing is told to the executor. Empty: nobody does.
  void setConflict(std::string sentence) { conflict_ = std::move(sentence); }

 private:
  struct Tenant {
    uint32_t id = 0;
    TenantSettings asked;
  };
  struct Plan {
    std::optional<uint32_t> policy;  // absent: nothing was asked yet
    uint64_t cycle_ns = 0;
    std::map<std::string, Tenant> tenants;  // "default" included
  };
  // A PlanRequest on its way.
  struct Asked {
    uint32_t serial = 0;  // 0: none
    uint64_t generation = 0;
    bool dry_run = false;
    std::optional<Result<void>> answer;
  };

  void connect(uint64_t now_ns);
  void lose(const Error &error);
  void pump(std::vector<CardEvent> &events);
  void handle(std::span<const std::byte> packet, std::vector<CardEvent> &events);
  void onHello(std::span<const std::byte> packet);
  void onPlanReply(std::span<const std::byte> packet);
  void onStats(std::span<const std::byte> packet);
  void onLog(std::span<const std::byte> packet);
  void onEvent(std::span<const std::byte> packet, std::vector<CardEvent> &events);

  // Whether it answers: connected, greeted, not overdue.
  bool usable() const;
  bool overdue() const;
  uint64_t shownGeneration() const { return plan_.policy ? generation_ : 1; }

  Result<Plan> changed(const PlanChange &change) const;
  static Result<void> changeTenant(Tenant &tenant, const TenantChange &change);
  uint32_t idFor(const std::string &name, const Plan &plan) const;
  Result<void> ask(const Plan &plan, uint64_t generation, bool dry_run);
  std::optional<Result<void>> waitAnswer();
  void tellPlan();
  void adopt(Plan plan, uint64_t generation);
  void watchProcesses(uint64_t now_ns);
  bool tell(const ProcessWatch::Change &change);
  void askStats();
  void refreshStats(uint64_t wait_ns);

  // Asked, and the answer may still come: neither well nor ill.
  bool isSettling() const;
  std::optional<Error> trouble() const;
  void publishState(std::vector<CardEvent> &events);
  CardInfo info() const;
  std::optional<ExecutorInfo> executorInfo() const;
  TenantStatus statusOf(const std::string &name, const Tenant &tenant) const;
  std::string nameOf(uint32_t tenant_id) const;

  NvidiaCard card_;
  const Clock &clock_;
  ExecLink link_;
  ProcessWatch watch_;

  Plan plan_;
  uint64_t generation_ = 1;       // of plan_, and never below the executor's
  uint64_t told_generation_ = 0;  // the executor has taken it in this process' life
  std::optional<Error> refusal_;  // of a plan that was told again
  Asked asked_;

  std::optional<Error> lost_;  // why there is no connection
  bool greeted_ = false;
  exec::HelloReply hello_{};
  bool announced_ = false;  // all processes were told on this connection
  exec::Stats stats_{};
  uint32_t stats_serial_ = 0;           // a StatsRequest on its way
  uint64_t stats_ns_ = 0;               // when stats_ came
  uint32_t log_serial_ = 0;             // a LogRequest on its way
  std::optional<Result<LogPart>> log_;  // its answer
  uint64_t sampled_ns_ = 0;             // time of the last samples
  std::string conflict_;

  uint64_t connect_due_ns_ = 0;
  uint64_t look_due_ns_ = 0;
  uint32_t shown_state_ = QGPU_CARD_OK;
  std::string shown_reason_;
  std::vector<CardEvent> waiting_;  // came while an answer was waited for
};

}  // namespace qgpu
