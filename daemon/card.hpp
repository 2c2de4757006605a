// SPDX-License-Identifier: GPL-2.0
// What qgpud knows of cards, whoever drives them: the values that go down (a plan's changes) and
// come up (identity, settings, counters, events), and the interface behind which the road to them
// is hidden. Below policy.cpp shares are parts per million and times nanoseconds.
#pragma once

#include <linux/qgpu.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "result.hpp"

namespace qgpu {

// Where run times come from, beyond enum qgpu_source: NVML's samples, method rm only.
constexpr uint32_t kRmSourceNvml = 1001;

// What a card costs, as `qgpuctl calibrate` measured it; method rm only.
struct CardCosts {
  uint64_t visit_ns = 0;        // of a visit no work is done for so long
  uint64_t gap_ns = 0;          // between two visits; with visit_ns, what a switch costs
  uint64_t slice_short_ns = 0;  // a visit computes so much less than its slice
  uint64_t duty_bias_ns = 0;    // who is let run and stopped by turns computes so much less
  uint64_t measured_s = 0;      // seconds since 1970; 0 = never: figures of another card
};

// What an executor says of itself; method rm only.
struct ExecutorInfo {
  std::string driver;                      // its version
  std::string profile;                     // the interface that is used for it
  uint32_t source = QGPU_SOURCE_INFERRED;  // of run times, enum qgpu_source
  uint32_t processes = 0;
  uint64_t gap_ns = 0;  // longest from a process' naming to its control, of those that run
  uint64_t controls = 0;
  uint64_t controls_refused = 0;
  uint64_t foreign_changes = 0;  // put right again
  uint64_t lost_records = 0;     // of the trace
  uint32_t restarts = 0;         // of its worker
  CardCosts costs;
};

struct CardInfo {
  uint32_t index = 0;
  std::string uuid;
  std::string name;
  uint32_t chip_id = 0;
  bool simulated = false;
  uint32_t method =
      QGPU_METHOD_NONE;           // enum qgpu_method; numbers this version does not know are kept
  uint32_t state = QGPU_CARD_OK;  // enum qgpu_card_state
  std::string reason;             // empty when state is OK
  uint32_t policy = QGPU_POLICY_BEST_EFFORT;  // enum qgpu_policy
  uint64_t generation = 0;                    // of the plan in force; 1 before any change
  uint64_t switch_ns = 0;
  uint64_t cycle_ns = 0;  // rotation in force, 0 = none
  uint64_t slice_min_ns = 0;
  uint64_t slice_max_ns = 0;
  uint32_t tenants = 0;
  uint32_t tsgs = 0;
  std::optional<ExecutorInfo> executor;
};

// Settings of one tenant on one card, as asked.
struct TenantSettings {
  uint32_t weight = QGPU_WEIGHT_DEFAULT;
  uint32_t guarantee_ppm = 0;
  uint32_t ceiling_ppm = QGPU_PPM;  // QGPU_PPM = none
  uint64_t wake_ns = 0;             // 0 = no promise
  uint32_t work_class = QGPU_CLASS_NORMAL;
  uint64_t hang_ns = 0;           // 0 = off
  uint64_t memory_bytes = 0;      // 0 = no cap
  std::vector<uint64_t> cgroups;  // cgroup v2 ids, sorted, without duplicates

  bool operator==(const TenantSettings &) const = default;
};

// A tenant as the card has it: what was asked, and what came of it.
struct TenantStatus {
  uint32_t id = 0;
  std::string name;
  TenantSettings asked;
  uint32_t share_ppm = 0;  // effective among those awake
  uint64_t slice_ns = 0;   // as the chip took it
  uint64_t window_ns = 0;  // budget a period, 0 = in rotation
  bool awake = false;
  uint32_t tsgs = 0;
  std::vector<uint32_t> pids;         // of processes under control; method rm only
  std::optional<uint32_t> copy_tsgs;  // on copy engines, accounted by nobody; method rm only
  std::optional<uint32_t> place;      // enum qgpu_place; absent: who drives the card does not say
};

struct TsgStatus {
  uint64_t serial = 0;
  uint32_t id = 0;
  uint32_t runlist = 0;
  uint32_t tenant_id = 0;
  uint32_t pid = 0;
  uint32_t channels = 0;
  uint64_t slice_ns = 0;
};

struct CardSnapshot {
  CardInfo info;
  std::vector<TenantStatus> tenants;
};

// Change of one tenant; what is absent stays as it is (or is the default for a new tenant).
struct TenantChange {
  std::string name;
  bool remove = false;
  std::optional<uint32_t> weight;
  std::optional<uint32_t> guarantee_ppm;
  std::optional<uint32_t> ceiling_ppm;
  std::optional<uint64_t> wake_ns;
  std::optional<uint32_t> work_class;
  std::optional<uint64_t> hang_ns;
  std::optional<uint64_t> memory_bytes;
  std::optional<std::vector<uint64_t>> cgroups;
};

// One transaction on one card.
struct PlanChange {
  uint32_t card_index = 0;
  uint64_t generation = 0;  // expected
  bool dry_run = false;
  std::optional<uint32_t> policy;
  std::optional<uint64_t> cycle_ns;  // override of the rotation's cycle, 0 = computed
  std::vector<TenantChange> tenants;

  bool empty() const { return !policy && !cycle_ns && tenants.empty(); }
};

struct PlanReply {
  uint64_t generation = 0;            // now in force
  std::vector<TenantStatus> tenants;  // those named in the change, as they are now
};

// How many lasted how long: bin k has those below 2^(QGPU_HIST_SHIFT + k) ns, the last all longer
// ones.
struct Histogram {
  std::array<uint64_t, QGPU_HIST_BINS> bins{};
  uint64_t sum_ns = 0;

  // Upper bound of a bin that has one: not the last.
  static constexpr uint64_t boundNs(size_t bin) { return uint64_t{1} << (QGPU_HIST_SHIFT + bin); }
};

// Cumulative counters of one tenant, or of the card when tenant_id is absent.
struct Sample {
  uint32_t card_index = 0;
  std::optional<uint32_t> tenant_id;
  uint64_t time_ns = 0;   // the same in all samples of a card
  uint64_t since_ns = 0;  // when counting began: a change of it is a reset
  uint64_t generation = 0;
  uint64_t run_ns = 0;
  uint64_t run_err_ns = 0;
  uint32_t source = QGPU_SOURCE_INFERRED;
  uint64_t wait_ns = 0;
  uint64_t switch_ns = 0;
  uint64_t idle_ns = 0;
  uint64_t visits = 0;      // times it had the engine
  uint64_t removed_ns = 0;  // card only: what removed tenants ran, in nobody's run_ns too
  uint64_t windows = 0;
  uint64_t submits = 0;
  uint64_t preempts = 0;
  uint64_t overruns = 0;
  uint64_t throttled_ns = 0;
  uint64_t wait_max_ns = 0;
  uint64_t hangs = 0;
  // Absent: who counts does not tell. Method rm knows no tails, and no waits without the trace.
  std::optional<Histogram> waits;  // from having work to running
  std::optional<Histogram> tails;  // of work that could not be cut when it was to leave
};

// A time in which one thing was on a card's engine; from the scheduler's log.
struct LogRecord {
  uint64_t serial = 0;  // without gaps: one that is missing was overwritten
  uint64_t from_ns = 0;
  uint64_t to_ns = 0;
  uint32_t seen = QGPU_SEEN_IDLE;          // enum qgpu_seen
  std::optional<uint32_t> tenant_id;       // with QGPU_SEEN_TENANT
  std::optional<uint32_t> end;             // enum qgpu_end, likewise, when it is over
  uint32_t window = QGPU_WINDOW_ROTATION;  // enum qgpu_window, on when it ended
  std::optional<uint32_t> due_id;          // whose window that is
  bool ongoing = false;   // not over: to_ns is when it was seen last; the same serial comes again
  uint64_t since_ns = 0;  // when the log that it is of began: another one is another log
};

// A part of a card's log, in order.
struct LogPart {
  std::vector<LogRecord> records;
  uint64_t next_serial = 0;  // of the next that will be over; the one that is on has it
  uint64_t since_ns = 0;     // when this log began
};

// Kinds of events that only an executor tells, beyond enum qgpu_event.
enum RmEvent : uint32_t {
  kRmEventProcessControlled = 1001,
  kRmEventProcessGone,
  kRmEventProcessBlind,
  kRmEventControlRefused,
  kRmEventForeignChange,
  kRmEventQuarantine,
  kRmEventNoProgress,
  kRmEventWorkerRestarted,
  kRmEventTraceLost,
  kRmEventStalled = 1011,
};

struct CardEvent {
  uint32_t kind = QGPU_EVENT_UNSPEC;  // enum qgpu_event or RmEvent
  uint32_t card_index = 0;
  uint64_t time_ns = 0;
  std::optional<uint32_t> tenant_id;
  std::string tenant_name;
  std::optional<uint64_t> tsg_serial;
  std::optional<uint32_t> pid;
  std::optional<uint64_t> generation;
  std::optional<uint32_t> card_state;
  std::string reason;
};

struct EventBatch {
  std::vector<CardEvent> events;
  bool lost = false;            // some events did not arrive: assume that anything changed
  bool driver_changed = false;  // what drives the cards came or went
};

// The road to the cards of one kind of driver. All calls are made from the daemon's one thread and
// return within the driver's bounded time; none waits on work of a tenant.
class Card {
 public:
  virtual ~Card() = default;

  // Every card with its tenants, read afresh. ENODEV: nothing drives cards now (module not loaded);
  // a driver without cards is an empty list.
  virtual Result<std::vector<CardSnapshot>> inventory() = 0;

  // All or nothing. ESTALE: the plan is not at the expected generation. Other errors: the card
  // keeps its former plan, the sentence says why.
  virtual Result<PlanReply> apply(const PlanChange &change) = 0;

  // Counters of all cards and tenants.
  virtual Result<std::vector<Sample>> samples() = 0;

  // Who was on a card's engine, from this serial on; as much as comes at once. EOPNOTSUPP: nobody
  // knows, or it is not to be asked here.
  virtual Result<LogPart> log(uint32_t card_index, uint64_t from_serial) = 0;

  // Readable when events() has something; -1 when there is none to wait for. The number stays the
  // same for the life of the object.
  virtual int eventFd() const = 0;

  // What happened since the last call; never blocks.
  virtual EventBatch events() = 0;
};

}  // namespace qgpu
