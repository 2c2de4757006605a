// SPDX-License-Identifier: GPL-2.0
// The conversation with one executor. What the executor says is believed as to the card, never as
// to the plan: that is qgpud's.
#include "rm_executor.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "names.hpp"

namespace qgpu {

namespace {

constexpr uint64_t kConnectNs = 500 * kMillisecondNs;  // between two tries
constexpr uint64_t kLookNs = 100 * kMillisecondNs;     // between two looks at the processes
constexpr uint64_t kSilenceNs = 5 * kSecondNs;         // an answer owed so long: it does not answer
// What the daemon waits for at most, and it serves nobody meanwhile: checking a plan takes no
// control.
constexpr uint64_t kPlanNs = kSecondNs;
constexpr uint64_t kHelloNs = 250 * kMillisecondNs;
constexpr uint64_t kStatsFreshNs = 50 * kMillisecondNs;
constexpr uint64_t kLogNs = 250 * kMillisecondNs;
constexpr int kPacketsPerCall = 1024;
// Below are numbers with a meaning of their own.
constexpr uint32_t kTenantIdMin = 16;

template <class T>
std::vector<std::byte> bytesOf(const T &message) {
  const auto *from = reinterpret_cast<const std::byte *>(&message);
  return {from, from + sizeof(message)};
}

std::string sentenceOf(const exec::Status &status) { return status.sentence; }

}  // namespace

RmExecutor::RmExecutor(NvidiaCard card, const Places &places, const Clock &clock)
    : card_(std::move(card)),
      clock_(clock),
      link_(exec::socketPath(places.run_dir, card_.uuid), clock),
      watch_(places.cgroup_root, places.proc) {
  plan_.tenants["default"].id = QGPU_TENANT_DEFAULT;
  connect(clock_.nowNs());
  const uint64_t until_ns = clock_.nowNs() + kHelloNs;
  while (link_.connected() && !greeted_ && link_.waitReadable(until_ns)) pump(waiting_);
}

// ---- the connection ----

void RmExecutor::connect(uint64_t now_ns) {
  connect_due_ns_ = now_ns + kConnectNs;
  if (auto done = link_.connect(); !done) {
    lost_ = done.error();
    return;
  }
  exec::HelloRequest hello{
      exec::makeHeader(exec::Type::kHelloRequest, sizeof(hello), link_.nextSerial())};
  if (auto sent = link_.send(bytesOf(hello)); !sent) lose(sent.error());
}

void RmExecutor::lose(const Error &error) {
  link_.disconnect();
  lost_ = error;
  greeted_ = false;
  announced_ = false;
  stats_serial_ = log_serial_ = 0;
  if (asked_.serial && !asked_.answer) asked_ = {};
}

bool RmExecutor::overdue() const {
  const uint64_t since_ns = link_.owedSinceNs();
  return since_ns != 0 && clock_.nowNs() - since_ns >= kSilenceNs;
}

bool RmExecutor::usable() const {
  return link_.connected() && greeted_ && !overdue() && conflict_.empty();
}

void RmExecutor::pump(std::vector<CardEvent> &events) {
  for (int i = 0; i < kPacketsPerCall && link_.connected(); ++i) {
    auto packet = link_.receive();
    if (!packet) return lose(packet.error());
    if (packet->empty()) return;
    handle(*packet, events);
  }
}

void RmExecutor::handle(std::span<const std::byte> packet, std::vector<CardEvent> &events) {
  exec::Header header;
  std::memcpy(&header, packet.data(), sizeof(header));
  switch (header.type) {
    case exec::Type::kHelloReply:
      return onHello(packet);
    case exec::Type::kPlanReply:
      return onPlanReply(packet);
    case exec::Type::kStatsReply:
      return onStats(packet);
    case exec::Type::kLogReply:
      return onLog(packet);
    case exec::Type::kEvent:
      return onEvent(packet, events);
    case exec::Type::kProcessReply: {
      auto reply = exec::decodeProcessReply(packet);
      if (!reply) return lose(reply.error());
      // It ended meanwhile, or has nothing to do with the card: events tell the rest.
      if (reply->status.error)
        spdlog::debug("card {}: a process is refused: {}", card_.uuid, reply->status.sentence);
      return;
    }
    case exec::Type::kHelloRequest:
    case exec::Type::kPlanRequest:
    case exec::Type::kProcessAdd:
    case exec::Type::kProcessGone:
    case exec::Type::kStatsRequest:
    case exec::Type::kLogRequest:
    case exec::Type::kMeasureRequest:
    case exec::Type::kMeasureReply:
    case exec::Type::kSpansRequest:
    case exec::Type::kConstantsRequest:
    case exec::Type::kConstantsReply:
      return lose(Error{EPROTO, "the executor sends what nobody asked for", card_.uuid});
  }
}

void RmExecutor::onHello(std::span<const std::byte> packet) {
  auto hello = exec::decodeHelloReply(packet);
  if (!hello) return lose(hello.error());
  hello_ = *hello;
  greeted_ = true;
  announced_ = false;
  lost_.reset();
  // A plan of ours that it still has needs no telling; of another one only the number is known.
  if (hello_.generation != told_generation_ || told_generation_ == 0) {
    told_generation_ = 0;
    if (hello_.generation >= generation_) generation_ = hello_.generation + 1;
  }
}

// ---- the plan ----

uint32_t RmExecutor::idFor(const std::string &name, const Plan &plan) const {
  // From the name alone, so that an executor goes on counting for the same tenant whoever asks.
  uint32_t id = 2166136261u;
  for (unsigned char c : name) id = (id ^ c) * 16777619u;
  id &= 0x7fffffffu;
  auto is_taken = [&](uint32_t wanted) {
    return wanted < kTenantIdMin ||
           std::any_of(plan.tenants.begin(), plan.tenants.end(),
                       [&](const auto &entry) { return entry.second.id == wanted; });
  };
  while (is_taken(id)) ++id;
  return id;
}

Result<void> RmExecutor::changeTenant(Tenant &tenant, const TenantChange &change) {
  TenantSettings &asked = tenant.asked;
  if (change.memory_bytes && *change.memory_bytes)
    return Error{EOPNOTSUPP, "a memory cap needs the module: method rm cannot enforce it",
                 change.name};
  if (change.weight) asked.weight = *change.weight;
  if (change.guarantee_ppm) asked.guarantee_ppm = *change.guarantee_ppm;
  if (change.ceiling_ppm) asked.ceiling_ppm = *change.ceiling_ppm;
  if (change.wake_ns) asked.wake_ns = *change.wake_ns;
  if (change.work_class) asked.work_class = *change.work_class;
  if (change.hang_ns) asked.hang_ns = *change.hang_ns;
  if (change.cgroups) asked.cgroups = *change.cgroups;
  return {};
}

Result<RmExecutor::Plan> RmExecutor::changed(const PlanChange &change) const {
  Plan next = plan_;
  if (change.policy) next.policy = *change.policy;
  if (!next.policy) next.policy = QGPU_POLICY_BEST_EFFORT;
  if (change.cycle_ns) next.cycle_ns = *change.cycle_ns;
  for (const TenantChange &tenant : change.tenants) {
    if (tenant.remove) {
      if (tenant.name == "default" || !next.tenants.erase(tenant.name))
        return Error{ENOENT, "there is no such tenant to remove", tenant.name};
      continue;
    }
    auto [at, is_new] = next.tenants.try_emplace(tenant.name);
    if (is_new) at->second.id = idFor(tenant.name, plan_);
    if (auto done = changeTenant(at->second, tenant); !done) return done.error();
  }
  if (next.tenants.size() > exec::kMaxTenants)
    return Error{ENOSPC, "more tenants than a card takes", std::to_string(next.tenants.size())};
  return next;
}

Result<void> RmExecutor::ask(const Plan &plan, uint64_t generation, bool dry_run) {
  exec::Plan out{};
  out.head.header = exec::makeHeader(exec::Type::kPlanRequest, 0, link_.nextSerial());
  out.head.generation = generation;
  out.head.cycle_ns = plan.cycle_ns;
  out.head.flags = dry_run ? exec::kPlanDryRun : 0;
  out.head.policy = plan.policy.value_or(QGPU_POLICY_BEST_EFFORT);
  for (const auto &[name, tenant] : plan.tenants) {
    // Who belongs to no tenant is not touched under rm.
    if (tenant.id == QGPU_TENANT_DEFAULT) continue;
    const TenantSettings &asked = tenant.asked;
    out.tenants.push_back({tenant.id, asked.weight, asked.guarantee_ppm, asked.ceiling_ppm,
                           asked.work_class, 0, asked.wake_ns, asked.hang_ns});
  }
  asked_ = {out.head.header.serial, generation, dry_run, std::nullopt};
  auto sent = link_.send(exec::encode(std::move(out)));
  if (sent) return {};
  asked_ = {};
  if (!link_.connected()) lose(sent.error());
  return sent.error();
}

void RmExecutor::onPlanReply(std::span<const std::byte> packet) {
  auto reply = exec::decodePlanReply(packet);
  if (!reply) return lose(reply.error());
  if (reply->header.serial != asked_.serial) return;  // nobody waits for it any more
  if (reply->status.error) {
    asked_.answer = Result<void>(
        Error{reply->status.error, sentenceOf(reply->status), nameOf(reply->status.tenant_id)});
  } else {
    asked_.answer = Result<void>();
    if (!asked_.dry_run) told_generation_ = asked_.generation;
  }
}

// nullopt: it did not answer in time, or is gone.
std::optional<Result<void>> RmExecutor::waitAnswer() {
  const uint64_t until_ns = clock_.nowNs() + kPlanNs;
  while (asked_.serial && !asked_.answer && link_.waitReadable(until_ns)) pump(waiting_);
  if (!asked_.answer) return std::nullopt;
  auto answer = std::move(*asked_.answer);
  asked_ = {};
  return answer;
}

void RmExecutor::adopt(Plan plan, uint64_t generation) {
  plan_ = std::move(plan);
  generation_ = generation;
  refusal_.reset();
  std::map<uint64_t, uint32_t> owners;
  for (const auto &[name, tenant] : plan_.tenants)
    for (uint64_t cgroup : tenant.asked.cgroups) owners[cgroup] = tenant.id;
  watch_.setTenants(std::move(owners));
  look_due_ns_ = 0;
}

Result<PlanReply> RmExecutor::apply(const PlanChange &change) {
  if (!conflict_.empty()) return Error{EBUSY, conflict_, card_.uuid};
  if (change.generation != shownGeneration())
    return Error{ESTALE, "the plan is at another generation", std::to_string(shownGeneration())};
  auto next = changed(change);
  if (!next) return next.error();

  const uint64_t generation = generation_ + 1;
  pump(waiting_);
  // One that owes an answer to a plan already is not waited for again.
  if (usable() && !asked_.serial && ask(*next, generation, change.dry_run)) {
    if (auto answer = waitAnswer(); answer && !*answer) return answer->error();
  }
  PlanReply reply;
  for (const TenantChange &tenant : change.tenants)
    if (auto at = next->tenants.find(tenant.name); at != next->tenants.end())
      reply.tenants.push_back(statusOf(at->first, at->second));
  if (!change.dry_run) adopt(std::move(*next), generation);
  reply.generation = shownGeneration();
  return reply;
}

// What was accepted unseen, or what a new executor does not know.
void RmExecutor::tellPlan() {
  if (asked_.answer) {
    if (!*asked_.answer && !asked_.dry_run && asked_.generation == generation_) {
      refusal_ = asked_.answer->error();
      spdlog::error("card {}: the executor refuses the plan: {}", card_.uuid, refusal_->text());
    }
    asked_ = {};
  }
  if (!usable() || asked_.serial || refusal_ || !plan_.policy) return;
  if (told_generation_ == generation_) return;
  if (hello_.generation >= generation_) generation_ = hello_.generation + 1;
  (void)ask(plan_, generation_, false).ok();
}

// ---- processes ----

bool RmExecutor::tell(const ProcessWatch::Change &change) {
  const auto type = change.gone ? exec::Type::kProcessGone : exec::Type::kProcessAdd;
  exec::ProcessRequest request{};
  request.header = exec::makeHeader(type, sizeof(request), link_.nextSerial());
  request.pid = change.pid;
  request.tenant_id = change.tenant_id;
  auto sent = link_.send(bytesOf(request), change.pidfd);
  if (!sent && !link_.connected()) lose(sent.error());
  return sent.ok();
}

void RmExecutor::watchProcesses(uint64_t now_ns) {
  if (now_ns < look_due_ns_) return;
  look_due_ns_ = now_ns + kLookNs;
  std::vector<ProcessWatch::Change> changes = watch_.look(now_ns);
  if (!usable() || told_generation_ != generation_) {
    announced_ = false;
    return;
  }
  // Everything again after any doubt: one that is known already is only looked up.
  if (!announced_) {
    std::erase_if(changes, [](const ProcessWatch::Change &change) { return !change.gone; });
    for (const ProcessWatch::Change &change : watch_.all()) changes.push_back(change);
  }
  announced_ = std::all_of(changes.begin(), changes.end(),
                           [&](const ProcessWatch::Change &change) { return tell(change); });
}

// ---- counters ----

void RmExecutor::askStats() {
  if (!usable() || stats_serial_) return;
  exec::StatsRequest request{
      exec::makeHeader(exec::Type::kStatsRequest, sizeof(request), link_.nextSerial())};
  stats_serial_ = request.header.serial;
  if (auto sent = link_.send(bytesOf(request)); sent) return;
  stats_serial_ = 0;
}

void RmExecutor::onStats(std::span<const std::byte> packet) {
  auto stats = exec::decodeStats(packet);
  if (!stats) return lose(stats.error());
  stats_serial_ = 0;
  if (stats->head.status.error) return;
  stats_ = std::move(*stats);
  stats_ns_ = clock_.nowNs();
  hello_.card_state = stats_.head.card_state;
  if (const exec::CardConstants &card = stats_.head.constants; card.measured_s)
    hello_.switch_ns = card.visit_ns + card.gap_ns;
  if (!hello_.status.error) hello_.status = stats_.head.status;
}

void RmExecutor::refreshStats(uint64_t wait_ns) {
  pump(waiting_);
  const uint64_t now_ns = clock_.nowNs();
  if (stats_ns_ != 0 && now_ns - stats_ns_ < kStatsFreshNs) return;
  askStats();
  while (stats_serial_ && link_.waitReadable(now_ns + wait_ns)) pump(waiting_);
}

// ---- the log ----

namespace {

LogRecord recordOf(uint64_t since_ns, uint64_t serial, const exec::LogEntry &entry) {
  LogRecord record;
  record.since_ns = since_ns;
  record.serial = serial;
  record.ongoing = entry.ongoing;
  record.from_ns = entry.from_ns;
  record.to_ns = entry.to_ns;
  record.seen = entry.seen;
  record.window = entry.window;
  if (entry.due_id != exec::kNoTenant) record.due_id = entry.due_id;
  if (entry.seen != QGPU_SEEN_TENANT) return record;
  if (!record.ongoing) record.end = entry.end;
  if (entry.tenant_id != exec::kNoTenant) record.tenant_id = entry.tenant_id;
  return record;
}

}  // namespace

void RmExecutor::onLog(std::span<const std::byte> packet) {
  auto log = exec::decodeLog(packet);
  if (!log) return lose(log.error());
  const exec::LogReply &head = log->head;
  if (head.header.serial != log_serial_) return;  // nobody waits for it any more
  log_serial_ = 0;
  if (head.status.error) {
    log_ = Error{head.status.error, sentenceOf(head.status), card_.uuid};
    return;
  }
  LogPart part;
  part.next_serial = head.next_serial;
  part.since_ns = head.since_ns;
  for (size_t i = 0; i < log->entries.size(); ++i)
    part.records.push_back(recordOf(head.since_ns, head.first_serial + i, log->entries[i]));
  log_ = std::move(part);
}

Result<LogPart> RmExecutor::log(uint64_t from_serial) {
  pump(waiting_);
  if (!usable()) {
    const auto error = trouble();
    return Error{ENOTCONN, error ? error->sentence : "the executor is not there", card_.uuid};
  }
  exec::LogRequest request{
      exec::makeHeader(exec::Type::kLogRequest, sizeof(request), link_.nextSerial()), from_serial};
  log_serial_ = request.header.serial;
  log_.reset();
  if (auto sent = link_.send(bytesOf(request)); !sent) return sent.error();
  const uint64_t until_ns = clock_.nowNs() + kLogNs;
  while (log_serial_ && link_.waitReadable(until_ns)) pump(waiting_);
  log_serial_ = 0;
  if (!log_) return Error{ETIMEDOUT, "the executor does not answer", card_.uuid};
  return std::exchange(log_, {}).value();
}

// ---- events ----

void RmExecutor::onEvent(std::span<const std::byte> packet, std::vector<CardEvent> &events) {
  auto event = exec::decodeEvent(packet);
  if (!event) return lose(event.error());
  if (event->kind == exec::EventKind::kCardState) {
    hello_.card_state = event->card_state;
    std::memcpy(hello_.status.sentence, event->sentence, sizeof(hello_.status.sentence));
    hello_.status.tenant_id = event->tenant_id;
    return;  // publishState() tells
  }
  CardEvent out;
  out.kind = kRmEventProcessControlled - 1 + static_cast<uint32_t>(event->kind);
  out.card_index = card_.minor;
  out.time_ns = event->time_ns;
  if (event->tenant_id != exec::kNoTenant) {
    out.tenant_id = event->tenant_id;
    out.tenant_name = nameOf(event->tenant_id);
  }
  if (event->pid) out.pid = static_cast<uint32_t>(event->pid);
  out.reason = event->sentence;
  if ((event->kind != exec::EventKind::kProcessControlled &&
       event->kind != exec::EventKind::kProcessGone) ||
      !out.reason.empty())
    spdlog::warn("card {}: {}{} {}", card_.uuid, eventName(out.kind),
                 out.tenant_name.empty() ? "" : " of tenant " + out.tenant_name + ":", out.reason);
  events.push_back(std::move(out));
}

void RmExecutor::publishState(std::vector<CardEvent> &events) {
  if (isSettling()) return;
  const CardInfo now = info();
  if (now.state == shown_state_ && now.reason == shown_reason_) return;
  if (now.state == QGPU_CARD_OK)
    spdlog::info("card {} is enforced by its executor", card_.uuid);
  else
    spdlog::warn("card {}: {}", card_.uuid, now.reason);
  shown_state_ = now.state;
  shown_reason_ = now.reason;
  CardEvent event;
  event.kind = QGPU_EVENT_CARD_STATE;
  event.card_index = card_.minor;
  event.time_ns = clock_.nowNs();
  event.card_state = now.state;
  event.reason = now.reason;
  events.push_back(std::move(event));
}

void RmExecutor::tick(std::vector<CardEvent> &events) {
  const uint64_t now_ns = clock_.nowNs();
  events.insert(events.end(), waiting_.begin(), waiting_.end());
  waiting_.clear();
  pump(events);
  if (!link_.connected() && now_ns >= connect_due_ns_) connect(now_ns);
  tellPlan();
  watchProcesses(now_ns);
  publishState(events);
}

}  // namespace qgpu
