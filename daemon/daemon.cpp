// SPDX-License-Identifier: GPL-2.0
// Order of work, due times and who is told what. Decides no share and knows no message.
#include "daemon.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <exception>

#include "config_check.hpp"
#include "names.hpp"

namespace qgpu {

namespace {

constexpr uint64_t kLookNs = 5 * kSecondNs;  // cgroups, beside inotify
// Between two looks in a storm of events: so that looking takes a hundredth of a core, or
// goes on every five seconds.
constexpr uint64_t kLookGapNs = 50 * kMillisecondNs, kLookCosts = 100;
constexpr uint64_t kResyncNs = 10 * kSecondNs;
constexpr uint64_t kSampleNs = kSecondNs;
constexpr uint64_t kBackoffMinNs = kSecondNs;
constexpr uint64_t kBackoffMaxNs = 30 * kSecondNs;
constexpr uint64_t kRefreshGapNs = 100 * kMillisecondNs;

Error errorOf(const ConfigProblem &problem) {
  return Error{problem.err, problem.reason, problem.key};
}

// An event that cannot be told is left out, and those after it are not.
void tell(const std::function<void(const CardEvent &)> &listener, const CardEvent &event) {
  if (!listener) return;
  try {
    listener(event);
  } catch (const std::exception &error) {
    spdlog::error("card {}: an event {} cannot be told: {}", event.card_index,
                  eventName(event.kind), error.what());
  }
}

}  // namespace

Daemon::Daemon(Card &card, CgroupTree &cgroups, StateFile &state_file, Clock &clock)
    : card_(card),
      cgroups_(cgroups),
      state_file_(state_file),
      clock_(clock),
      reconciler_(card, state_.cycles, [this] { save(); }) {}

void Daemon::save() {
  if (auto saved = state_file_.save(state_); !saved) spdlog::error("{}", saved.error().text());
}

std::vector<CardInfo> Daemon::inventory() const {
  std::vector<CardInfo> infos;
  for (const CardSnapshot &card : reconciler_.observed()) infos.push_back(card.info);
  return infos;
}

void Daemon::start(ConfigIr config) {
  config_ = std::move(config);
  StateFile::Loaded loaded = state_file_.load();
  if (!loaded.complaint.empty()) spdlog::error("{}", loaded.complaint);
  state_ = std::move(loaded.state);
  std::vector<std::string> dropped = dropOutdated(state_.edits, config_);
  for (const std::string &sentence : dropped) spdlog::warn("{}", sentence);
  if (!dropped.empty()) save();
  if (cgroups_.root().empty())
    spdlog::error(
        "no cgroup2 file system is mounted: no process can be told to belong to a tenant");
  look();
  sync();
  warnOfAbsentCards();
}

// No mistake: a card may come later.
void Daemon::warnOfAbsentCards() const {
  if (driver_error_) return;
  const std::vector<CardInfo> cards = inventory();
  auto warn = [&](const std::string &selector, int line, const std::string &key) {
    if (selector == "all" || std::any_of(cards.begin(), cards.end(), [&](const CardInfo &card) {
          return selects(selector, card);
        }))
      return;
    spdlog::warn("{}:{}: {}: no card is here now that \"{}\" matches", config_.file, line, key,
                 selector);
  };
  for (const CardEntry &entry : config_.cards) warn(entry.match, entry.line, "card.match");
  for (const TenantEntry &tenant : config_.tenants)
    for (const TenantOnCard &on_card : tenant.cards)
      warn(on_card.selector, on_card.line, "tenant." + tenant.name + ".card");
}

std::vector<ConfigProblem> Daemon::reload(const ConfigOutcome &outcome) {
  Edits edits = state_.edits;
  std::vector<std::string> dropped = dropOutdated(edits, outcome.ir);
  if (auto problems = checkConfig(outcome.ir, outcome.problems, edits, inventory());
      !problems.empty())
    return problems;

  // The cards are asked before anything changes: one that refuses, refuses the file.
  ConfigIr former = std::move(config_);
  config_ = outcome.ir;
  look();
  if (auto answer = dryRun(edits, ""); !answer) {
    config_ = std::move(former);
    look();
    const Error &error = answer.error();
    return {{outcome.ir.file, 0, error.item, error.sentence, error.err}};
  }
  if (former.socket != config_.socket || former.state != config_.state)
    spdlog::warn("{}: a new socket or state path takes effect at the next start", config_.file);
  for (const std::string &sentence : dropped) spdlog::warn("{}", sentence);
  state_.edits = std::move(edits);
  if (!dropped.empty()) save();
  sync();
  warnOfAbsentCards();
  return {};
}

void Daemon::look() {
  looked_ns_ = clock_.nowNs();
  look_due_ns_ = looked_ns_ + kLookNs;
  const uint64_t begun_cpu_ns = clock_.cpuNs();
  CgroupTree::Resolved resolved = cgroups_.resolve(config_.tenants);
  look_gap_ns_ = std::clamp(kLookCosts * (clock_.cpuNs() - begun_cpu_ns), kLookGapNs, kLookNs);
  if (resolved.complaints != cgroup_complaints_)
    for (const std::string &sentence : resolved.complaints) spdlog::warn("{}", sentence);
  cgroup_complaints_ = std::move(resolved.complaints);
  cgroup_paths_ = std::move(resolved.paths);
  if (resolved.ids == cgroup_ids_) return;
  cgroup_ids_ = std::move(resolved.ids);
  sync_due_ns_ = 0;
}

void Daemon::noteDriver(const Result<void> &seen) {
  if (seen) {
    if (driver_error_)
      spdlog::info("the driver is there: {} card(s)", reconciler_.observed().size());
    driver_error_.reset();
    return;
  }
  // Said once, not at each try.
  if (!driver_error_ || driver_error_->sentence != seen.error().sentence)
    spdlog::warn("{}; trying again until it is there", seen.error().sentence);
  driver_error_ = seen.error();
  metrics_.clear();
  ledger_.clear();
}

void Daemon::noteRefusals(std::map<std::string, Error> refusals) {
  for (const auto &[uuid, error] : refusals) {
    auto known = refusals_.find(uuid);
    if (known == refusals_.end() || known->second.text() != error.text()) {
      const LogAbout about(uuid, "");
      spdlog::error("card {} refuses the plan, its former one stays: {}", uuid, error.text());
    }
  }
  for (const auto &[uuid, error] : refusals_)
    if (!refusals.count(uuid)) spdlog::info("card {} is as configured again", uuid);
  refusals_ = std::move(refusals);
}

void Daemon::noteHeld(std::vector<ConfigProblem> problems) {
  auto same = [](const ConfigProblem &a, const ConfigProblem &b) { return a.text() == b.text(); };
  if (!std::equal(problems.begin(), problems.end(), held_.begin(), held_.end(), same))
    for (const ConfigProblem &problem : problems)
      spdlog::error("nothing is applied, the plan in force stays: {}", problem.text());
  held_ = std::move(problems);
}

void Daemon::sync() {
  uint64_t now_ns = clock_.nowNs();
  if (now_ns >= resync_due_ns_) reconciler_.invalidate();
  bool was_fresh = reconciler_.fresh();
  auto seen = reconciler_.observe();
  noteDriver(seen);
  bool is_good = seen.ok();
  if (seen) {
    if (!was_fresh) {
      refreshed_ns_ = now_ns;
      resync_due_ns_ = now_ns + kResyncNs;
    }
    PolicyOutcome outcome = compute(config_, state_.edits, inventory(), cgroup_ids_);
    noteHeld(std::move(outcome.problems));
    if (held_.empty()) {
      noteRefusals(reconciler_.converge(outcome.state));
      is_good = refusals_.empty();
    }
  }
  if (is_good)
    backoff_ns_ = 0;
  else
    backoff_ns_ = std::clamp(backoff_ns_ * 2, kBackoffMinNs, kBackoffMaxNs);
  sync_due_ns_ = is_good ? resync_due_ns_ : now_ns + backoff_ns_;
}

void Daemon::sample() {
  sample_due_ns_ = clock_.nowNs() + kSampleNs;
  readCounters();
}

void Daemon::readCounters() {
  if (driver_error_ || reconciler_.observed().empty()) return;
  counted_ns_ = clock_.nowNs();
  auto samples = card_.samples();
  if (!samples) {
    ++read_failures_;
    sync_due_ns_ = 0;
    return;
  }
  ledger_.update(*samples, counted_ns_);
  metrics_.update(*samples, planMarksOf(reconciler_.observed()));
}

void Daemon::tick() {
  uint64_t now_ns = clock_.nowNs();
  if (now_ns >= look_due_ns_) look();
  if (now_ns >= sync_due_ns_) sync();
  if (now_ns >= sample_due_ns_) sample();
}

uint64_t Daemon::deadlineNs() const {
  return std::min({look_due_ns_, sync_due_ns_, sample_due_ns_});
}

void Daemon::onCardEvents() {
  EventBatch batch = card_.events();
  bool doubt = batch.lost || batch.driver_changed;
  if (batch.driver_changed) {
    metrics_.clear();
    ledger_.clear();
    backoff_ns_ = 0;
  }
  if (batch.lost && on_lost) on_lost();
  for (const CardEvent &event : batch.events) {
    switch (event.kind) {
      case QGPU_EVENT_PLAN: {
        // Our own changes are known already.
        bool known = std::any_of(cards().begin(), cards().end(), [&](const CardSnapshot &card) {
          return card.info.index == event.card_index && event.generation &&
                 *event.generation <= card.info.generation;
        });
        doubt = doubt || !known;
        break;
      }
      case QGPU_EVENT_TENANT_APPEARED:
      case QGPU_EVENT_TENANT_GONE:
      case QGPU_EVENT_TSG_BOUND:
      case kRmEventProcessControlled:
      case kRmEventProcessGone:
        break;
      case QGPU_EVENT_HANG:
        logLimited(event, "runs for longer than its hang_timeout while others wait");
        break;
      case QGPU_EVENT_PREEMPT_REFUSED:
        logLimited(event, "was not cut in time");
        doubt = true;
        break;
      default:
        doubt = true;  // a card came, went or changed its state, or a kind not known yet
    }
    tell(on_event, event);
  }
  if (!doubt) return;
  reconciler_.invalidate();
  sync_due_ns_ = 0;
}

// What a tenant can bring about all the time.
void Daemon::logLimited(const CardEvent &event, const char *what) {
  const std::string card = std::to_string(event.card_index);
  const auto left_out = log_limit_.admit(
      card + " " + event.tenant_name + " " + std::to_string(event.kind), clock_.nowNs());
  if (!left_out) return;
  const LogAbout about(card, event.tenant_name);
  spdlog::warn("card {}: work of tenant \"{}\" {}{}", card, event.tenant_name, what,
               *left_out ? " (" + std::to_string(*left_out) + " more since it was told)" : "");
}

void Daemon::onCgroupEvents() {
  cgroups_.drain();
  look_due_ns_ = std::min(look_due_ns_, looked_ns_ + look_gap_ns_);
}

void Daemon::refresh() {
  uint64_t now_ns = clock_.nowNs();
  if (now_ns >= refreshed_ns_ + kRefreshGapNs && !driver_error_) {
    refreshed_ns_ = now_ns;
    reconciler_.invalidate();
    sync();
  }
  if (now_ns >= counted_ns_ + kRefreshGapNs) readCounters();
}

CardMethod Daemon::methodOf(const CardInfo &card) const {
  const CardEntry *entry = entryOf(config_, card);
  return entry ? entry->method : CardMethod::kModule;
}

bool Daemon::usesMethod(CardMethod method) const {
  return std::any_of(config_.cards.begin(), config_.cards.end(),
                     [&](const CardEntry &entry) { return entry.method == method; });
}

bool Daemon::isEdited(const std::string &tenant, const std::string &uuid) const {
  return state_.edits.find(tenant, "") || state_.edits.find(tenant, uuid);
}

Result<const CardInfo *> Daemon::findManaged(const std::string &selector) {
  for (const CardSnapshot &card : reconciler_.observed()) {
    if (selector != card.info.uuid && selector != std::to_string(card.info.index)) continue;
    if (!isManaged(card.info))
      return Error{ENODEV, "the configuration names no card like this: it is observed only",
                   selector};
    return &card.info;
  }
  if (driver_error_) return Error{ENODEV, driver_error_->sentence, selector};
  return Error{ENODEV, "no such card", selector};
}

Result<LogPart> Daemon::log(const std::string &card, uint64_t from_serial) {
  for (const CardSnapshot &known : reconciler_.observed())
    if (selects(card, known.info)) return card_.log(known.info.index, from_serial);
  return Error{ENODEV, "no such card", card};
}

Result<Daemon::Outcome> Daemon::dryRun(const Edits &edits, const std::string &only_card) {
  Outcome answer;
  auto seen = reconciler_.observe();
  noteDriver(seen);
  if (!seen) {
    answer.note = seen.error().sentence;
    return answer;
  }
  PolicyOutcome outcome = compute(config_, edits, inventory(), cgroup_ids_);
  if (!outcome.problems.empty()) return errorOf(outcome.problems.front());
  for (const DesiredCard &card : outcome.state.cards) {
    if (!only_card.empty() && card.uuid != only_card) continue;
    auto reply = reconciler_.dryRun(card);
    if (!reply && reply.error().err == ESTALE) {
      reconciler_.invalidate();
      reply = reconciler_.dryRun(card);
    }
    if (reply)
      answer.cards.emplace(card.uuid, std::move(*reply));
    else if (!refusals_.count(card.uuid))
      return reply.error();
  }
  if (outcome.state.cards.empty()) answer.note = "there is no card that the configuration names";
  return answer;
}

Result<Daemon::Outcome> Daemon::change(Edits edits, const std::string &only_card, Mode mode) {
  // What is contradictory already does not keep an edit from making it better.
  if (held_.empty())
    if (auto problems = checkConfig(config_, {}, edits, inventory()); !problems.empty())
      return errorOf(problems.front());
  auto answer = dryRun(edits, only_card);
  if (mode == Mode::kDryRun || (!answer && held_.empty())) return answer;

  Edits former = state_.edits;
  std::map<std::string, Error> refused_before = refusals_;
  auto undo = [&](const Error &error) -> Result<Outcome> {
    state_.edits = std::move(former);
    save();
    sync();
    return error;
  };
  state_.edits = std::move(edits);
  sync();
  for (const auto &[uuid, error] : refusals_)
    if (!refused_before.count(uuid)) return undo(Error(error));
  // Stored once the cards have taken it, and taken back if it cannot be stored.
  if (auto saved = state_file_.save(state_); !saved) return undo(saved.error());

  Outcome done;
  if (answer) done.note = answer->note;
  for (const CardSnapshot &card : reconciler_.observed())
    if (isManaged(card.info)) done.cards[card.info.uuid] = {card.info.generation, card.tenants};
  return done;
}

Result<Daemon::Outcome> Daemon::setTenant(const TenantWish &wish, Mode mode) {
  const TenantEntry *entry = config_.findTenant(wish.tenant);
  if (!entry)
    return Error{ENOENT, "the configuration " + config_.file + " has no such tenant", wish.tenant};
  std::string uuid;
  if (!wish.card.empty()) {
    auto card = findManaged(wish.card);
    if (!card) return card.error();
    uuid = (*card)->uuid;
  }
  Edits edits = state_.edits;
  TenantEdit &edit = edits.of(wish.tenant, uuid);
  if (wish.weight) edit.weight = wish.weight;
  if (wish.guarantee_tenths) edit.guarantee_tenths = wish.guarantee_tenths;
  if (wish.ceiling_tenths) edit.ceiling_tenths = wish.ceiling_tenths;
  if (wish.work_class) edit.work_class = wish.work_class;
  if (wish.wake_ns) edit.wake_ns = wish.wake_ns;
  if (wish.hang_ns) edit.hang_ns = wish.hang_ns;
  edit.basis = entry->fingerprint();
  return change(std::move(edits), "", mode);
}

Result<Daemon::Outcome> Daemon::resetTenant(const std::string &tenant) {
  if (!config_.findTenant(tenant))
    return Error{ENOENT, "the configuration " + config_.file + " has no such tenant", tenant};
  Edits edits = state_.edits;
  edits.resetTenant(tenant);
  return change(std::move(edits), "", Mode::kApply);
}

Result<Daemon::Outcome> Daemon::setPolicy(const std::string &card, uint32_t policy, Mode mode) {
  auto found = findManaged(card);
  if (!found) return found.error();
  const CardEntry *entry = entryOf(config_, **found);
  std::string uuid = (*found)->uuid;
  Edits edits = state_.edits;
  std::erase_if(edits.cards, [&](const CardEdit &edit) { return edit.card == uuid; });
  // The file's own policy needs no edit: this is how one is taken back.
  if (policy != entry->policy.value) edits.cards.push_back({uuid, policy, entry->fingerprint()});
  return change(std::move(edits), uuid, mode);
}

Result<void> Daemon::ensure(const std::string &tenant, const std::string &cgroup,
                            uint64_t seen_id) {
  if (!config_.findTenant(tenant))
    return Error{ENOENT, "the configuration " + config_.file + " has no such tenant", tenant};
  uint64_t id = cgroups_.idOf(cgroup);
  if (id == 0) return Error{ENOENT, "there is no such cgroup", cgroup};
  if (seen_id != 0 && seen_id != id)
    return Error{EXDEV, "for the caller this path is another cgroup than for qgpud", cgroup};
  look();
  const auto owned = cgroup_ids_.find(tenant);
  if (owned == cgroup_ids_.end() ||
      !std::binary_search(owned->second.begin(), owned->second.end(), id))
    return Error{EXDEV, "this cgroup does not belong to tenant \"" + tenant + "\"", cgroup};

  reconciler_.invalidate();
  sync();
  if (driver_error_) return *driver_error_;
  if (!held_.empty()) return errorOf(held_.front());
  bool any = false;
  for (const CardSnapshot &card : reconciler_.observed()) {
    if (!isManaged(card.info)) continue;
    any = true;
    if (auto refusal = refusals_.find(card.info.uuid); refusal != refusals_.end())
      return refusal->second;
    if (card.info.state != QGPU_CARD_OK)
      return Error{EIO, "the card is " + cardStateName(card.info.state) + ": " + card.info.reason,
                   card.info.uuid};
    if (card.info.method == QGPU_METHOD_NONE)
      return Error{EOPNOTSUPP, "the card is only observed: nothing can be enforced on it",
                   card.info.uuid};
    bool bound = std::any_of(card.tenants.begin(), card.tenants.end(), [&](const TenantStatus &t) {
      return t.name == tenant &&
             std::binary_search(t.asked.cgroups.begin(), t.asked.cgroups.end(), id);
    });
    if (!bound)
      return Error{EIO, "the card does not know that this cgroup belongs to the tenant", cgroup};
  }
  if (!any) return Error{ENODEV, "there is no card that the configuration names", tenant};
  return {};
}

}  // namespace qgpu
