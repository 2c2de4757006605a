// SPDX-License-Identifier: GPL-2.0
// Encoding and decoding of the family's messages; called by client.cpp and by tests' fake kernel
// only.
#include "message.hpp"

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <netlink/genl/genl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "attributes.hpp"

namespace qgpu::netlink {

namespace {

constexpr size_t kRequestBytes = 4096;
// A nest's length is 16 bits wide: a plan of many tenants is several nests of one message.
constexpr size_t kNestMax = 60'000;

template <class Number>
void read(std::span<const uint8_t> payload, Number &value, bool &sound) {
  if (payload.size() != sizeof(value)) {
    sound = false;
    return;
  }
  memcpy(&value, payload.data(), sizeof(value));
}

template <class Number>
void read(std::span<const uint8_t> payload, std::optional<Number> &value, bool &sound) {
  value.emplace();
  read(payload, *value, sound);
}

void read(std::span<const uint8_t> payload, std::string &value, bool &) {
  auto end = std::find(payload.begin(), payload.end(), 0);
  value.assign(payload.begin(), end);
}

void read(std::span<const uint8_t> payload, std::vector<uint64_t> &values, bool &sound) {
  if (payload.size() % sizeof(uint64_t) != 0) {
    sound = false;
    return;
  }
  values.resize(payload.size() / sizeof(uint64_t));
  if (!values.empty()) memcpy(values.data(), payload.data(), payload.size());
  std::sort(values.begin(), values.end());
}

void read(std::span<const uint8_t> payload, std::optional<Histogram> &histogram, bool &sound) {
  histogram.emplace();
  if (payload.size() != sizeof(histogram->bins) + sizeof(uint64_t)) {
    sound = false;
    return;
  }
  memcpy(histogram->bins.data(), payload.data(), sizeof(histogram->bins));
  memcpy(&histogram->sum_ns, payload.data() + sizeof(histogram->bins), sizeof(uint64_t));
}

Error malformed(const char *what) {
  return Error{EBADMSG, std::string("the kernel's message about a ") + what + " is malformed", ""};
}

bool readCardNest(std::span<const uint8_t> payload, CardInfo &card) {
  bool sound = true;
  bool formed = Attributes(payload).each([&](int type, std::span<const uint8_t> value) {
    switch (type) {
      case QGPU_A_CARD_UUID:
        return read(value, card.uuid, sound);
      case QGPU_A_CARD_NAME:
        return read(value, card.name, sound);
      case QGPU_A_CARD_CHIP_ID:
        return read(value, card.chip_id, sound);
      case QGPU_A_CARD_SIMULATED:
        card.simulated = true;
        return;
      case QGPU_A_CARD_METHOD:
        return read(value, card.method, sound);
      case QGPU_A_CARD_STATE:
        return read(value, card.state, sound);
      case QGPU_A_CARD_REASON:
        return read(value, card.reason, sound);
      case QGPU_A_CARD_POLICY:
        return read(value, card.policy, sound);
      case QGPU_A_CARD_GENERATION:
        return read(value, card.generation, sound);
      case QGPU_A_CARD_SWITCH_NS:
        return read(value, card.switch_ns, sound);
      case QGPU_A_CARD_CYCLE_NS:
        return read(value, card.cycle_ns, sound);
      case QGPU_A_CARD_SLICE_MIN_NS:
        return read(value, card.slice_min_ns, sound);
      case QGPU_A_CARD_SLICE_MAX_NS:
        return read(value, card.slice_max_ns, sound);
      case QGPU_A_CARD_TENANTS:
        return read(value, card.tenants, sound);
      case QGPU_A_CARD_TSGS:
        return read(value, card.tsgs, sound);
    }
  });
  return formed && sound;
}

bool readTenantNest(std::span<const uint8_t> payload, TenantStatus &tenant) {
  bool sound = true;
  bool formed = Attributes(payload).each([&](int type, std::span<const uint8_t> value) {
    switch (type) {
      case QGPU_A_TENANT_ID:
        return read(value, tenant.id, sound);
      case QGPU_A_TENANT_NAME:
        return read(value, tenant.name, sound);
      case QGPU_A_TENANT_WEIGHT:
        return read(value, tenant.asked.weight, sound);
      case QGPU_A_TENANT_GUARANTEE_PPM:
        return read(value, tenant.asked.guarantee_ppm, sound);
      case QGPU_A_TENANT_CEILING_PPM:
        return read(value, tenant.asked.ceiling_ppm, sound);
      case QGPU_A_TENANT_WAKE_NS:
        return read(value, tenant.asked.wake_ns, sound);
      case QGPU_A_TENANT_CLASS:
        return read(value, tenant.asked.work_class, sound);
      case QGPU_A_TENANT_HANG_NS:
        return read(value, tenant.asked.hang_ns, sound);
      case QGPU_A_TENANT_MEMORY_BYTES:
        return read(value, tenant.asked.memory_bytes, sound);
      case QGPU_A_TENANT_CGROUPS:
        return read(value, tenant.asked.cgroups, sound);
      case QGPU_A_TENANT_SHARE_PPM:
        return read(value, tenant.share_ppm, sound);
      case QGPU_A_TENANT_SLICE_NS:
        return read(value, tenant.slice_ns, sound);
      case QGPU_A_TENANT_WINDOW_NS:
        return read(value, tenant.window_ns, sound);
      case QGPU_A_TENANT_AWAKE:
        tenant.awake = true;
        return;
      case QGPU_A_TENANT_TSGS:
        return read(value, tenant.tsgs, sound);
      case QGPU_A_TENANT_PLACE:
        return read(value, tenant.place, sound);
    }
  });
  return formed && sound;
}

// Finds the card's number and one nest; false when either is missing or malformed.
template <class ReadNest>
bool readMessage(const Incoming &incoming, int nest_type, uint32_t &card_index, ReadNest readNest) {
  bool sound = true;
  bool has_card = false;
  bool has_nest = false;
  bool formed = Attributes(incoming.attributes).each([&](int type, std::span<const uint8_t> value) {
    if (type == QGPU_A_CARD_INDEX) {
      read(value, card_index, sound);
      has_card = true;
    } else if (type == nest_type) {
      sound = readNest(value) && sound;
      has_nest = true;
    }
  });
  return formed && sound && has_card && has_nest;
}

}  // namespace

Request::Request(uint16_t family, uint8_t command, uint8_t version, uint16_t flags)
    : Request(family, command, version, flags, kRequestBytes) {}

Request::Request(uint16_t family, uint8_t command, uint8_t version, uint16_t flags, size_t bytes)
    : message_(nlmsg_alloc_size(bytes)) {
  if (!message_ || !genlmsg_put(message_.get(), NL_AUTO_PORT, NL_AUTO_SEQ, family, 0,
                                NLM_F_REQUEST | flags, command, version))
    overflow_ = true;
}

void Request::u32(int attribute, uint32_t value) {
  if (nla_put_u32(message_.get(), attribute, value) < 0) overflow_ = true;
}

void Request::u64(int attribute, uint64_t value) {
  if (nla_put_u64(message_.get(), attribute, value) < 0) overflow_ = true;
}

void Request::string(int attribute, const std::string &value) {
  if (nla_put_string(message_.get(), attribute, value.c_str()) < 0) overflow_ = true;
}

void Request::binary(int attribute, std::span<const uint8_t> value) {
  if (nla_put(message_.get(), attribute, static_cast<int>(value.size()), value.data()) < 0)
    overflow_ = true;
}

Result<Bytes> Request::finish(uint32_t sequence) {
  if (overflow_) return Error{E2BIG, "the request does not fit one netlink message", ""};
  nlmsghdr *head = nlmsg_hdr(message_.get());
  head->nlmsg_seq = sequence;
  head->nlmsg_pid = 0;
  const auto *bytes = reinterpret_cast<const uint8_t *>(head);
  return Bytes(bytes, bytes + head->nlmsg_len);
}

Result<Incoming> readIncoming(std::span<const uint8_t> message) {
  if (message.size() < NLMSG_HDRLEN + GENL_HDRLEN) return malformed("family");
  nlmsghdr head;
  genlmsghdr generic;
  memcpy(&head, message.data(), sizeof(head));
  memcpy(&generic, message.data() + NLMSG_HDRLEN, sizeof(generic));
  return Incoming{head.nlmsg_type, generic.cmd, message.subspan(NLMSG_HDRLEN + GENL_HDRLEN)};
}

Result<Family> readFamily(const Incoming &incoming, std::string *name) {
  Family family;
  bool sound = true;
  auto readGroup = [&](int, std::span<const uint8_t> group) {
    std::string group_name;
    uint32_t group_id = 0;
    Attributes(group).each([&](int type, std::span<const uint8_t> value) {
      if (type == CTRL_ATTR_MCAST_GRP_NAME) read(value, group_name, sound);
      if (type == CTRL_ATTR_MCAST_GRP_ID) read(value, group_id, sound);
    });
    if (group_name == QGPU_GENL_MCGRP_EVENTS) family.events_group = group_id;
  };
  bool formed = Attributes(incoming.attributes).each([&](int type, std::span<const uint8_t> value) {
    switch (type) {
      case CTRL_ATTR_FAMILY_ID:
        return read(value, family.id, sound);
      case CTRL_ATTR_FAMILY_NAME:
        return read(value, *name, sound);
      case CTRL_ATTR_VERSION:
        return read(value, family.version, sound);
      case CTRL_ATTR_MCAST_GROUPS:
        sound = Attributes(value).each(readGroup) && sound;
        return;
    }
  });
  if (!formed || !sound) return malformed("family");
  return family;
}

namespace {

void writeTenant(Request &request, const TenantChange &tenant) {
  request.string(QGPU_A_TENANT_NAME, tenant.name);
  if (tenant.remove) request.u32(QGPU_A_TENANT_FLAGS, QGPU_TENANT_REMOVE);
  if (tenant.weight) request.u32(QGPU_A_TENANT_WEIGHT, *tenant.weight);
  if (tenant.guarantee_ppm) request.u32(QGPU_A_TENANT_GUARANTEE_PPM, *tenant.guarantee_ppm);
  if (tenant.ceiling_ppm) request.u32(QGPU_A_TENANT_CEILING_PPM, *tenant.ceiling_ppm);
  if (tenant.wake_ns) request.u64(QGPU_A_TENANT_WAKE_NS, *tenant.wake_ns);
  if (tenant.work_class) request.u32(QGPU_A_TENANT_CLASS, *tenant.work_class);
  if (tenant.hang_ns) request.u64(QGPU_A_TENANT_HANG_NS, *tenant.hang_ns);
  if (tenant.memory_bytes) request.u64(QGPU_A_TENANT_MEMORY_BYTES, *tenant.memory_bytes);
  if (tenant.cgroups) {
    const auto *bytes = reinterpret_cast<const uint8_t *>(tenant.cgroups->data());
    request.binary(QGPU_A_TENANT_CGROUPS, {bytes, tenant.cgroups->size() * sizeof(uint64_t)});
  }
}

// Upper bound of the bytes of one tenant: nest, flags and the eight numbers, the name, the ids.
size_t tenantBytes(const TenantChange &change) {
  size_t cgroups = change.cgroups ? change.cgroups->size() * sizeof(uint64_t) : 0;
  return 140 + change.name.size() + cgroups;
}

}  // namespace

size_t planBytes(const PlanChange &change) {
  size_t bytes = 1024;
  for (const TenantChange &tenant : change.tenants) bytes += tenantBytes(tenant);
  // Each further nest has a head of its own.
  return bytes + bytes / kNestMax * 64;
}

void writePlan(Request &request, const PlanChange &change) {
  request.u32(QGPU_A_CARD_INDEX, change.card_index);
  size_t next = 0;
  do {
    request.nest(QGPU_A_PLAN, [&] {
      if (next == 0) {
        request.u64(QGPU_A_PLAN_GENERATION, change.generation);
        if (change.dry_run) request.u32(QGPU_A_PLAN_FLAGS, QGPU_PLAN_DRY_RUN);
        if (change.policy) request.u32(QGPU_A_PLAN_POLICY, *change.policy);
        if (change.cycle_ns) request.u64(QGPU_A_PLAN_CYCLE_NS, *change.cycle_ns);
      }
      size_t bytes = 0;
      for (; next < change.tenants.size(); ++next) {
        const TenantChange &tenant = change.tenants[next];
        bytes += tenantBytes(tenant);
        if (bytes > kNestMax) break;
        request.nest(QGPU_A_PLAN_TENANT, [&] { writeTenant(request, tenant); });
      }
    });
  } while (next < change.tenants.size());
}

Result<CardInfo> readCard(const Incoming &incoming) {
  CardInfo card;
  if (!readMessage(incoming, QGPU_A_CARD, card.index,
                   [&](auto payload) { return readCardNest(payload, card); }))
    return malformed("card");
  return card;
}

Result<TenantOfCard> readTenant(const Incoming &incoming) {
  TenantOfCard found;
  if (!readMessage(incoming, QGPU_A_TENANT, found.card_index,
                   [&](auto payload) { return readTenantNest(payload, found.tenant); }))
    return malformed("tenant");
  return found;
}

Result<TsgOfCard> readTsg(const Incoming &incoming) {
  TsgOfCard found;
  auto readNest = [&](std::span<const uint8_t> payload) {
    TsgStatus &tsg = found.tsg;
    bool sound = true;
    bool formed = Attributes(payload).each([&](int type, std::span<const uint8_t> value) {
      switch (type) {
        case QGPU_A_TSG_SERIAL:
          return read(value, tsg.serial, sound);
        case QGPU_A_TSG_ID:
          return read(value, tsg.id, sound);
        case QGPU_A_TSG_RUNLIST:
          return read(value, tsg.runlist, sound);
        case QGPU_A_TSG_TENANT_ID:
          return read(value, tsg.tenant_id, sound);
        case QGPU_A_TSG_PID:
          return read(value, tsg.pid, sound);
        case QGPU_A_TSG_CHANNELS:
          return read(value, tsg.channels, sound);
        case QGPU_A_TSG_SLICE_NS:
          return read(value, tsg.slice_ns, sound);
      }
    });
    return formed && sound;
  };
  if (!readMessage(incoming, QGPU_A_TSG, found.card_index, readNest)) return malformed("TSG");
  return found;
}

Result<PlanReply> readPlan(const Incoming &incoming) {
  PlanReply plan;
  uint32_t card_index = 0;
  auto readNest = [&](std::span<const uint8_t> payload) {
    bool sound = true;
    bool formed = Attributes(payload).each([&](int type, std::span<const uint8_t> value) {
      if (type == QGPU_A_PLAN_GENERATION) return read(value, plan.generation, sound);
      if (type != QGPU_A_PLAN_TENANT) return;
      TenantStatus tenant;
      sound = readTenantNest(value, tenant) && sound;
      plan.tenants.push_back(std::move(tenant));
    });
    return formed && sound;
  };
  if (!readMessage(incoming, QGPU_A_PLAN, card_index, readNest)) return malformed("plan");
  return plan;
}

Result<Sample> readSample(const Incoming &incoming) {
  Sample sample;
  auto readNest = [&](std::span<const uint8_t> payload) {
    bool sound = true;
    bool formed = Attributes(payload).each([&](int type, std::span<const uint8_t> value) {
      switch (type) {
        case QGPU_A_STATS_TENANT_ID:
          return read(value, sample.tenant_id, sound);
        case QGPU_A_STATS_TIME_NS:
          return read(value, sample.time_ns, sound);
        case QGPU_A_STATS_SINCE_NS:
          return read(value, sample.since_ns, sound);
        case QGPU_A_STATS_GENERATION:
          return read(value, sample.generation, sound);
        case QGPU_A_STATS_RUN_NS:
          return read(value, sample.run_ns, sound);
        case QGPU_A_STATS_RUN_ERR_NS:
          return read(value, sample.run_err_ns, sound);
        case QGPU_A_STATS_SOURCE:
          return read(value, sample.source, sound);
        case QGPU_A_STATS_WAIT_NS:
          return read(value, sample.wait_ns, sound);
        case QGPU_A_STATS_SWITCH_NS:
          return read(value, sample.switch_ns, sound);
        case QGPU_A_STATS_IDLE_NS:
          return read(value, sample.idle_ns, sound);
        case QGPU_A_STATS_WINDOWS:
          return read(value, sample.windows, sound);
        case QGPU_A_STATS_SUBMITS:
          return read(value, sample.submits, sound);
        case QGPU_A_STATS_PREEMPTS:
          return read(value, sample.preempts, sound);
        case QGPU_A_STATS_OVERRUNS:
          return read(value, sample.overruns, sound);
        case QGPU_A_STATS_THROTTLED_NS:
          return read(value, sample.throttled_ns, sound);
        case QGPU_A_STATS_WAIT_MAX_NS:
          return read(value, sample.wait_max_ns, sound);
        case QGPU_A_STATS_HANGS:
          return read(value, sample.hangs, sound);
        case QGPU_A_STATS_WAITS:
          return read(value, sample.waits, sound);
        case QGPU_A_STATS_TAILS:
          return read(value, sample.tails, sound);
        case QGPU_A_STATS_VISITS:
          return read(value, sample.visits, sound);
        case QGPU_A_STATS_REMOVED_NS:
          return read(value, sample.removed_ns, sound);
      }
    });
    return formed && sound;
  };
  if (!readMessage(incoming, QGPU_A_STATS, sample.card_index, readNest))
    return malformed("counter");
  return sample;
}

Result<LogOfCard> readLog(const Incoming &incoming) {
  LogOfCard found;
  auto readNest = [&](std::span<const uint8_t> payload) {
    LogRecord &record = found.record;
    bool sound = true;
    bool formed = Attributes(payload).each([&](int type, std::span<const uint8_t> value) {
      switch (type) {
        case QGPU_A_LOG_SERIAL:
          return read(value, record.serial, sound);
        case QGPU_A_LOG_FROM_NS:
          return read(value, record.from_ns, sound);
        case QGPU_A_LOG_TO_NS:
          return read(value, record.to_ns, sound);
        case QGPU_A_LOG_SEEN:
          return read(value, record.seen, sound);
        case QGPU_A_LOG_TENANT_ID:
          return read(value, record.tenant_id, sound);
        case QGPU_A_LOG_END:
          return read(value, record.end, sound);
        case QGPU_A_LOG_WINDOW:
          return read(value, record.window, sound);
        case QGPU_A_LOG_DUE_ID:
          return read(value, record.due_id, sound);
        case QGPU_A_LOG_ONGOING:
          record.ongoing = true;
          return;
        case QGPU_A_LOG_SINCE_NS:
          return read(value, record.since_ns, sound);
      }
    });
    return formed && sound;
  };
  if (!readMessage(incoming, QGPU_A_LOG, found.card_index, readNest)) return malformed("log");
  return found;
}

Result<CardEvent> readEvent(const Incoming &incoming) {
  CardEvent event;
  auto readNest = [&](std::span<const uint8_t> payload) {
    bool sound = true;
    bool formed = Attributes(payload).each([&](int type, std::span<const uint8_t> value) {
      switch (type) {
        case QGPU_A_EVENT_KIND:
          return read(value, event.kind, sound);
        case QGPU_A_EVENT_TIME_NS:
          return read(value, event.time_ns, sound);
        case QGPU_A_EVENT_TENANT_ID:
          return read(value, event.tenant_id, sound);
        case QGPU_A_EVENT_TENANT_NAME:
          return read(value, event.tenant_name, sound);
        case QGPU_A_EVENT_TSG_SERIAL:
          return read(value, event.tsg_serial, sound);
        case QGPU_A_EVENT_PID:
          return read(value, event.pid, sound);
        case QGPU_A_EVENT_GENERATION:
          return read(value, event.generation, sound);
        case QGPU_A_EVENT_CARD_STATE:
          return read(value, event.card_state, sound);
        case QGPU_A_EVENT_REASON:
          return read(value, event.reason, sound);
      }
    });
    return formed && sound;
  };
  if (!readMessage(incoming, QGPU_A_EVENT, event.card_index, readNest)) return malformed("event");
  return event;
}

}  // namespace qgpu::netlink
