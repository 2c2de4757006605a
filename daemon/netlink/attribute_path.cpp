// SPDX-License-Identifier: GPL-2.0
#include "attribute_path.hpp"

#include <linux/genetlink.h>
#include <linux/qgpu.h>

#include "attributes.hpp"

namespace qgpu::netlink {

namespace {

struct AttributeName {
  int type;
  const char *name;
  const AttributeName *nest;  // names inside, null for plain values
};

constexpr AttributeName kTenantNames[] = {
    {QGPU_A_TENANT_ID, "id", nullptr},
    {QGPU_A_TENANT_NAME, "name", nullptr},
    {QGPU_A_TENANT_FLAGS, "flags", nullptr},
    {QGPU_A_TENANT_WEIGHT, "weight", nullptr},
    {QGPU_A_TENANT_GUARANTEE_PPM, "guarantee", nullptr},
    {QGPU_A_TENANT_CEILING_PPM, "ceiling", nullptr},
    {QGPU_A_TENANT_WAKE_NS, "wake_within", nullptr},
    {QGPU_A_TENANT_CLASS, "class", nullptr},
    {QGPU_A_TENANT_HANG_NS, "hang_timeout", nullptr},
    {QGPU_A_TENANT_MEMORY_BYTES, "memory", nullptr},
    {QGPU_A_TENANT_CGROUPS, "cgroup", nullptr},
    {0, nullptr, nullptr},
};
constexpr AttributeName kPlanNames[] = {
    {QGPU_A_PLAN_GENERATION, "generation", nullptr}, {QGPU_A_PLAN_FLAGS, "flags", nullptr},
    {QGPU_A_PLAN_POLICY, "policy", nullptr},         {QGPU_A_PLAN_CYCLE_NS, "cycle", nullptr},
    {QGPU_A_PLAN_TENANT, "tenant", kTenantNames},    {0, nullptr, nullptr},
};
constexpr AttributeName kBindNames[] = {
    {QGPU_A_BIND_TENANT_NAME, "tenant", nullptr},
    {QGPU_A_BIND_PID, "pid", nullptr},
    {QGPU_A_BIND_CGROUP_ID, "cgroup", nullptr},
    {QGPU_A_BIND_TSG_SERIAL, "tsg", nullptr},
    {0, nullptr, nullptr},
};
constexpr AttributeName kTopNames[] = {
    {QGPU_A_CARD_INDEX, "card", nullptr},
    {QGPU_A_PLAN, "plan", kPlanNames},
    {QGPU_A_BIND, "bind", kBindNames},
    {0, nullptr, nullptr},
};

std::string nameIn(const AttributeName *names, int type, const AttributeName **inside) {
  *inside = nullptr;
  for (; names && names->name; ++names) {
    if (names->type != type) continue;
    *inside = names->nest;
    return names->name;
  }
  return "attribute " + std::to_string(type);
}

// Walks down to the attribute that holds the offset. Sets *names to what lies inside of it.
std::string walk(std::span<const uint8_t> request, uint32_t offset, const AttributeName **names) {
  size_t at = NLMSG_HDRLEN + GENL_HDRLEN;
  size_t end = request.size();
  std::string path;
  *names = kTopNames;
  while (at + NLA_HDRLEN <= end) {
    nlattr head;
    memcpy(&head, request.data() + at, sizeof(head));
    if (head.nla_len < NLA_HDRLEN || at + head.nla_len > end) return path;
    if (offset >= at + head.nla_len) {
      at += NLA_ALIGN(head.nla_len);
      continue;
    }
    if (offset < at) return path;

    const AttributeName *inside;
    std::string name = nameIn(*names, head.nla_type & NLA_TYPE_MASK, &inside);
    if (inside == kTenantNames) {
      Attributes(request.subspan(at + NLA_HDRLEN, head.nla_len - NLA_HDRLEN))
          .each([&](int type, std::span<const uint8_t> value) {
            if (type != QGPU_A_TENANT_NAME) return;
            name += ' ';
            name.append(value.begin(), std::find(value.begin(), value.end(), 0));
          });
    }
    if (!path.empty()) path += ", ";
    path += name;
    *names = inside;
    if (offset == at || !inside) return path;
    end = at + head.nla_len;
    at += NLA_HDRLEN;
  }
  return path;
}

}  // namespace

std::string attributeAt(std::span<const uint8_t> request, uint32_t offset) {
  const AttributeName *inside;
  return walk(request, offset, &inside);
}

std::string missingAttribute(std::span<const uint8_t> request, uint32_t nest_offset,
                             uint32_t type) {
  const AttributeName *names = kTopNames;
  std::string path;
  if (nest_offset != 0) path = walk(request, nest_offset, &names);
  const AttributeName *inside;
  return path + (path.empty() ? "" : ", ") + nameIn(names, static_cast<int>(type), &inside);
}

}  // namespace qgpu::netlink
