// SPDX-License-Identifier: GPL-2.0
// One card under control: processes and plan in, slices and gates out, the trace in between. No
// socket and no sleeping here: turn() does what is due and says when the next is due.
//
//   turn:  processes (look, ended) -> trace (flush, read) -> account -> core -> enforcer
//
// Two clocks: decisions run on the card's timer, the same as the trace's; looking for processes
// and what is told to others on CLOCK_MONOTONIC.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "account.hpp"
#include "calibration.hpp"
#include "card_params.hpp"
#include "controls.hpp"
#include "core_params.hpp"
#include "enforcer.hpp"
#include "process.hpp"
#include "progress.hpp"
#include "protocol.hpp"
#include "pulse.hpp"
#include "roster.hpp"
#include "store.hpp"
#include "trace.hpp"
#include "utilisation.hpp"
#include "visit_log.hpp"

namespace qgpu::exec {

struct ExecutorOptions {
  std::string uuid, name, driver;
  std::string run_dir = "/run/qgpu";
  std::string state_dir = "/var/lib/qgpu";  // of what outlives the machine's uptime
  std::string nvml = "libnvidia-ml.so.1";   // for when the trace cannot be had; empty: none
  CardParams params;                        // unless the card's own are in the state folder
  uint32_t worker_restarts = 0;
  uint64_t seed = 1;             // of what is done at random instants
  const Pulse *pulse = nullptr;  // what its guard tells it by; null: it has none
  std::function<uint64_t()> now_ns = monotonicNs;
};

class Executor {
 public:
  // Takes over what an earlier worker left in the run folder.
  static Result<std::unique_ptr<Executor>> create(std::unique_ptr<RmClient> own,
                                                  const ExecutorOptions &options);
  ~Executor();

  HelloReply hello() const;
  // `guilty`: the tenant, or kNoTenant.
  Result<void> setPlan(const Plan &plan, uint32_t &guilty);
  // Takes the pidfd.
  Result<void> addProcess(pid_t pid, int pidfd, uint32_t tenant_id);
  Result<void> dropProcess(pid_t pid);
  Stats stats();
  // Who was on the engine; with an error when that is not known.
  Log log(uint64_t from_serial) const;

  // Of qgpuctl calibrate. Takes the pidfds, also when it refuses.
  Result<void> beginMeasuring(const MeasureRequest &request, const std::vector<int> &pidfds);
  bool measuring() const { return calibration_->runs(); }
  void askSpans(const SpansRequest &request) { calibration_->askSpans(request); }
  void endMeasuring() { calibration_->end(); }
  // Of a measurement that is over, once.
  std::optional<Result<Measured>> measured() { return calibration_->result(); }
  // Uses them from now on, and after restarts.
  Result<void> setConstants(const CardConstants &constants);

  // Events since the last call, oldest first.
  std::vector<Event> takeEvents();

  // Does what is due. Returns for how long nothing will be.
  uint64_t turn();
  // Everything as it was found; the run folder's files are gone, or stay for --release when
  // somebody could not be let run. Only destruction may follow.
  void stop();

 private:
  struct Managed {
    std::unique_ptr<Process> process;
    uint32_t tenant_id;
    bool told_blind = false;  // since it was last under control
  };

  Executor(std::unique_ptr<RmClient> own, const ExecutorOptions &options);
  Result<void> init();
  void goByClock(const std::string &why);
  void openUtilisation();
  void sayByClock();
  void turnUtilisation();
  void noteUtilisation(const std::map<uint32_t, double> &parts, uint64_t span_ns);
  uint32_t source() const;
  void loadConstants();
  void useConstants(const CardConstants &constants);
  Result<void> mayMeasure(const MeasureRequest &request) const;
  void adopt();
  void save();
  uint64_t cardNs();
  Status shortfall() const;
  void beginCounting();
  void noteRemoved(const Plan &plan);
  uint64_t visitsOf(const ManagedTenant &tenant) const;
  uint64_t runNs(ManagedTenant &tenant) const;
  StatsReply cardStats() const;
  void listen();
  LogEntry entryOf(const core_visit &visit) const;
  void noteVisit(const core_visit &visit);
  LogEntry ongoing() const;
  void reportStatus();

  void turnProcesses(uint64_t now_ns);
  void updateObjects(const ProcessId &id, Managed &managed);
  void reportControlled(const ProcessId &id, Managed &managed);
  void reportBlind(const ProcessId &id, Managed &managed);
  void noteUnseen(const ProcessId &id, Managed &managed, uint64_t now_ns);
  void release(const ProcessId &id);
  void bookVisits(uint32_t pid);
  void forget(uint32_t pid);
  void takeRecords(uint64_t now_ns);
  bool readTrace(uint64_t now_ns);
  void turnTrace(uint64_t now_ns);
  uint64_t stalledNs(uint64_t now_ns);
  bool wasOpened();
  void forgiveStall();
  void inferNobody(uint64_t until_ns);
  void infer(uint64_t now_ns);
  void tellAccount();
  void enforce(uint64_t now_ns);
  void changeWindow(uint64_t now_ns);
  Visitor *visitorOf(const ManagedTsg &tsg);
  bool inOwnWindow(const ManagedTsg &tsg) const;
  bool awaitStart(uint64_t held_from_ns);
  bool preempt(ManagedTsg &tsg, uint64_t now_ns);
  void noteAnswer(ManagedTsg &tsg, Visitor &visitor, bool work, unsigned times = 1);
  void noteVisits(ManagedTsg &tsg, Visitor &visitor, uint64_t short_ns, uint64_t long_ns);
  bool canBeCut(const Visitor &visitor) const;
  void distrust(ManagedTenant &tenant, const ProcessId &process);
  void trustAfter(const ProcessId &ended);
  uint64_t distrustNs(const ManagedTenant &tenant) const;
  unsigned asksOf(const ManagedTenant &tenant) const;
  bool isUnsure(const ManagedTsg &tsg, const Visitor &visitor) const;
  void forgivePaced();
  std::optional<uint64_t> nextVisitNs(const ManagedTsg &tsg, ManagedTsg &other);
  void askEarly(ManagedTsg &tsg, Visitor &visitor, ManagedTsg &holder, uint64_t now_ns);
  ManagedTsg *dueAtItsWindow(uint64_t now_ns);
  void askAtItsWindow(ManagedTsg &tsg);
  bool dueInOwnWindow(ManagedTsg &tsg, const Visitor &visitor, uint64_t now_ns);
  uint64_t askGapNs(const ManagedTsg &tsg);
  void probeHolder(uint64_t now_ns);
  uint64_t askFromNs(const ManagedTsg &tsg, const Visitor &visitor) const;
  void probeEarly(uint64_t now_ns);
  bool runsThoughStopped(const ManagedTsg &tsg);
  void noteEscapes();
  void noteNewContexts(uint64_t now_ns);
  void turnReadBack(uint64_t now_ns);
  void fitCycle();
  uint64_t tenureNs() const;
  uint64_t busyTurnNs() const;
  uint64_t nextNs(uint64_t now_ns);
  uint64_t waitNs();
  ManagedTsg *byPid(uint32_t pid);
  uint32_t awake() const;
  uint64_t jitter(uint64_t ns);

  void report(EventKind kind, uint32_t tenant_id, pid_t pid, const std::string &sentence,
              uint64_t value = 0, uint32_t status = 0);

  std::unique_ptr<RmClient> own_;
  ExecutorOptions options_;
  core core_{};
  std::unique_ptr<Trace> trace_;
  std::unique_ptr<Utilisation> utilisation_;  // when there is no trace
  uint64_t utilisation_ns_ = 0;               // of the own clock, when it was last read
  std::unique_ptr<Roster> roster_;
  std::unique_ptr<Account> account_;
  std::unique_ptr<Controls> controls_;
  std::unique_ptr<Enforcer> enforcer_;
  std::unique_ptr<Progress> progress_;
  std::unique_ptr<Calibration> calibration_;
  std::unique_ptr<Store> store_;
  Stored inherited_;  // from an earlier worker
  std::shared_ptr<Looks> looks_ = std::make_shared<Looks>();
  std::map<ProcessId, Managed> processes_;
  std::deque<Event> events_;
  std::vector<Switch> records_;
  uint64_t since_ns_ = 0;
  core_totals totals_before_{};  // counting began
  uint64_t removed_ns_ = 0;      // what tenants ran that the plan no longer has
  VisitLog log_{options_.now_ns()};
  uint64_t logged_ns_ = 0;     // where its last time ends; 0: it is empty
  uint64_t client_ticks_ = 0;  // when the own client was there, as start times of processes
  uint64_t card_ahead_ns_ = 0, card_asked_ns_ = 0;  // of the own clock, modulo 2^64; when it was
  uint64_t traced_ns_ = 0;  // up to when all records of the trace were taken
  uint64_t record_ns_ = 0, probed_ns_ = 0, read_back_ns_ = 0, read_back_new_ns_ = 0;
  uint64_t ended_look_ns_ = 0, lost_ = 0;
  // Of the own window in which the holder is asked: its beginning, when next, how often still.
  uint64_t asked_window_ns_ = 0, ask_window_at_ns_ = 0;
  unsigned asks_left_ = 0;
  uint64_t turn_ns_ = 0;             // of the own clock, when this turn began
  uint64_t releases_ = 0;            // by the guard, that are known
  uint64_t due_ns_ = 0;              // of the own clock, when the next is due; 0: none yet
  uint64_t charged_ns_ = 0;          // up to when the last turn charged
  uint64_t ask_at_ns_ = UINT64_MAX;  // when the next probeEarly() would tell something
  uint64_t asks_from_ns_ = 0;        // nobody is asked before that
  std::minstd_rand random_;
  std::string no_trace_;  // why there is none
  std::string degraded_;  // why less is enforced than could be, for as long as this lives
  Status told_status_{};
};

}  // namespace qgpu::exec
