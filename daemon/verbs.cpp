// SPDX-License-Identifier: GPL-2.0
// A table of verbs. Percentages come in as numbers with at most one decimal and leave as ppm.
#include "verbs.hpp"

#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <set>

#include "names.hpp"
#include "snapshot_json.hpp"

namespace qgpu {

namespace {

using Json = nlohmann::json;

// The fields of one request; each is taken once, what is left over is refused.
class Fields {
 public:
  explicit Fields(const Json &request) : request_(request) { taken_.insert("verb"); }

  std::string text(const char *name) {
    const Json *value = take(name);
    if (!value) return "";
    if (value->is_string()) return value->get<std::string>();
    fail(name, "must be a string");
    return "";
  }

  std::string neededText(const char *name) {
    if (!request_.contains(name)) fail(name, "is missing");
    return text(name);
  }

  bool flag(const char *name) {
    const Json *value = take(name);
    if (!value) return false;
    if (!value->is_boolean()) fail(name, "must be true or false");
    return value->is_boolean() && value->get<bool>();
  }

  std::optional<uint32_t> number(const char *name, uint32_t min, uint32_t max) {
    const Json *value = take(name);
    if (!value) return std::nullopt;
    if (!value->is_number_integer()) {
      fail(name, "must be an integer");
      return std::nullopt;
    }
    auto wide = value->is_number_unsigned() && value->get<uint64_t>() > INT64_MAX
                    ? INT64_MAX
                    : value->get<int64_t>();
    if (wide >= min && wide <= max) return static_cast<uint32_t>(wide);
    fail(name, "must be " + std::to_string(min) + " to " + std::to_string(max), ERANGE);
    return std::nullopt;
  }

  uint64_t serial(const char *name) {
    const Json *value = take(name);
    if (!value || value->is_number_unsigned()) return value ? value->get<uint64_t>() : 0;
    fail(name, "must be an integer, 0 or more");
    return 0;
  }

  uint64_t neededId(const char *name) {
    const Json *value = take(name);
    if (value && value->is_number_unsigned() && *value != 0) return value->get<uint64_t>();
    fail(name, value ? "must be a positive integer" : "is missing");
    return 0;
  }

  std::optional<uint32_t> percent(const char *name, Result<uint32_t> (*tenths_from)(double)) {
    const Json *value = take(name);
    if (!value) return std::nullopt;
    if (!value->is_number()) {
      fail(name, "must be a number of percent");
      return std::nullopt;
    }
    return meant(name, tenths_from(value->get<double>()));
  }

  // A word that stands for a value: a class, a time with its unit.
  template <class Value>
  std::optional<Value> word(const char *name, Result<Value> (*value_from)(const std::string &)) {
    if (!request_.contains(name)) return std::nullopt;
    const std::string word = text(name);
    if (mistake_.err) return std::nullopt;
    return meant(name, value_from(word));
  }

  // Understood, but not enforced yet.
  void refuse(const char *name) {
    if (take(name))
      fail(name, "is not enforced in this version and is therefore refused", EOPNOTSUPP);
  }

  // The first mistake, unknown fields included.
  const Error *mistake() {
    for (const auto &[name, value] : request_.items())
      if (!taken_.count(name)) fail(name.c_str(), "is not a field of this verb");
    return mistake_.err ? &mistake_ : nullptr;
  }

 private:
  template <class Value>
  std::optional<Value> meant(const char *name, const Result<Value> &value) {
    if (value) return *value;
    fail(name, value.error().sentence, value.error().err);
    return std::nullopt;
  }

  const Json *take(const char *name) {
    taken_.insert(name);
    auto found = request_.find(name);
    return found == request_.end() ? nullptr : &*found;
  }

  void fail(const char *name, const std::string &reason, int err = EINVAL) {
    if (mistake_.err == 0) mistake_ = {err, reason, name};
  }

  const Json &request_;
  std::set<std::string> taken_;
  Error mistake_;
};

std::string dump(const Json &json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json problemsJson(const std::vector<ConfigProblem> &problems) {
  Json list = Json::array();
  for (const ConfigProblem &problem : problems) list.push_back(problem.text());
  return list;
}

// A card that is asked only plans nothing: there are no shares and slices then.
Json outcomeJson(const Daemon::Outcome &outcome, Daemon::Mode mode) {
  Json cards = Json::object();
  for (const auto &[uuid, reply] : outcome.cards) {
    Json tenants = Json::array();
    for (const TenantStatus &tenant : reply.tenants) {
      tenants.push_back({{"name", tenant.name},
                         {"weight", tenant.asked.weight},
                         {"guarantee_ppm", tenant.asked.guarantee_ppm},
                         {"ceiling_ppm", tenant.asked.ceiling_ppm},
                         {"class", className(tenant.asked.work_class)},
                         {"wake_ns", tenant.asked.wake_ns},
                         {"hang_ns", tenant.asked.hang_ns}});
      if (mode == Daemon::Mode::kDryRun) continue;
      tenants.back()["share_ppm"] = tenant.share_ppm;
      tenants.back()["slice_ns"] = tenant.slice_ns;
    }
    cards[uuid] = {{"generation", reply.generation}, {"tenants", tenants}};
  }
  return {{"cards", cards}, {"note", outcome.note}};
}

ControlServer::Answer done(Json body) {
  body["ok"] = true;
  return {dump(body), false};
}

ControlServer::Answer failed(const Error &error) { return {errorLine(error), false}; }

template <class Value>
ControlServer::Answer answerOf(const Result<Value> &result,
                               Daemon::Mode mode = Daemon::Mode::kApply) {
  if (!result) return failed(result.error());
  if constexpr (std::is_void_v<Value>)
    return done(Json::object());
  else
    return done(outcomeJson(*result, mode));
}

Daemon::Mode modeOf(bool dry_run) { return dry_run ? Daemon::Mode::kDryRun : Daemon::Mode::kApply; }

ControlServer::Answer status(Daemon &daemon, Fields &fields) {
  if (const Error *mistake = fields.mistake()) return failed(*mistake);
  daemon.refresh();
  return done(statusJson(daemon));
}

ControlServer::Answer tenantSet(Daemon &daemon, Fields &fields) {
  Daemon::TenantWish wish;
  wish.tenant = fields.neededText("tenant");
  wish.card = fields.text("card");
  wish.weight = fields.number("weight", QGPU_WEIGHT_MIN, QGPU_WEIGHT_MAX);
  wish.guarantee_tenths = fields.percent("guarantee", tenthsFromPercent);
  wish.ceiling_tenths = fields.percent("ceiling", ceilingFromPercent);
  wish.work_class = fields.word("class", workClassFromText);
  wish.wake_ns = fields.word("wake_within", wakeFromText);
  wish.hang_ns = fields.word("hang_timeout", hangFromText);
  bool dry_run = fields.flag("dry_run");
  fields.refuse("memory");
  if (const Error *mistake = fields.mistake()) return failed(*mistake);
  if (!wish.weight && !wish.guarantee_tenths && !wish.ceiling_tenths && !wish.work_class &&
      !wish.wake_ns && !wish.hang_ns)
    return failed({EINVAL,
                   "nothing to set: weight, guarantee, ceiling, class, wake_within or hang_timeout "
                   "is needed",
                   ""});
  return answerOf(daemon.setTenant(wish, modeOf(dry_run)), modeOf(dry_run));
}

ControlServer::Answer tenantReset(Daemon &daemon, Fields &fields) {
  std::string tenant = fields.neededText("tenant");
  if (const Error *mistake = fields.mistake()) return failed(*mistake);
  return answerOf(daemon.resetTenant(tenant));
}

ControlServer::Answer policySet(Daemon &daemon, Fields &fields) {
  std::string card = fields.neededText("card");
  std::string name = fields.neededText("policy");
  bool dry_run = fields.flag("dry_run");
  if (const Error *mistake = fields.mistake()) return failed(*mistake);
  auto policy = policyFromName(name);
  if (!policy)
    return failed(
        {EINVAL, "must be best-effort, equal-share, fixed-share or burst-share", "policy"});
  return answerOf(daemon.setPolicy(card, *policy, modeOf(dry_run)), modeOf(dry_run));
}

// Where a command of this tenant is put.
ControlServer::Answer place(Daemon &daemon, Fields &fields) {
  std::string name = fields.neededText("tenant");
  if (const Error *mistake = fields.mistake()) return failed(*mistake);
  const TenantEntry *tenant = daemon.config().findTenant(name);
  if (!tenant) return failed({ENOENT, "the configuration has no such tenant", name});
  if (daemon.cgroupRoot().empty()) return failed({ENODEV, "no cgroup2 is mounted", ""});
  if (tenant->homeCgroup().empty())
    return failed({EINVAL, "whatever belongs to no other tenant runs as \"default\"", name});
  return done({{"root", daemon.cgroupRoot()}, {"cgroup", tenant->homeCgroup()}});
}

ControlServer::Answer ensure(Daemon &daemon, Fields &fields) {
  std::string tenant = fields.neededText("tenant");
  std::string cgroup = fields.neededText("cgroup");
  uint64_t id = fields.neededId("id");
  if (const Error *mistake = fields.mistake()) return failed(*mistake);
  bool inside = !cgroup.empty() && cgroup.front() == '/' &&
                (cgroup + "/").find("/../") == std::string::npos &&
                cgroup.find('\0') == std::string::npos;
  if (!inside) return failed({EINVAL, "must be a path below the cgroup2 mount", "cgroup"});
  return answerOf(daemon.ensure(tenant, cgroup, id));
}

ControlServer::Answer events(Daemon &, Fields &fields) {
  if (const Error *mistake = fields.mistake()) return failed(*mistake);
  ControlServer::Answer answer = done(Json::object());
  answer.subscribe = true;
  return answer;
}

// Who computes when, to the microsecond, is nothing for another tenant to know.
ControlServer::Answer log(Daemon &daemon, Fields &fields) {
  const std::string card = fields.neededText("card");
  const uint64_t from_serial = fields.serial("from");
  if (const Error *mistake = fields.mistake()) return failed(*mistake);
  const auto part = daemon.log(card, from_serial);
  if (!part) return failed(part.error());
  Json records = Json::array();
  for (const LogRecord &record : part->records) records.push_back(toJson(record));
  return done(
      {{"next", part->next_serial}, {"since_ns", part->since_ns}, {"records", std::move(records)}});
}

struct Verb {
  const char *name;
  const char *only_root;  // what anybody else is told; null: whoever may open the socket
  ControlServer::Answer (*answer)(Daemon &, Fields &);
};

constexpr const char *kChanges = "only root may change anything";

constexpr Verb kVerbs[] = {
    {"status", nullptr, status},
    {"place", nullptr, place},
    {"ensure", nullptr, ensure},
    {"events", nullptr, events},
    {"log", "only root may see who computes when", log},
    {"tenant-set", kChanges, tenantSet},
    {"tenant-reset", kChanges, tenantReset},
    {"policy-set", kChanges, policySet},
};

// What a tenant is to have on every card that says nothing else.
Json configuredJson(const TenantEntry &tenant, const TenantEdit *edit) {
  Json paths = Json::array();
  for (const CgroupPattern &pattern : tenant.cgroups) paths.push_back(pattern.path);
  uint32_t weight = tenant.numbers.weight ? tenant.numbers.weight->value : QGPU_WEIGHT_DEFAULT;
  uint32_t tenths = tenant.numbers.guarantee_tenths ? tenant.numbers.guarantee_tenths->value : 0;
  if (edit) {
    weight = edit->weight.value_or(weight);
    tenths = edit->guarantee_tenths.value_or(tenths);
  }
  return {{"name", tenant.name},
          {"cgroup", paths},
          {"weight", weight},
          {"guarantee_ppm", tenths * (QGPU_PPM / 1000)},
          {"edited", edit != nullptr}};
}

}  // namespace

Json statusJson(Daemon &daemon) {
  Json cards = Json::array();
  for (const CardSnapshot &snapshot : daemon.cards()) {
    Json card = toJson(snapshot, &daemon.metrics(), &daemon.ledger());
    const CardEntry *entry = entryOf(daemon.config(), snapshot.info);
    card["managed"] = entry != nullptr;
    card["cycle_asked_ns"] = entry ? entry->cycle_ns : 0;
    card["policy_edited"] = daemon.edits().findCard(snapshot.info.uuid) != nullptr;
    auto refusal = daemon.refusals().find(snapshot.info.uuid);
    card["refusal"] = refusal == daemon.refusals().end() ? "" : refusal->second.text();
    for (Json &tenant : card["tenants"])
      tenant["edited"] = daemon.isEdited(tenant["name"].get<std::string>(), snapshot.info.uuid);
    cards.push_back(std::move(card));
  }
  Json tenants = Json::array();
  for (const TenantEntry &tenant : daemon.config().tenants)
    tenants.push_back(configuredJson(tenant, daemon.edits().find(tenant.name, "")));
  return {{"source", "qgpud"},
          {"pid", getpid()},
          {"config", daemon.config().file},
          {"plans_sent", daemon.plansSent()},
          {"driver_error", daemon.driverError() ? daemon.driverError()->sentence : ""},
          {"held", problemsJson(daemon.held())},
          {"complaints", daemon.complaints()},
          {"configured", std::move(tenants)},
          {"cards", std::move(cards)}};
}

ControlServer::Answer answerRequest(Daemon &daemon, const Json &request, const Peer &peer) {
  auto name = request.find("verb");
  if (name == request.end() || !name->is_string())
    return failed({EINVAL, "a request names its verb", "verb"});
  for (const Verb &verb : kVerbs) {
    if (*name != verb.name) continue;
    if (verb.only_root && !peer.isRoot()) return failed({EPERM, verb.only_root, verb.name});
    Fields fields(request);
    return verb.answer(daemon, fields);
  }
  return failed({EINVAL, "unknown verb", name->get<std::string>()});
}

}  // namespace qgpu
