// SPDX-License-Identifier: GPL-2.0
#include "fakes/fake_kernel.hpp"

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <netlink/attr.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

namespace qgpu::fakes {

using netlink::Bytes;

// --- the model ---

uint32_t FakeKernel::addCard(const std::string &uuid) {
  auto index = static_cast<uint32_t>(cards.size());
  CardSnapshot card;
  card.info.index = index;
  card.info.uuid = uuid;
  card.info.name = "Fake T4";
  card.info.chip_id = 0x164;
  card.info.simulated = true;
  card.info.method = QGPU_METHOD_IMAGES;
  card.info.generation = 1;
  card.info.switch_ns = 100'000;
  TenantStatus fallback;
  fallback.id = QGPU_TENANT_DEFAULT;
  fallback.name = "default";
  card.tenants.push_back(fallback);
  cards[index] = card;
  return index;
}

TenantStatus *FakeKernel::findTenant(uint32_t index, const std::string &name) {
  for (TenantStatus &tenant : cards.at(index).tenants)
    if (tenant.name == name) return &tenant;
  return nullptr;
}

void FakeKernel::unload() {
  loaded = false;
  for (FakeWire *wire : listeners) wire->pushFamily(CTRL_CMD_DELFAMILY);
  for (FakeWire *wire : listeners) std::erase(wire->groups, events_group);
}

void FakeKernel::load() {
  loaded = true;
  ++family_id;
  ++events_group;
  std::vector<std::string> uuids;
  for (const auto &[index, card] : cards) uuids.push_back(card.info.uuid);
  cards.clear();
  cycle_overrides.clear();
  for (const std::string &uuid : uuids) addCard(uuid);
  for (FakeWire *wire : listeners) wire->pushFamily(CTRL_CMD_NEWFAMILY);
}

void FakeKernel::failNext(const std::string &what, Error error, int times) {
  for (int i = 0; i < times; ++i) failures_[what].push_back(error);
}

std::optional<Error> FakeKernel::takeFailure(const std::string &what) {
  auto &queue = failures_[what];
  if (queue.empty()) return std::nullopt;
  Error error = queue.front();
  queue.pop_front();
  return error;
}

void FakeKernel::emit(CardEvent event) {
  for (FakeWire *wire : listeners) wire->pushEvent(event);
}

void FakeKernel::foreignChange(uint32_t index, const std::string &tenant, uint32_t weight) {
  findTenant(index, tenant)->asked.weight = weight;
  CardEvent event;
  event.kind = QGPU_EVENT_PLAN;
  event.card_index = index;
  event.generation = ++cards.at(index).info.generation;
  emit(event);
}

Result<void> FakeKernel::validate(const CardSnapshot &card, const PlanChange &change,
                                  Guilt &guilt) const {
  std::map<std::string, TenantSettings> after;
  for (const TenantStatus &tenant : card.tenants) after[tenant.name] = tenant.asked;
  uint32_t policy = change.policy.value_or(card.info.policy);
  if (policy > QGPU_POLICY_BURST_SHARE) {
    guilt = {"", QGPU_A_PLAN_POLICY};
    return Error{ERANGE, "unknown policy", ""};
  }
  for (const TenantChange &tenant : change.tenants) {
    if (tenant.remove) {
      guilt = {tenant.name, QGPU_A_TENANT_NAME};
      if (tenant.name == "default") return Error{EINVAL, "default cannot be removed", ""};
      if (!after.erase(tenant.name)) return Error{ENOENT, "no such tenant", ""};
      continue;
    }
    TenantSettings &settings = after[tenant.name];
    if (tenant.weight) settings.weight = *tenant.weight;
    if (tenant.guarantee_ppm) settings.guarantee_ppm = *tenant.guarantee_ppm;
    if (tenant.ceiling_ppm) settings.ceiling_ppm = *tenant.ceiling_ppm;
    if (tenant.cgroups) settings.cgroups = *tenant.cgroups;
    if (settings.weight < QGPU_WEIGHT_MIN || settings.weight > QGPU_WEIGHT_MAX) {
      guilt = {tenant.name, QGPU_A_TENANT_WEIGHT};
      return Error{ERANGE, "weight must be 1 to 10000", ""};
    }
    if (settings.cgroups.size() > QGPU_CGROUPS_MAX) {
      guilt = {tenant.name, QGPU_A_TENANT_CGROUPS};
      return Error{ENOSPC, "too many cgroups", ""};
    }
    if (tenant.memory_bytes && *tenant.memory_bytes > 0) {
      guilt = {tenant.name, QGPU_A_TENANT_MEMORY_BYTES};
      return Error{EOPNOTSUPP, "memory cannot be capped on this card", ""};
    }
  }
  uint64_t sum_ppm = 0;
  std::set<uint64_t> cgroups;
  for (const auto &[name, settings] : after) {
    sum_ppm += settings.guarantee_ppm;
    for (uint64_t id : settings.cgroups) {
      guilt = {name, QGPU_A_TENANT_CGROUPS};
      if (!cgroups.insert(id).second)
        return Error{EEXIST, "a cgroup belongs to one tenant only", ""};
    }
  }
  if (sum_ppm > QGPU_PPM) {
    guilt = {change.tenants.empty() ? "" : change.tenants.back().name, QGPU_A_TENANT_GUARANTEE_PPM};
    return Error{ENOSPC, "guarantees over 100 %", ""};
  }
  if (after.size() > QGPU_TENANTS_MAX) return Error{ENOSPC, "too many tenants", ""};
  return {};
}

Result<PlanReply> FakeKernel::planSet(const PlanChange &change, Guilt *guilt) {
  if (before_plan_set) {
    auto race = std::move(before_plan_set);
    before_plan_set = nullptr;
    race();
  }
  plans.push_back(change);
  Guilt unused;
  Guilt &blame = guilt ? *guilt : unused;
  if (!admin) return Error{EPERM, "", ""};
  if (auto failure = takeFailure("plan_set")) return *failure;
  if (!cards.count(change.card_index)) return Error{ENODEV, "no such card", ""};
  CardSnapshot &card = cards.at(change.card_index);
  if (change.generation != card.info.generation) {
    blame = {"", QGPU_A_PLAN_GENERATION};
    return Error{ESTALE, "the plan was replaced", ""};
  }
  if (auto valid = validate(card, change, blame); !valid) return valid.error();

  CardSnapshot after = card;
  if (change.policy) after.info.policy = *change.policy;
  PlanReply reply;
  for (const TenantChange &asked : change.tenants) {
    if (asked.remove) {
      std::erase_if(after.tenants,
                    [&](const TenantStatus &tenant) { return tenant.name == asked.name; });
      continue;
    }
    auto at = std::find_if(after.tenants.begin(), after.tenants.end(),
                           [&](const TenantStatus &tenant) { return tenant.name == asked.name; });
    if (at == after.tenants.end()) {
      TenantStatus fresh;
      fresh.id = next_tenant_id_++;
      fresh.name = asked.name;
      after.tenants.push_back(fresh);
      at = after.tenants.end() - 1;
    }
    if (asked.weight) at->asked.weight = *asked.weight;
    if (asked.guarantee_ppm) at->asked.guarantee_ppm = *asked.guarantee_ppm;
    if (asked.ceiling_ppm) at->asked.ceiling_ppm = *asked.ceiling_ppm;
    if (asked.wake_ns) at->asked.wake_ns = *asked.wake_ns;
    if (asked.work_class) at->asked.work_class = *asked.work_class;
    if (asked.hang_ns) at->asked.hang_ns = *asked.hang_ns;
    if (asked.cgroups) at->asked.cgroups = *asked.cgroups;
    at->slice_ns = 1024 * uint64_t{at->asked.weight};
    reply.tenants.push_back(*at);
  }
  after.info.generation = card.info.generation + (change.dry_run ? 0 : 1);
  reply.generation = after.info.generation;
  if (change.dry_run) return reply;
  ++plans_committed;
  if (!obeys) {
    card.info.generation = after.info.generation;
    return PlanReply{reply.generation, {}};
  }
  card = std::move(after);
  if (change.cycle_ns) cycle_overrides[change.card_index] = *change.cycle_ns;
  CardEvent event;
  event.kind = QGPU_EVENT_PLAN;
  event.card_index = change.card_index;
  event.generation = reply.generation;
  emit(event);
  return reply;
}

// --- the Card interface ---

Result<std::vector<CardSnapshot>> FakeCard::inventory() {
  ++kernel_.inventories;
  if (auto failure = kernel_.takeFailure("inventory")) return *failure;
  if (!kernel_.loaded) return Error{ENODEV, "the module qgpu is not loaded", ""};
  std::vector<CardSnapshot> list;
  for (const auto &[index, card] : kernel_.cards) list.push_back(card);
  return list;
}

Result<PlanReply> FakeCard::apply(const PlanChange &change) {
  if (!kernel_.loaded) return Error{ENODEV, "the module qgpu is not loaded", ""};
  return kernel_.planSet(change);
}

Result<std::vector<Sample>> FakeCard::samples() {
  if (auto failure = kernel_.takeFailure("samples")) return *failure;
  return kernel_.samples;
}

Result<LogPart> FakeCard::log(uint32_t card_index, uint64_t from_serial) {
  if (auto failure = kernel_.takeFailure("log")) return *failure;
  LogPart part;
  for (const netlink::LogOfCard &entry : kernel_.log) {
    if (entry.card_index != card_index) continue;
    part.next_serial = entry.record.serial + !entry.record.ongoing;
    part.since_ns = entry.record.since_ns;
    if (entry.record.serial >= from_serial && part.records.size() < log_part)
      part.records.push_back(entry.record);
  }
  return part;
}

EventBatch FakeCard::events() { return std::exchange(pending, {}); }

// --- messages ---

namespace {

constexpr size_t kMessageMax = 2 * 1024 * 1024;  // of all tenants
constexpr size_t kObjectMax = 4096;  // of one tenant with all of its cgroups, and of less
constexpr size_t kTenantsPerNest = 64;

struct FreeMessage {
  void operator()(nl_msg *message) const { nlmsg_free(message); }
};
using Message = std::unique_ptr<nl_msg, FreeMessage>;

Message startMessage(uint32_t sequence, uint16_t type, uint8_t command, int flags,
                     size_t size = kObjectMax) {
  Message message(nlmsg_alloc_size(size));
  genlmsg_put(message.get(), 0, sequence, type, 0, flags, command, 1);
  return message;
}

Bytes bytesOf(const Message &message) {
  const auto *head = reinterpret_cast<const uint8_t *>(nlmsg_hdr(message.get()));
  return Bytes(head, head + nlmsg_hdr(message.get())->nlmsg_len);
}

nlmsghdr headOf(std::span<const uint8_t> message) {
  nlmsghdr head;
  memcpy(&head, message.data(), sizeof(head));
  return head;
}

void putCard(nl_msg *message, const CardInfo &card) {
  nla_put_u32(message, QGPU_A_CARD_INDEX, card.index);
  nlattr *nest = nla_nest_start(message, QGPU_A_CARD | NLA_F_NESTED);
  nla_put_string(message, QGPU_A_CARD_UUID, card.uuid.c_str());
  nla_put_string(message, QGPU_A_CARD_NAME, card.name.c_str());
  nla_put_u32(message, QGPU_A_CARD_CHIP_ID, card.chip_id);
  if (card.simulated) nla_put_flag(message, QGPU_A_CARD_SIMULATED);
  nla_put_u32(message, QGPU_A_CARD_METHOD, card.method);
  nla_put_u32(message, QGPU_A_CARD_STATE, card.state);
  if (!card.reason.empty()) nla_put_string(message, QGPU_A_CARD_REASON, card.reason.c_str());
  nla_put_u32(message, QGPU_A_CARD_POLICY, card.policy);
  nla_put_u64(message, QGPU_A_CARD_GENERATION, card.generation);
  nla_put_u64(message, QGPU_A_CARD_SWITCH_NS, card.switch_ns);
  nla_put_u64(message, QGPU_A_CARD_CYCLE_NS, card.cycle_ns);
  nla_put_u64(message, QGPU_A_CARD_SLICE_MIN_NS, card.slice_min_ns);
  nla_put_u64(message, QGPU_A_CARD_SLICE_MAX_NS, card.slice_max_ns);
  nla_put_u32(message, QGPU_A_CARD_TENANTS, card.tenants);
  nla_put_u32(message, QGPU_A_CARD_TSGS, card.tsgs);
  nla_nest_end(message, nest);
}

void putTenant(nl_msg *message, int type, const TenantStatus &tenant) {
  nlattr *nest = nla_nest_start(message, type | NLA_F_NESTED);
  nla_put_u32(message, QGPU_A_TENANT_ID, tenant.id);
  nla_put_string(message, QGPU_A_TENANT_NAME, tenant.name.c_str());
  nla_put_u32(message, QGPU_A_TENANT_WEIGHT, tenant.asked.weight);
  nla_put_u32(message, QGPU_A_TENANT_GUARANTEE_PPM, tenant.asked.guarantee_ppm);
  nla_put_u32(message, QGPU_A_TENANT_CEILING_PPM, tenant.asked.ceiling_ppm);
  nla_put_u64(message, QGPU_A_TENANT_WAKE_NS, tenant.asked.wake_ns);
  nla_put_u32(message, QGPU_A_TENANT_CLASS, tenant.asked.work_class);
  nla_put_u64(message, QGPU_A_TENANT_HANG_NS, tenant.asked.hang_ns);
  nla_put_u64(message, QGPU_A_TENANT_MEMORY_BYTES, tenant.asked.memory_bytes);
  nla_put(message, QGPU_A_TENANT_CGROUPS,
          static_cast<int>(tenant.asked.cgroups.size() * sizeof(uint64_t)),
          tenant.asked.cgroups.data());
  nla_put_u32(message, QGPU_A_TENANT_SHARE_PPM, tenant.share_ppm);
  nla_put_u64(message, QGPU_A_TENANT_SLICE_NS, tenant.slice_ns);
  nla_put_u64(message, QGPU_A_TENANT_WINDOW_NS, tenant.window_ns);
  if (tenant.awake) nla_put_flag(message, QGPU_A_TENANT_AWAKE);
  nla_put_u32(message, QGPU_A_TENANT_TSGS, tenant.tsgs);
  if (tenant.place) nla_put_u32(message, QGPU_A_TENANT_PLACE, *tenant.place);
  nla_nest_end(message, nest);
}

void putLog(nl_msg *message, const netlink::LogOfCard &entry) {
  const LogRecord &record = entry.record;
  nla_put_u32(message, QGPU_A_CARD_INDEX, entry.card_index);
  nlattr *nest = nla_nest_start(message, QGPU_A_LOG | NLA_F_NESTED);
  nla_put_u64(message, QGPU_A_LOG_SERIAL, record.serial);
  nla_put_u64(message, QGPU_A_LOG_FROM_NS, record.from_ns);
  nla_put_u64(message, QGPU_A_LOG_TO_NS, record.to_ns);
  nla_put_u32(message, QGPU_A_LOG_SEEN, record.seen);
  nla_put_u32(message, QGPU_A_LOG_WINDOW, record.window);
  if (record.end) nla_put_u32(message, QGPU_A_LOG_END, *record.end);
  if (record.tenant_id) nla_put_u32(message, QGPU_A_LOG_TENANT_ID, *record.tenant_id);
  if (record.due_id) nla_put_u32(message, QGPU_A_LOG_DUE_ID, *record.due_id);
  if (record.ongoing) nla_put_flag(message, QGPU_A_LOG_ONGOING);
  nla_put_u64(message, QGPU_A_LOG_SINCE_NS, record.since_ns);
  nla_nest_end(message, nest);
}

void putSample(nl_msg *message, const Sample &sample) {
  nla_put_u32(message, QGPU_A_CARD_INDEX, sample.card_index);
  nlattr *nest = nla_nest_start(message, QGPU_A_STATS | NLA_F_NESTED);
  if (sample.tenant_id) nla_put_u32(message, QGPU_A_STATS_TENANT_ID, *sample.tenant_id);
  nla_put_u64(message, QGPU_A_STATS_TIME_NS, sample.time_ns);
  nla_put_u64(message, QGPU_A_STATS_SINCE_NS, sample.since_ns);
  nla_put_u64(message, QGPU_A_STATS_RUN_NS, sample.run_ns);
  nla_put_u64(message, QGPU_A_STATS_RUN_ERR_NS, sample.run_err_ns);
  nla_put_u32(message, QGPU_A_STATS_SOURCE, sample.source);
  nla_put_u64(message, QGPU_A_STATS_WAIT_MAX_NS, sample.wait_max_ns);
  nla_put_u64(message, QGPU_A_STATS_HANGS, sample.hangs);
  nla_put_u64(message, QGPU_A_STATS_VISITS, sample.visits);
  nla_put_u64(message, QGPU_A_STATS_REMOVED_NS, sample.removed_ns);
  for (const auto &[type, histogram] : {std::pair{QGPU_A_STATS_WAITS, &sample.waits},
                                        std::pair{QGPU_A_STATS_TAILS, &sample.tails}}) {
    if (!*histogram) continue;
    std::vector<uint64_t> values((*histogram)->bins.begin(), (*histogram)->bins.end());
    values.push_back((*histogram)->sum_ns);
    nla_put(message, type, static_cast<int>(values.size() * sizeof(uint64_t)), values.data());
  }
  nla_nest_end(message, nest);
}

uint32_t offsetOf(std::span<const uint8_t> message, const nlattr *attribute) {
  return static_cast<uint32_t>(reinterpret_cast<const uint8_t *>(attribute) - message.data());
}

// One tenant of a PLAN_SET; the attribute that the guilt names goes to *guilty.
TenantChange readTenant(nlattr *nest, const Guilt *guilt, nlattr **guilty) {
  nlattr *attributes[QGPU_A_TENANT_MAX + 1] = {};
  nla_parse_nested(attributes, QGPU_A_TENANT_MAX, nest, nullptr);
  TenantChange change;
  auto u32 = [&](int type, std::optional<uint32_t> &value) {
    if (attributes[type]) value = nla_get_u32(attributes[type]);
  };
  auto u64 = [&](int type, std::optional<uint64_t> &value) {
    if (attributes[type]) value = nla_get_u64(attributes[type]);
  };
  change.name = nla_get_string(attributes[QGPU_A_TENANT_NAME]);
  if (attributes[QGPU_A_TENANT_FLAGS])
    change.remove = nla_get_u32(attributes[QGPU_A_TENANT_FLAGS]) & QGPU_TENANT_REMOVE;
  u32(QGPU_A_TENANT_WEIGHT, change.weight);
  u32(QGPU_A_TENANT_GUARANTEE_PPM, change.guarantee_ppm);
  u32(QGPU_A_TENANT_CEILING_PPM, change.ceiling_ppm);
  u64(QGPU_A_TENANT_WAKE_NS, change.wake_ns);
  u32(QGPU_A_TENANT_CLASS, change.work_class);
  u64(QGPU_A_TENANT_HANG_NS, change.hang_ns);
  u64(QGPU_A_TENANT_MEMORY_BYTES, change.memory_bytes);
  if (nlattr *cgroups = attributes[QGPU_A_TENANT_CGROUPS]) {
    change.cgroups.emplace(static_cast<size_t>(nla_len(cgroups)) / sizeof(uint64_t));
    if (!change.cgroups->empty())
      memcpy(change.cgroups->data(), nla_data(cgroups), static_cast<size_t>(nla_len(cgroups)));
  }
  if (guilt && guilt->tenant == change.name && attributes[guilt->attribute])
    *guilty = attributes[guilt->attribute];
  return change;
}

void readPlanNest(nlattr *nest, PlanChange &change, const Guilt *guilt, nlattr **guilty) {
  nlattr *attribute;
  int left;
  nla_for_each_nested(attribute, nest, left) {
    switch (nla_type(attribute)) {
      case QGPU_A_PLAN_GENERATION:
        change.generation = nla_get_u64(attribute);
        break;
      case QGPU_A_PLAN_FLAGS:
        change.dry_run = nla_get_u32(attribute) & QGPU_PLAN_DRY_RUN;
        break;
      case QGPU_A_PLAN_POLICY:
        change.policy = nla_get_u32(attribute);
        break;
      case QGPU_A_PLAN_CYCLE_NS:
        change.cycle_ns = nla_get_u64(attribute);
        break;
      case QGPU_A_PLAN_TENANT:
        change.tenants.push_back(readTenant(attribute, guilt, guilty));
        break;
    }
    if (guilt && guilt->tenant.empty() && nla_type(attribute) == guilt->attribute)
      *guilty = attribute;
  }
}

PlanChange readPlan(std::span<const uint8_t> message, const Guilt *guilt, nlattr **guilty) {
  auto *head = const_cast<nlmsghdr *>(reinterpret_cast<const nlmsghdr *>(message.data()));
  nlattr *top[QGPU_A_MAX + 1] = {};
  nlmsg_parse(head, GENL_HDRLEN, top, QGPU_A_MAX, nullptr);
  PlanChange change;
  change.card_index = nla_get_u32(top[QGPU_A_CARD_INDEX]);
  nlattr *plan;
  int plans_left;
  // A plan may be cut into several nests.
  nlmsg_for_each_attr(plan, head, GENL_HDRLEN, plans_left) {
    if (nla_type(plan) == QGPU_A_PLAN) readPlanNest(plan, change, guilt, guilty);
  }
  return change;
}

}  // namespace

FakeWire::FakeWire(FakeKernel &kernel) : kernel_(kernel) { kernel_.listeners.push_back(this); }

FakeWire::~FakeWire() { std::erase(kernel_.listeners, this); }

Result<void> FakeWire::join(uint32_t group) {
  groups.push_back(group);
  return {};
}

Result<Bytes> FakeWire::receive() {
  if (std::exchange(overflowed_, false)) return Error{ENOBUFS, "overflow", ""};
  if (queue_.empty()) return Error{EAGAIN, "nothing there", ""};
  Bytes datagram = std::move(queue_.front());
  queue_.pop_front();
  return datagram;
}

void FakeWire::pushEvent(const CardEvent &event) {
  if (std::count(groups.begin(), groups.end(), kernel_.events_group) == 0) return;
  Message message = startMessage(0, kernel_.family_id, QGPU_CMD_EVENT, 0);
  nla_put_u32(message.get(), QGPU_A_CARD_INDEX, event.card_index);
  nlattr *nest = nla_nest_start(message.get(), QGPU_A_EVENT | NLA_F_NESTED);
  nla_put_u32(message.get(), QGPU_A_EVENT_KIND, event.kind);
  nla_put_u64(message.get(), QGPU_A_EVENT_TIME_NS, event.time_ns);
  if (event.generation) nla_put_u64(message.get(), QGPU_A_EVENT_GENERATION, *event.generation);
  if (!event.tenant_name.empty())
    nla_put_string(message.get(), QGPU_A_EVENT_TENANT_NAME, event.tenant_name.c_str());
  nla_nest_end(message.get(), nest);
  push(bytesOf(message));
}

void FakeWire::pushFamily(uint8_t controller_command) {
  if (std::count(groups.begin(), groups.end(), uint32_t{GENL_ID_CTRL}) == 0) return;
  Message message = startMessage(0, GENL_ID_CTRL, controller_command, 0);
  nla_put_string(message.get(), CTRL_ATTR_FAMILY_NAME, QGPU_GENL_NAME);
  nla_put_u16(message.get(), CTRL_ATTR_FAMILY_ID, kernel_.family_id);
  push(bytesOf(message));
}

void FakeWire::acknowledge(std::span<const uint8_t> request, const Error &error, uint32_t offset) {
  nlmsghdr head = headOf(request);
  Message message(nlmsg_alloc_size(8192));
  // With extended acknowledgement and capping on, as the real wire asks for.
  int flags = NLM_F_CAPPED | (error.sentence.empty() ? 0 : NLM_F_ACK_TLVS);
  nlmsg_put(message.get(), 0, head.nlmsg_seq, NLMSG_ERROR, 0, flags);
  nlmsgerr body{-error.err, head};
  nlmsg_append(message.get(), &body, sizeof(body), NLMSG_ALIGNTO);
  if (!error.sentence.empty()) {
    nla_put_string(message.get(), NLMSGERR_ATTR_MSG, error.sentence.c_str());
    if (offset != 0) nla_put_u32(message.get(), NLMSGERR_ATTR_OFFS, offset);
  }
  push(bytesOf(message));
}

Result<void> FakeWire::send(std::span<const uint8_t> message) {
  last_request.assign(message.begin(), message.end());
  if (kernel_.lose_next_answer) {
    kernel_.lose_next_answer = false;
    return {};
  }
  nlmsghdr head = headOf(message);
  if (head.nlmsg_type == GENL_ID_CTRL)
    answerController(message);
  else if (kernel_.loaded && head.nlmsg_type == kernel_.family_id)
    answerFamily(message);
  else
    acknowledge(message, {ENOENT, "", ""}, 0);
  return {};
}

void FakeWire::answerController(std::span<const uint8_t> request) {
  if (!kernel_.loaded) return acknowledge(request, {ENOENT, "", ""}, 0);
  Message message = startMessage(headOf(request).nlmsg_seq, GENL_ID_CTRL, CTRL_CMD_NEWFAMILY, 0);
  nla_put_string(message.get(), CTRL_ATTR_FAMILY_NAME, QGPU_GENL_NAME);
  nla_put_u16(message.get(), CTRL_ATTR_FAMILY_ID, kernel_.family_id);
  nla_put_u32(message.get(), CTRL_ATTR_VERSION, QGPU_GENL_VERSION);
  nlattr *list = nla_nest_start(message.get(), CTRL_ATTR_MCAST_GROUPS);
  nlattr *group = nla_nest_start(message.get(), 1);
  nla_put_string(message.get(), CTRL_ATTR_MCAST_GRP_NAME, QGPU_GENL_MCGRP_EVENTS);
  nla_put_u32(message.get(), CTRL_ATTR_MCAST_GRP_ID, kernel_.events_group);
  nla_nest_end(message.get(), group);
  nla_nest_end(message.get(), list);
  push(bytesOf(message));
  acknowledge(request, {}, 0);
}

void FakeWire::answerFamily(std::span<const uint8_t> request) {
  uint8_t command = request[NLMSG_HDRLEN];
  if (kernel_.unloading) return acknowledge(request, {EPROTONOSUPPORT, "", ""}, 0);
  if (headOf(request).nlmsg_flags & NLM_F_DUMP)
    answerDump(request, command);
  else if (command == QGPU_CMD_PLAN_SET)
    answerPlanSet(request);
  else
    acknowledge(request, {EOPNOTSUPP, "", ""}, 0);
}

void FakeWire::answerDump(std::span<const uint8_t> request, uint8_t command) {
  uint32_t sequence = headOf(request).nlmsg_seq;
  int flags = NLM_F_MULTI;
  if (kernel_.interrupt_dumps > 0) {
    --kernel_.interrupt_dumps;
    flags |= NLM_F_DUMP_INTR;
  }
  Bytes datagram;
  auto append = [&](const Message &message) {
    Bytes bytes = bytesOf(message);
    datagram.resize(NLMSG_ALIGN(datagram.size()));
    datagram.insert(datagram.end(), bytes.begin(), bytes.end());
  };
  for (const auto &[index, card] : kernel_.cards) {
    if (command == QGPU_CMD_CARD_GET) {
      Message message = startMessage(sequence, kernel_.family_id, command, flags);
      putCard(message.get(), card.info);
      append(message);
    }
    for (const TenantStatus &tenant : card.tenants) {
      if (command != QGPU_CMD_TENANT_GET) break;
      Message message = startMessage(sequence, kernel_.family_id, command, flags);
      nla_put_u32(message.get(), QGPU_A_CARD_INDEX, index);
      putTenant(message.get(), QGPU_A_TENANT, tenant);
      append(message);
    }
  }
  for (const Sample &sample : kernel_.samples) {
    if (command != QGPU_CMD_STATS_GET) break;
    Message message = startMessage(sequence, kernel_.family_id, command, flags);
    putSample(message.get(), sample);
    append(message);
  }
  for (const netlink::LogOfCard &entry : kernel_.log) {
    if (command != QGPU_CMD_LOG_GET) break;
    Message message = startMessage(sequence, kernel_.family_id, command, flags);
    putLog(message.get(), entry);
    append(message);
  }
  if (!datagram.empty()) push(datagram);
  Message done(nlmsg_alloc_size(256));
  nlmsg_put(done.get(), 0, sequence, NLMSG_DONE, 0, flags);
  int result = 0;
  nlmsg_append(done.get(), &result, sizeof(result), NLMSG_ALIGNTO);
  push(bytesOf(done));
}

void FakeWire::answerPlanSet(std::span<const uint8_t> request) {
  PlanChange change = readPlan(request, nullptr, nullptr);
  Guilt guilt;
  auto reply = kernel_.planSet(change, &guilt);
  if (!reply) {
    nlattr *guilty = nullptr;
    readPlan(request, &guilt, &guilty);
    return acknowledge(request, reply.error(), guilty ? offsetOf(request, guilty) : 0);
  }
  Message message =
      startMessage(headOf(request).nlmsg_seq, kernel_.family_id, QGPU_CMD_PLAN_SET, 0, kMessageMax);
  nla_put_u32(message.get(), QGPU_A_CARD_INDEX, change.card_index);
  // As the kernel: many tenants are several nests of one message.
  size_t next = 0;
  do {
    nlattr *nest = nla_nest_start(message.get(), QGPU_A_PLAN | NLA_F_NESTED);
    if (next == 0) nla_put_u64(message.get(), QGPU_A_PLAN_GENERATION, reply->generation);
    for (size_t i = 0; i < kTenantsPerNest && next < reply->tenants.size(); ++i)
      putTenant(message.get(), QGPU_A_PLAN_TENANT, reply->tenants[next++]);
    nla_nest_end(message.get(), nest);
  } while (next < reply->tenants.size());
  push(bytesOf(message));
  acknowledge(request, {}, 0);
}

}  // namespace qgpu::fakes
