// SPDX-License-Identifier: GPL-2.0
// What is asked of the executor: plan, processes, measurements; counters and the log are in
// executor_view.cpp. What it does by itself is in executor_turn.cpp and executor_probe.cpp; without
// the trace, executor_clock.cpp.
#include "executor.hpp"

#include <linux/qgpu.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "card_constants.hpp"
#include "core_params.hpp"
#include "rm_abi.hpp"
#include "text_file.hpp"

namespace qgpu::exec {
namespace {

constexpr size_t kEventsMax = 1000;
// How long what the card's clock is ahead is taken to stay.
constexpr uint64_t kCardClockNs = 50'000'000;

}  // namespace

Executor::Executor(std::unique_ptr<RmClient> own, const ExecutorOptions &options)
    : own_(std::move(own)),
      options_(options),
      random_(static_cast<std::minstd_rand::result_type>(options.seed)) {}

Executor::~Executor() {
  trace_.reset();
  core_fini(&core_);
}

Result<std::unique_ptr<Executor>> Executor::create(std::unique_ptr<RmClient> own,
                                                   const ExecutorOptions &options) {
  std::unique_ptr<Executor> out(new Executor(std::move(own), options));
  if (const auto done = out->init(); !done) return done.error();
  return out;
}

// A file that cannot be understood is as none.
void Executor::loadConstants() {
  const auto text = readTextFile(constantsPath(options_.state_dir, options_.uuid));
  if (!text) return;
  if (const auto constants = parseConstants(*text)) options_.params.set(*constants);
}

void Executor::useConstants(const CardConstants &constants) {
  options_.params.set(constants);
  account_->setParams(options_.params);
  enforcer_->setParams(options_.params);
  core_.params.switch_ns = options_.params.switch_ns;
  core_.dirty = true;
}

Result<void> Executor::init() {
  loadConstants();
  const core_params params = coreParams(options_.params, 0);
  if (core_init(&core_, &params, kMaxTenants, options_.seed, cardNs()))
    return Error{ENOMEM, "no memory for the scheduler", {}};
  auto trace = Trace::open(*own_);
  if (trace) trace_ = std::move(*trace);
  if (!own_->canRing()) degraded_ = "no doorbell page: a tenant that waits may stay stopped";
  controls_ = std::make_unique<Controls>(*own_);
  roster_ = std::make_unique<Roster>(core_);
  account_ = std::make_unique<Account>(core_, options_.params, cardNs());
  enforcer_ = std::make_unique<Enforcer>(
      core_, *roster_, *controls_, options_.params, gatesPath(options_.run_dir, options_.uuid),
      [this] { return cardNs(); },
      [this](EventKind kind, const ManagedTsg &tsg, const Error &error, uint64_t value) {
        report(kind, tsg.tenant ? tsg.tenant->asked.id : kNoTenant, tsg.process.pid, error.sentence,
               value, kind == EventKind::kControlRefused ? static_cast<uint32_t>(value) : 0);
      });
  progress_ = std::make_unique<Progress>(
      *account_, *controls_, [this](const ManagedTsg &tsg, const std::string &what, uint64_t ns) {
        report(EventKind::kNoProgress, tsg.tenant->asked.id, tsg.process.pid, what, ns);
      });
  calibration_ = std::make_unique<Calibration>(
      *own_, *controls_, [this] { return cardNs(); }, options_.now_ns);
  store_ = std::make_unique<Store>(storePath(options_.run_dir, options_.uuid));
  beginCounting();
  if (trace_) listen();
  if (!trace) goByClock(trace.error().sentence);
  client_ticks_ = ticksNow();
  adopt();
  return {};
}

void Executor::adopt() {
  inherited_ = store_->load();
  const Stored stored = inherited_;
  uint32_t guilty = 0;
  if (stored.plan && roster_->check(*stored.plan, guilty)) roster_->apply(*stored.plan);
  for (const StoredProcess &p : stored.processes)
    if (const auto pidfd = openProcess(p.id)) (void)addProcess(p.id.pid, *pidfd, p.tenant_id);
  if (options_.worker_restarts)
    report(EventKind::kWorkerRestarted, kNoTenant, 0,
           "the worker was started again, " + std::to_string(processes_.size()) +
               " processes taken over",
           options_.worker_restarts);
}

// What a successor needs to know; of those whose objects are not found again yet, what was
// inherited.
void Executor::save() {
  Stored out;
  if (roster_->plan().generation) {
    Plan plan{roster_->plan(), {}};
    for (const auto &[id, tenant] : roster_->tenants()) plan.tenants.push_back(tenant->asked);
    out.plan = std::move(plan);
  }
  for (const auto &[id, managed] : processes_) out.processes.push_back({id, managed.tenant_id});
  for (const auto &tsg : roster_->tsgs())
    out.slices.push_back({tsg->process, tsg->tsg.handle, tsg->found_us});
  for (const StoredSlice &slice : inherited_.slices)
    if (processes_.count(slice.id) && !out.foundUs(slice.id, slice.tsg))
      out.slices.push_back(slice);
  if (const auto done = store_->save(out); !done && degraded_.empty())
    degraded_ = done.error().sentence;
}

// By the own clock and how far the card's is off, which changes by some millionths: the card's own
// costs three reads over the bus.
uint64_t Executor::cardNs() {
  const uint64_t now_ns = options_.now_ns();
  if (now_ns >= card_asked_ns_ + kCardClockNs || !card_asked_ns_) {
    const uint64_t card_ns = own_->timeNs();
    card_ahead_ns_ = card_ns ? card_ns - now_ns : 0;
    card_asked_ns_ = now_ns;
  }
  return now_ns + card_ahead_ns_;
}

// Why not everything is enforced, and of whom; an empty sentence when it is.
Status Executor::shortfall() const {
  Status out = makeStatus(nullptr);
  size_t blind = 0;
  std::string sentence = degraded_;
  for (const auto &[id, managed] : processes_) {
    if (managed.process->state() != Process::State::kBlind || managed.tenant_id == kNoTenant)
      continue;
    if (sentence.empty()) {
      sentence = managed.process->why();
      out.tenant_id = managed.tenant_id;
    }
    blind++;
  }
  if (blind > 1) sentence += "; " + std::to_string(blind) + " such processes";
  setText(out.sentence, sentence);
  return out;
}

// Tells when it has changed.
void Executor::reportStatus() {
  const Status now = shortfall();
  if (!std::strcmp(now.sentence, told_status_.sentence) && now.tenant_id == told_status_.tenant_id)
    return;
  told_status_ = now;
  report(EventKind::kCardState, now.tenant_id, 0, now.sentence);
}

HelloReply Executor::hello() const {
  HelloReply out{};
  out.header = makeHeader(Type::kHelloReply, sizeof(out), 0);
  out.status = shortfall();
  setText(out.uuid, options_.uuid);
  setText(out.name, options_.name);
  setText(out.driver, options_.driver);
  setText(out.profile, own_->profile().name);
  out.generation = roster_->plan().generation;
  out.since_ns = since_ns_;
  out.switch_ns = options_.params.switch_ns;
  out.slice_min_ns = options_.params.slice_min_ns;
  out.slice_max_ns = options_.params.slice_max_ns;
  out.card_state = out.status.sentence[0] ? QGPU_CARD_DEGRADED : QGPU_CARD_OK;
  out.source = source();
  out.processes = static_cast<uint32_t>(processes_.size());
  out.worker_restarts = options_.worker_restarts;
  return out;
}

Result<void> Executor::setPlan(const Plan &plan, uint32_t &guilty) {
  if (const auto done = roster_->check(plan, guilty); !done) return done;
  if (plan.head.flags & kPlanDryRun) return {};
  core_.params.period_min_ns = periodNs(gatedOf(plan));
  noteRemoved(plan);
  roster_->apply(plan);
  if (!trace_) sayByClock();
  for (auto &[id, managed] : processes_)
    if (!roster_->tenant(managed.tenant_id)) managed.tenant_id = kNoTenant;
  save();
  return {};
}

Result<void> Executor::addProcess(pid_t pid, int pidfd, uint32_t tenant_id) {
  const auto named = pidOf(pidfd);
  const auto id = processId(pid);
  Error error;
  if (!named || !id)
    error = named ? id.error() : named.error();
  else if (*named != pid)
    error = {EINVAL, "the descriptor is of another process than the number", std::to_string(pid)};
  else if (calibration_->has(pid))
    error = {EBUSY, "the process measures the card", std::to_string(pid)};
  else if (!roster_->tenant(tenant_id))
    error = {ENOENT, "the plan has no tenant " + std::to_string(tenant_id), {}};
  if (error.err) {
    close(pidfd);
    return error;
  }
  if (const auto known = processes_.find(*id); known != processes_.end()) {
    close(pidfd);
    known->second.tenant_id = tenant_id;
    known->second.process->setTenant(tenant_id);
    bookVisits(static_cast<uint32_t>(pid));
    roster_->move(*id, roster_->tenant(tenant_id));
  } else {
    // Clients of one that started after ours was made have higher handles.
    const uint32_t floor = id->start_ticks > client_ticks_ ? own_->client() : rm::kClientBase;
    processes_[*id] = {
        std::make_unique<Process>(*own_, pid, pidfd, floor, options_.now_ns(), looks_, tenant_id),
        tenant_id};
  }
  save();
  return {};
}

Result<void> Executor::dropProcess(pid_t pid) {
  for (auto it = processes_.begin(); it != processes_.end(); ++it) {
    if (it->first.pid != pid) continue;
    for (const auto &tsg : roster_->tsgs())
      if (tsg->process == it->first) enforcer_->putBack(*tsg);
    release(it->first);
    processes_.erase(it);
    save();
    return {};
  }
  return Error{ENOENT, "process " + std::to_string(pid) + " is not under control", {}};
}

void Executor::report(EventKind kind, uint32_t tenant_id, pid_t pid, const std::string &sentence,
                      uint64_t value, uint32_t status) {
  Event event{};
  event.header = makeHeader(Type::kEvent, sizeof(event), 0);
  event.kind = kind;
  event.tenant_id = tenant_id;
  event.pid = pid;
  event.rm_status = status;
  event.card_state = shortfall().sentence[0] ? QGPU_CARD_DEGRADED : QGPU_CARD_OK;
  event.time_ns = options_.now_ns();
  event.value_ns = value;
  setText(event.sentence, sentence);
  if (events_.size() >= kEventsMax) events_.pop_front();
  events_.push_back(event);
}

std::vector<Event> Executor::takeEvents() {
  std::vector<Event> out(events_.begin(), events_.end());
  events_.clear();
  return out;
}

Result<void> Executor::mayMeasure(const MeasureRequest &request) const {
  if (!trace_)
    return Error{EOPNOTSUPP, "a card is measured by the driver's trace, which cannot be had", {}};
  for (uint32_t i = 0; i < request.process_count; i++)
    for (const auto &[id, managed] : processes_)
      if (id.pid == request.pids[i])
        return Error{EBUSY, "a process of a tenant measures nothing", std::to_string(id.pid)};
  if (awake() && !(request.flags & kMeasureForce))
    return Error{EBUSY, "tenants have work on the card", {}};
  return {};
}

Result<void> Executor::beginMeasuring(const MeasureRequest &request,
                                      const std::vector<int> &pidfds) {
  const auto may = mayMeasure(request);
  if (may) return calibration_->begin(request, pidfds);
  for (const int fd : pidfds) close(fd);
  return may;
}

Result<void> Executor::setConstants(const CardConstants &constants) {
  if (const auto done = checkConstants(constants); !done) return done;
  mkdir(options_.state_dir.c_str(), 0700);
  const auto done =
      replaceFile(constantsPath(options_.state_dir, options_.uuid), formatConstants(constants));
  if (done) useConstants(constants);
  return done;
}

void Executor::stop() {
  calibration_->end();
  if (!enforcer_->putAllBack()) return;
  unlink(gatesPath(options_.run_dir, options_.uuid).c_str());
  store_->remove();
}

}  // namespace qgpu::exec
