// SPDX-License-Identifier: GPL-2.0
// What qgpud (RmCard) and qgpu-exec say to each other: one SOCK_SEQPACKET unix socket a card, one
// message a packet, plain structs of fixed layout in the machine's byte order.
//
//   qgpud                                     qgpu-exec, listening on /run/qgpu/exec-<uuid>.sock
//     HelloRequest        ------------------>   first message of a connection
//                         <------------------   HelloReply: the card, the plan in force
//     PlanRequest         ------------------>   the whole plan: tenants not named are removed
//                         <------------------   PlanReply: taken, or why not
//     ProcessRequest +fd  ------------------>   this process (pidfd) belongs to that tenant
//                         <------------------   Reply
//     StatsRequest        ------------------>
//                         <------------------   StatsReply: cumulative counters, one timestamp
//     LogRequest          ------------------>
//                         <------------------   LogReply: who was on the engine lately
//                         <------------------   Event, at any time, serial 0
//
// Every request has one reply with its serial, in order. A request that cannot be understood (bad
// magic, size, count, text) ends the connection; one that cannot be granted has a Status with an
// errno and a sentence, and nothing has changed. The executor serves one connection at a time: a
// newer one replaces the older. Without a connection it goes on with the last plan and processes.
//
// qgpuctl calibrate speaks to the executor itself, on /run/qgpu/calibrate-<uuid>.sock:
// MeasureRequest with a pidfd for each of its processes, MeasureReply when it is measured;
// SpansRequest, another MeasureReply; ConstantsRequest, ConstantsReply. A connection that ends ends
// what it asked for (calibration.hpp).
//
// Shares are parts per million, times nanoseconds; time_ns and since_ns are CLOCK_MONOTONIC.
// Numbers of policy, class, source, place and card state are those of <linux/qgpu.h>.
#pragma once

#include <linux/qgpu.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../result.hpp"

namespace qgpu::exec {

constexpr uint32_t kMagic = 0x65786571;  // "qexe"
// Of the layouts in this file; both sides refuse any other.
constexpr uint16_t kVersion = 5;
constexpr uint32_t kMaxTenants = 256;
constexpr uint32_t kMaxObjects = 1024;
constexpr uint32_t kMaxLogEntries = 4096;  // of one reply
constexpr size_t kMaxPacket = 160 * 1024;  // SO_SNDBUF of both ends is set for it
constexpr uint32_t kNoTenant = UINT32_MAX;
// Beyond enum qgpu_source: NVML's samples of who is busy.
constexpr uint32_t kSourceNvml = 1001;

enum class Type : uint16_t {
  kHelloRequest = 1,
  kHelloReply,
  kPlanRequest,
  kPlanReply,
  kProcessAdd,   // ProcessRequest, exactly one descriptor: the pidfd
  kProcessGone,  // ProcessRequest, no descriptor: no longer the executor's; put back as found
  kProcessReply,
  kStatsRequest,
  kStatsReply,
  kEvent,
  kMeasureRequest,
  kMeasureReply,
  kSpansRequest,
  kConstantsRequest,
  kConstantsReply,
  kLogRequest,
  kLogReply,
};

struct Header {
  uint32_t magic;
  uint16_t version;
  Type type;
  uint32_t bytes;   // of the whole packet, this header included
  uint32_t serial;  // the requester's; the reply has the same; 0 in events
};

// 0, or errno with the sentence and, where one is guilty, the tenant. In HelloReply and StatsReply
// also with 0: why not everything is enforced, as card_state says, and of whom.
struct Status {
  int32_t error;       // positive errno
  uint32_t tenant_id;  // kNoTenant
  char sentence[176];  // ends with NUL
};

struct HelloRequest {
  Header header;
};

// What the executor drives. The trace or what stands for it is `source` (enum qgpu_source).
struct HelloReply {
  Header header;
  Status status;
  char uuid[48];        // "GPU-..."
  char name[64];        // "NVIDIA H200"
  char driver[32];      // "580.159.04"
  char profile[32];     // of that version; the nearest one under --force-driver
  uint64_t generation;  // of the plan in force; 0 = none yet
  uint64_t since_ns;    // when counting began; a change of it is a reset
  uint64_t switch_ns;
  uint64_t slice_min_ns, slice_max_ns;
  uint32_t card_state;  // enum qgpu_card_state; not OK: status.sentence says why
  uint32_t source;
  uint32_t processes;        // adopted ones included
  uint32_t worker_restarts;  // since the guard was started
};

struct PlanTenant {
  uint32_t id;  // qgpud's number for it; unique in the plan
  uint32_t weight;
  uint32_t guarantee_ppm;
  uint32_t ceiling_ppm;
  uint32_t work_class;
  uint32_t reserved;  // 0
  uint64_t wake_ns;
  uint64_t hang_ns;
};

constexpr uint32_t kPlanDryRun = 1;

// The whole plan of the card. `tenant_count` PlanTenants follow.
struct PlanRequest {
  Header header;
  uint64_t generation;  // of this plan, larger than that in force (equal: the same plan again)
  uint64_t cycle_ns;    // 0 = computed
  uint32_t flags;       // kPlanDryRun
  uint32_t policy;
  uint32_t tenant_count;
  uint32_t reserved;  // 0
};

struct PlanReply {
  Header header;
  Status status;
  uint64_t generation;  // in force now
};

// A process and its threads. pid is the one in the executor's pid namespace, the same that the
// pidfd names; adding one that is known moves it to the tenant.
struct ProcessRequest {
  Header header;
  int32_t pid;
  uint32_t tenant_id;  // of the plan in force; ignored by kProcessGone
};

struct ProcessReply {
  Header header;
  Status status;
};

struct StatsRequest {
  Header header;
};

// What a card costs, as `qgpuctl calibrate` measured it. A visit is what the trace has from START
// to END; a gap is from END to the next START while somebody waits.
struct CardConstants {
  uint64_t visit_ns;        // of a visit no work is done for so long
  uint64_t gap_ns;          // with visit_ns, what a switch costs
  uint64_t slice_short_ns;  // a visit computes so much less than the slice that was set
  uint64_t duty_bias_ns;  // one let run for a while and stopped computes so much less; 0 = unknown
  uint64_t measured_s;    // when, seconds since 1970; 0 = never: of another card
};

// One tenant; what is cumulative never goes back while since_ns stays.
struct TenantStats {
  uint32_t id;
  uint32_t share_ppm;  // effective among those awake
  uint64_t slice_ns;   // of each awake TSG, as written to the driver; 0 = none written
  uint64_t window_ns;  // budget a period; 0 = in rotation
  uint32_t awake;      // 0 or 1
  uint32_t tsgs;       // graphics/compute ones
  uint32_t processes;
  uint32_t source;
  uint64_t run_ns, run_err_ns;
  uint64_t wait_ns, throttled_ns;
  uint64_t windows, preempts, overruns;
  uint64_t visits;           // times it got the engine
  uint64_t gates;            // times it was held
  uint64_t foreign_changes;  // values that somebody else had written, and were restored
  uint64_t wait_max_ns;      // longest single time from having work to running
  uint64_t hangs;            // kernels that ran longer than hang_ns while others waited
  uint32_t place;            // enum qgpu_place
  // On copy engines, which the trace does not have: they are charged to nobody, their slices are
  // left as they are.
  uint32_t copy_tsgs;
  // Single waits as QGPU_A_STATS_WAITS: from leaving the engine with work, as far as the executor
  // believes it had some, to having it again. Nothing tells when work came, so the wait of whoever
  // wakes is not in it. All 0 without the trace.
  uint64_t wait_bins[QGPU_HIST_BINS];
  uint64_t wait_sum_ns;
};

// One TSG under control.
struct ObjectStats {
  int32_t pid;
  uint32_t tenant_id;
  uint32_t tsg_id;   // hardware id, reused
  uint32_t runlist;  // 0 = graphics/compute
  uint32_t channels;
  uint32_t gated;            // 0 or 1
  uint64_t slice_ns;         // in force
  uint64_t found_ns;         // slice when it was found, put back at the end
  uint64_t uncontrolled_ns;  // from its first work that the trace has to when it was under control
};

// `tenant_count` TenantStats and then `object_count` ObjectStats follow.
struct StatsReply {
  Header header;
  Status status;
  uint64_t time_ns, since_ns;
  uint64_t generation;
  uint64_t cycle_ns;  // of the rotation in force; 0 = none
  uint64_t switch_ns, idle_ns, nobody_ns;
  uint64_t removed_ns;    // what tenants ran that the plan no longer has
  uint64_t controls;      // RM controls issued
  uint64_t refused;       // of them refused
  uint64_t lost_records;  // of the trace
  uint64_t cpu_ns;        // the worker's own
  uint32_t source;        // worst used
  uint32_t card_state;
  uint32_t tenant_count, object_count;
  CardConstants constants;  // in use
};

// From this serial on; what is older than the oldest there is is skipped.
struct LogRequest {
  Header header;
  uint64_t from_serial;
};

// A time on the engine, by the trace. Its serial is one more than that of the one before. One that
// is not over has no end, and no other follows it.
struct LogEntry {
  uint64_t from_ns, to_ns;
  uint32_t tenant_id;  // with QGPU_SEEN_TENANT; kNoTenant: it is gone
  uint32_t due_id;     // whose window it was; kNoTenant: whoever is next
  uint8_t seen;        // enum qgpu_seen
  uint8_t end;         // enum qgpu_end, with QGPU_SEEN_TENANT
  uint8_t window;      // enum qgpu_window
  uint8_t ongoing;     // 1: it is not over: to_ns is up to when it was seen
  uint8_t reserved[4];
};

// `entry_count` LogEntries follow, kMaxLogEntries at most: whoever wants the rest asks again. The
// last of all is the one that is on: its serial is `next_serial`.
struct LogReply {
  Header header;
  Status status;          // EOPNOTSUPP: without the trace there is none
  uint64_t first_serial;  // of the first entry
  uint64_t next_serial;   // of the next that will be over
  uint64_t since_ns;      // when this log began: another one is another log
  uint32_t entry_count;
  uint32_t reserved;  // 0
};

enum class EventKind : uint32_t {
  kProcessControlled = 1,  // its TSGs are known; value_ns: uncontrolled_ns
  kProcessGone,            // ended; its descriptors are closed
  kProcessBlind,           // no descriptor, client or TSG of it can be had; the sentence says why
  kControlRefused,         // control, status: what the driver said
  kForeignChange,          // somebody else set a slice or a gate; restored
  kQuarantine,             // a second foreign change within 10 s
  kNoProgress,             // enabled after a gate, rung, and still no progress
  kWorkerRestarted,
  kTraceLost,  // value_ns: records missing
  kCardState,  // state and sentence as in HelloReply
  kStalled,    // the worker did nothing for value_ns
};

struct Event {
  Header header;
  EventKind kind;
  uint32_t tenant_id;  // kNoTenant
  int32_t pid;         // 0 = none
  uint32_t control;    // RM control number, 0 = none
  uint32_t rm_status;
  uint32_t card_state;
  uint64_t time_ns;
  uint64_t value_ns;
  char sentence[176];
};

constexpr uint32_t kMeasureForce = 1;  // though others have work on the card
constexpr size_t kMeasuredMax = 2;

// Of processes with saturating work of their own, which belong to no tenant. `process_count`
// pidfds come with it.
struct MeasureRequest {
  Header header;
  int32_t pids[kMeasuredMax];
  uint32_t process_count;  // 1 or 2
  uint32_t flags;
  uint64_t slice_us;       // as the driver is told it, of each
  uint64_t on_ns, off_ns;  // 0: not stopped. Else one process, let run and stopped by turns
  uint64_t until_ns;       // CLOCK_MONOTONIC
};

struct Measured {
  uint64_t from_ns;                // CLOCK_MONOTONIC; since when everything is as it was asked for
  uint64_t span_ns[kMeasuredMax];  // in which it held the engine so long, and left it so often
  uint64_t held_ns[kMeasuredMax], visits[kMeasuredMax];
  uint64_t gap_ns;  // median; 0: there was none
};

struct MeasureReply {
  Header header;
  Status status;
  Measured measured;
};

// Of the measurement before, also when its processes have ended: these spans of each, in
// CLOCK_MONOTONIC. Its reply is a MeasureReply.
struct SpansRequest {
  Header header;
  uint64_t from_ns[kMeasuredMax], to_ns[kMeasuredMax];
};

// From now on, and after restarts.
struct ConstantsRequest {
  Header header;
  CardConstants constants;
};

struct ConstantsReply {
  Header header;
  Status status;
};

static_assert(sizeof(MeasureRequest) == 64 && sizeof(Measured) == 64);
static_assert(sizeof(SpansRequest) == 48);
static_assert(sizeof(MeasureReply) == 264 && sizeof(ConstantsRequest) == 56);
static_assert(sizeof(CardConstants) == 40 && sizeof(ConstantsReply) == 200);
static_assert(sizeof(Header) == 16 && sizeof(Status) == 184 && sizeof(HelloRequest) == 16);
static_assert(sizeof(HelloReply) == 432 && sizeof(PlanTenant) == 40 && sizeof(PlanRequest) == 48);
static_assert(sizeof(PlanReply) == 208 && sizeof(ProcessRequest) == 24);
static_assert(sizeof(ProcessReply) == 200 && sizeof(TenantStats) == 280);
static_assert(sizeof(ObjectStats) == 48 && sizeof(StatsReply) == 352 && sizeof(Event) == 232);
static_assert(sizeof(LogRequest) == 24 && sizeof(LogEntry) == 32 && sizeof(LogReply) == 232);
static_assert(sizeof(LogReply) + kMaxLogEntries * sizeof(LogEntry) <= kMaxPacket);
static_assert(sizeof(StatsReply) + kMaxTenants * sizeof(TenantStats) +
                  kMaxObjects * sizeof(ObjectStats) <=
              kMaxPacket);

struct Plan {
  PlanRequest head;
  std::vector<PlanTenant> tenants;
};

struct Stats {
  StatsReply head;
  std::vector<TenantStats> tenants;
  std::vector<ObjectStats> objects;
};

// Of LogReply; the serial of entries[0] is head.first_serial.
struct Log {
  LogReply head;
  std::vector<LogEntry> entries;
};

// "/run/qgpu/exec-GPU-....sock", "/run/qgpu/calibrate-GPU-....sock"
std::string socketPath(const std::string &run_dir, const std::string &uuid);
std::string calibrateSocketPath(const std::string &run_dir, const std::string &uuid);

// A header for a packet of `bytes`.
Header makeHeader(Type type, uint32_t bytes, uint32_t serial);
// Cut to fit, between two characters of UTF-8; always ends with NUL.
void setText(std::span<char> out, std::string_view text);
// Without an error: an empty sentence.
Status makeStatus(const Error *error, uint32_t tenant_id = kNoTenant);

// Packets of the variable messages; counts and sizes are set from the vectors.
std::vector<std::byte> encode(Plan plan);
std::vector<std::byte> encode(Stats stats);
std::vector<std::byte> encode(Log log);

// The header of a packet, checked: magic, version, type, and that `bytes` is the packet's size and
// one that its type can have. EPROTO with a sentence.
Result<Header> decodeHeader(std::span<const std::byte> packet);

// A packet of one type, checked as a whole: texts end, numbers that say what follows fit. What is
// no printable ASCII in a text comes out as '?'.
Result<HelloRequest> decodeHelloRequest(std::span<const std::byte> packet);
Result<HelloReply> decodeHelloReply(std::span<const std::byte> packet);
Result<Plan> decodePlan(std::span<const std::byte> packet);
Result<PlanReply> decodePlanReply(std::span<const std::byte> packet);
Result<ProcessRequest> decodeProcess(std::span<const std::byte> packet);
Result<ProcessReply> decodeProcessReply(std::span<const std::byte> packet);
Result<StatsRequest> decodeStatsRequest(std::span<const std::byte> packet);
Result<Stats> decodeStats(std::span<const std::byte> packet);
Result<LogRequest> decodeLogRequest(std::span<const std::byte> packet);
Result<Log> decodeLog(std::span<const std::byte> packet);
Result<Event> decodeEvent(std::span<const std::byte> packet);
Result<MeasureRequest> decodeMeasureRequest(std::span<const std::byte> packet);
Result<MeasureReply> decodeMeasureReply(std::span<const std::byte> packet);
Result<SpansRequest> decodeSpansRequest(std::span<const std::byte> packet);
Result<ConstantsRequest> decodeConstantsRequest(std::span<const std::byte> packet);
Result<ConstantsReply> decodeConstantsReply(std::span<const std::byte> packet);

}  // namespace qgpu::exec
