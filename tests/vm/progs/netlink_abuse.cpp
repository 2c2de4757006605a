// SPDX-License-Identifier: GPL-2.0
// netlink_abuse [SEED] - malformed, impossible and unprivileged requests to the family qgpu on card
// 0. Each must get its named errno, a sentence, and where there is one the guilty attribute, and
// must leave generation and settings as they were. Then random mutations of good requests: every
// one is answered, and the generation grows by exactly those that were granted. Prints TAP.
#include <sys/wait.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <random>

#include "genl.hpp"

namespace {

using genl::Answer;
using genl::Bytes;
using genl::Message;

int tap_count = 0, tap_failed = 0;

void tap(bool good, const std::string &name) {
  std::cout << (good ? "ok " : "not ok ") << ++tap_count << " - " << name << std::endl;
  tap_failed += !good;
}

constexpr int kNone = -1;

// Everything that a refused request must leave alone.
std::string state(genl::Socket &socket) {
  std::string out;
  for (std::uint8_t cmd : {QGPU_CMD_CARD_GET, QGPU_CMD_TENANT_GET}) {
    Message message(cmd, NLM_F_DUMP); /* of all cards */
    const Answer answer = socket.call(message);
    for (const Bytes &reply : answer.replies) {
      auto top = genl::byType(reply);
      auto card = genl::byType(top[QGPU_A_CARD]);
      auto tenant = genl::byType(top[QGPU_A_TENANT]);
      for (int type : {QGPU_A_CARD_GENERATION, QGPU_A_CARD_POLICY, QGPU_A_CARD_TENANTS})
        if (card.count(type)) out.append(card[type].begin(), card[type].end());
      for (int type = QGPU_A_TENANT_ID; type <= QGPU_A_TENANT_CGROUPS; type++)
        if (tenant.count(type)) out.append(tenant[type].begin(), tenant[type].end());
    }
  }
  return out;
}

Answer dump(genl::Socket &socket, std::uint8_t cmd) {
  Message message(cmd, NLM_F_DUMP);
  message.put32(QGPU_A_CARD_INDEX, 0);
  return socket.call(message);
}

std::uint64_t generation(genl::Socket &socket) {
  Message message(QGPU_CMD_CARD_GET);
  message.put32(QGPU_A_CARD_INDEX, 0);
  const Answer answer = socket.call(message);
  if (answer.replies.empty()) return 0;
  auto top = genl::byType(answer.replies[0]);
  return genl::number(genl::byType(top[QGPU_A_CARD])[QGPU_A_CARD_GENERATION]);
}

// A PLAN_SET for card 0 at the present generation; @fill puts the rest into the plan.
Message plan(genl::Socket &socket, const std::function<void(Message &)> &fill) {
  Message message(QGPU_CMD_PLAN_SET);
  message.put32(QGPU_A_CARD_INDEX, 0);
  const std::size_t nest = message.open(QGPU_A_PLAN);
  message.put64(QGPU_A_PLAN_GENERATION, generation(socket));
  fill(message);
  message.close(nest);
  return message;
}

void tenant(
    Message &message, const std::string &name,
    const std::function<void(Message &)> &fill = [](Message &) {}) {
  const std::size_t nest = message.open(QGPU_A_PLAN_TENANT);
  message.putString(QGPU_A_TENANT_NAME, name);
  fill(message);
  message.close(nest);
}

Message tenantPlan(genl::Socket &socket, const std::string &name,
                   const std::function<void(Message &)> &fill) {
  return plan(socket, [&](Message &message) { tenant(message, name, fill); });
}

Message bindTo(const std::string &name, const std::function<void(Message &)> &fill) {
  Message message(QGPU_CMD_BIND);
  message.put32(QGPU_A_CARD_INDEX, 0);
  const std::size_t nest = message.open(QGPU_A_BIND);
  message.putString(QGPU_A_BIND_TENANT_NAME, name);
  fill(message);
  message.close(nest);
  return message;
}

std::string said(const Answer &answer) {
  return std::string(answer.error ? strerrorname_np(answer.error) : "granted") + " \"" +
         answer.sentence + "\" offset " + std::to_string(answer.offset) + " missing " +
         std::to_string(answer.missing);
}

// @guilty: type of the attribute that is blamed, kNone = not looked at. @sentence: what is said of
// it, "" = anything.
void refused(genl::Socket &socket, const std::string &name, const Message &message, int error,
             int guilty = kNone, const std::string &sentence = "") {
  const std::string before = state(socket);
  const Answer answer = socket.call(message);
  int blamed = answer.missing;

  if (answer.offset >= 0 && answer.offset + NLA_HDRLEN <= static_cast<long>(message.bytes.size())) {
    std::uint16_t type;
    std::memcpy(&type, &message.bytes[static_cast<std::size_t>(answer.offset) + 2], sizeof(type));
    blamed = type & NLA_TYPE_MASK;
  }
  const bool good = answer.error == error && !answer.sentence.empty() && answer.replies.empty() &&
                    (guilty == kNone || blamed == guilty) &&
                    (sentence.empty() || answer.sentence == sentence) && state(socket) == before;
  if (!good) std::cout << "# got " << said(answer) << ", blamed " << blamed << '\n';
  tap(good, std::string(strerrorname_np(error)) + ": " + name);
}

void refuseMalformed(genl::Socket &s) {
  Message message(QGPU_CMD_PLAN_SET);

  refused(s, "a plan for no card", message, EINVAL, QGPU_A_CARD_INDEX);
  message.put32(QGPU_A_CARD_INDEX, 0);
  refused(s, "no plan", message, EINVAL, QGPU_A_PLAN);
  message.close(message.open(QGPU_A_PLAN));
  refused(s, "a plan without a generation", message, EINVAL, QGPU_A_PLAN_GENERATION);

  for (std::size_t length : {0u, 1u, 3u, 5u, 8u}) {
    Message wrong(QGPU_CMD_PLAN_SET);
    const std::uint64_t zero = 0;
    wrong.put(QGPU_A_CARD_INDEX, &zero, length);
    refused(s, "a card number of " + std::to_string(length) + " bytes", wrong, EINVAL,
            QGPU_A_CARD_INDEX);
  }
  message = plan(s, [](Message &m) { m.put32(77, 1); });
  refused(s, "an unknown attribute of a plan", message, EINVAL, 77);
  message = plan(s, [](Message &) {});
  message.put32(99, 1);
  refused(s, "an unknown attribute of a message", message, EINVAL, 99);
  message = plan(s, [](Message &) {});
  message.close(message.open(QGPU_A_STATS));
  refused(s, "an attribute of another command", message, EINVAL, QGPU_A_STATS);
  refused(s, "an unknown attribute of a tenant",
          tenantPlan(s, "x", [](Message &m) { m.put32(55, 1); }), EINVAL, 55);
  refused(s, "an unknown flag of a plan",
          plan(s, [](Message &m) { m.put32(QGPU_A_PLAN_FLAGS, 4); }), EINVAL, QGPU_A_PLAN_FLAGS);
  refused(s, "an unknown flag of a tenant",
          tenantPlan(s, "x", [](Message &m) { m.put32(QGPU_A_TENANT_FLAGS, 8); }), EINVAL,
          QGPU_A_TENANT_FLAGS);
  for (int type :
       {QGPU_A_TENANT_ID, QGPU_A_TENANT_SHARE_PPM, QGPU_A_TENANT_SLICE_NS, QGPU_A_TENANT_WINDOW_NS,
        QGPU_A_TENANT_AWAKE, QGPU_A_TENANT_TSGS, QGPU_A_TENANT_PLACE})
    refused(s, "a read-only attribute, " + std::to_string(type),
            tenantPlan(s, "x", [&](Message &m) { m.put32(static_cast<std::uint16_t>(type), 1); }),
            EINVAL, type, "this attribute is read only");
  refused(s, "a weight of 8 bytes",
          tenantPlan(s, "x", [](Message &m) { m.put64(QGPU_A_TENANT_WEIGHT, 1); }), EINVAL,
          QGPU_A_TENANT_WEIGHT);
  refused(s, "a weight given twice",
          tenantPlan(s, "x",
                     [](Message &m) {
                       m.put32(QGPU_A_TENANT_WEIGHT, 1);
                       m.put32(QGPU_A_TENANT_WEIGHT, 2);
                     }),
          EINVAL, QGPU_A_TENANT_WEIGHT);
  refused(s, "a process given twice",
          bindTo("a",
                 [](Message &m) {
                   m.put32(QGPU_A_BIND_PID, 1);
                   m.put32(QGPU_A_BIND_PID, 2);
                 }),
          EINVAL, QGPU_A_BIND_PID);
  refused(s, "a generation given twice",
          plan(s, [](Message &m) { m.put64(QGPU_A_PLAN_GENERATION, 1); }), EINVAL,
          QGPU_A_PLAN_GENERATION);

  message = plan(s, [](Message &m) { tenant(m, "x"); });
  message.attr(NLMSG_HDRLEN + GENL_HDRLEN + 8).nla_type &= NLA_TYPE_MASK;
  refused(s, "a nest that does not say so", message, EINVAL, QGPU_A_PLAN);
  message = plan(s, [](Message &m) { tenant(m, "x"); });
  message.bytes.resize(message.bytes.size() - 4);
  refused(s, "a message cut short", message, EINVAL);
  message = plan(s, [](Message &m) { tenant(m, "x"); });
  message.attr(NLMSG_HDRLEN + GENL_HDRLEN + 8).nla_len -= 4;
  refused(s, "a nest that ends inside an attribute", message, EINVAL);
  message = plan(s, [](Message &m) { m.attr(m.put32(QGPU_A_PLAN_POLICY, 3)).nla_len = 2; });
  refused(s, "an attribute shorter than its head", message, EINVAL);
  message = plan(s, [](Message &m) { m.attr(m.put32(QGPU_A_PLAN_POLICY, 3)).nla_len = 60000; });
  refused(s, "an attribute longer than its message", message, EINVAL);
  message = plan(s, [](Message &) {});
  message.bytes.insert(message.bytes.end(), {1, 2, 3});
  refused(s, "bytes after the last attribute", message, EINVAL);

  for (const std::string &name :
       {std::string(), std::string("a b"), std::string("a/b"), std::string("\xc3\xa4"),
        std::string("a\n"), std::string("."), std::string(".."), std::string("nobody")}) {
    refused(s, "the name \"" + (name == "a\n" ? "a\\n" : name) + "\"",
            tenantPlan(s, name, [](Message &) {}), EINVAL, QGPU_A_TENANT_NAME);
    refused(s, "a bind to it", bindTo(name, [](Message &m) { m.put64(QGPU_A_BIND_CGROUP_ID, 1); }),
            EINVAL, QGPU_A_BIND_TENANT_NAME);
  }
  refused(s, "a name of 64 characters", tenantPlan(s, std::string(64, 'x'), [](Message &) {}),
          EINVAL, QGPU_A_TENANT_NAME);
  refused(s, "a name without its final 0",
          plan(s,
               [](Message &m) {
                 const std::size_t nest = m.open(QGPU_A_PLAN_TENANT);
                 m.put(QGPU_A_TENANT_NAME, "abcd", 4);
                 m.close(nest);
               }),
          EINVAL, QGPU_A_TENANT_NAME);
  refused(s, "a tenant without a name",
          plan(s,
               [](Message &m) {
                 const std::size_t nest = m.open(QGPU_A_PLAN_TENANT);
                 m.put32(QGPU_A_TENANT_WEIGHT, 1);
                 m.close(nest);
               }),
          EINVAL, QGPU_A_TENANT_NAME);
  refused(s, "a tenant named twice",
          plan(s,
               [](Message &m) {
                 tenant(m, "x");
                 tenant(m, "y");
                 tenant(m, "x");
               }),
          EINVAL, QGPU_A_TENANT_NAME);
  refused(s, "settings for a tenant that is removed",
          tenantPlan(s, "a",
                     [](Message &m) {
                       m.put32(QGPU_A_TENANT_FLAGS, QGPU_TENANT_REMOVE);
                       m.put32(QGPU_A_TENANT_WEIGHT, 7);
                     }),
          EINVAL, QGPU_A_TENANT_FLAGS);
  refused(s, "removing \"default\"",
          tenantPlan(s, "default",
                     [](Message &m) { m.put32(QGPU_A_TENANT_FLAGS, QGPU_TENANT_REMOVE); }),
          EINVAL, QGPU_A_TENANT_NAME);
  const std::uint64_t ids[66] = {5};
  refused(s, "a list of cgroups of 12 bytes",
          tenantPlan(s, "x", [&](Message &m) { m.put(QGPU_A_TENANT_CGROUPS, ids, 12); }), EINVAL,
          QGPU_A_TENANT_CGROUPS);
  refused(s, "the cgroup 0",
          tenantPlan(s, "x", [&](Message &m) { m.put(QGPU_A_TENANT_CGROUPS, ids, 16); }), EINVAL,
          QGPU_A_TENANT_CGROUPS);
  refused(s, "a cgroup that is another tenant's",
          tenantPlan(s, "x",
                     [](Message &m) {
                       const std::uint64_t id = 4242;
                       m.put(QGPU_A_TENANT_CGROUPS, &id, 8);
                     }),
          EINVAL, QGPU_A_TENANT_CGROUPS);
}

void refuseNumbers(genl::Socket &s) {
  struct Row {
    const char *name;
    int type;
    std::uint32_t value;
    int error;
  };
  for (const Row &row :
       {Row{"weight 0", QGPU_A_TENANT_WEIGHT, 0, ERANGE},
        Row{"weight 10001", QGPU_A_TENANT_WEIGHT, 10001, ERANGE},
        Row{"weight 4294967295", QGPU_A_TENANT_WEIGHT, ~0u, ERANGE},
        Row{"guarantee 1000001", QGPU_A_TENANT_GUARANTEE_PPM, 1000001, ERANGE},
        Row{"ceiling 0", QGPU_A_TENANT_CEILING_PPM, 0, ERANGE},
        Row{"ceiling 1000001", QGPU_A_TENANT_CEILING_PPM, 1000001, ERANGE},
        Row{"class 3", QGPU_A_TENANT_CLASS, 3, ERANGE},
        Row{"guarantee 400001 beside 600000", QGPU_A_TENANT_GUARANTEE_PPM, 400001, ENOSPC}})
    refused(
        s, row.name,
        tenantPlan(s, "x",
                   [&](Message &m) { m.put32(static_cast<std::uint16_t>(row.type), row.value); }),
        row.error, row.type);
  struct LongRow {
    const char *name;
    int type;
    std::uint64_t value;
    int error;
  };
  for (const LongRow &row :
       {LongRow{"a wait of 1 ns", QGPU_A_TENANT_WAKE_NS, 1, ENOSPC},
        LongRow{"a wait of 11 s", QGPU_A_TENANT_WAKE_NS, 11'000'000'000, ERANGE},
        LongRow{"a hang timeout of 2^64 - 1 ns", QGPU_A_TENANT_HANG_NS, ~std::uint64_t{0}, ERANGE},
        LongRow{"a memory cap, which is not enforced", QGPU_A_TENANT_MEMORY_BYTES, 1 << 30,
                EOPNOTSUPP}})
    refused(
        s, row.name,
        tenantPlan(s, "x",
                   [&](Message &m) { m.put64(static_cast<std::uint16_t>(row.type), row.value); }),
        row.error, row.type);
  refused(s, "policy 4", plan(s, [](Message &m) { m.put32(QGPU_A_PLAN_POLICY, 4); }), ERANGE,
          QGPU_A_PLAN_POLICY);
  refused(s, "a cycle of 1 ns", plan(s, [](Message &m) { m.put64(QGPU_A_PLAN_CYCLE_NS, 1); }),
          ERANGE, QGPU_A_PLAN_CYCLE_NS);
  refused(s, "65 cgroups",
          tenantPlan(s, "x",
                     [](Message &m) {
                       std::vector<std::uint64_t> ids(65);
                       for (std::size_t i = 0; i < ids.size(); i++) ids[i] = i + 1;
                       m.put(QGPU_A_TENANT_CGROUPS, ids.data(), ids.size() * 8);
                     }),
          ENOSPC, QGPU_A_TENANT_CGROUPS);
  refused(s, "1,100 tenants",
          plan(s,
               [](Message &m) {
                 for (int i = 0; i < 1100; i++) tenant(m, "t" + std::to_string(i));
               }),
          ENOSPC);
  refused(s, "one bad tenant among 500",
          plan(s,
               [](Message &m) {
                 for (int i = 0; i < 500; i++)
                   tenant(m, "t" + std::to_string(i), [&](Message &inner) {
                     inner.put32(QGPU_A_TENANT_WEIGHT, i == 499 ? 0 : 5);
                   });
               }),
          ERANGE, QGPU_A_TENANT_WEIGHT);
}

void refuseTheUnknown(genl::Socket &s) {
  Message message(QGPU_CMD_PLAN_SET);
  message.put32(QGPU_A_CARD_INDEX, 7);
  refused(s, "a plan for card 7", message, ENODEV, QGPU_A_CARD_INDEX);
  message = Message(QGPU_CMD_CARD_GET);
  message.put32(QGPU_A_CARD_INDEX, 7);
  refused(s, "asking for card 7", message, ENODEV, QGPU_A_CARD_INDEX);
  refused(s, "asking for no card", Message(QGPU_CMD_CARD_GET), EINVAL, QGPU_A_CARD_INDEX);
  for (std::uint8_t cmd :
       {QGPU_CMD_CARD_GET, QGPU_CMD_TENANT_GET, QGPU_CMD_TSG_GET, QGPU_CMD_STATS_GET}) {
    message = Message(cmd, NLM_F_DUMP);
    message.put32(QGPU_A_CARD_INDEX, 7);
    refused(s, "dump " + std::to_string(cmd) + " of card 7", message, ENODEV, QGPU_A_CARD_INDEX);
    message = Message(cmd, NLM_F_DUMP);
    message.put32(88, 7);
    refused(s, "dump " + std::to_string(cmd) + " with an unknown attribute", message, EINVAL, 88);
  }
  message = plan(s, [](Message &m) { tenant(m, "x"); });
  const std::uint64_t stale = generation(s) - 1;
  std::memcpy(&message.bytes[NLMSG_HDRLEN + GENL_HDRLEN + 8 + 4 + 4], &stale, 8);
  refused(s, "a stale generation", message, ESTALE, QGPU_A_PLAN_GENERATION);
  refused(s, "removing a tenant that is not there",
          tenantPlan(s, "x", [](Message &m) { m.put32(QGPU_A_TENANT_FLAGS, QGPU_TENANT_REMOVE); }),
          ENOENT, QGPU_A_TENANT_NAME);
  refused(
      s, "creating a tenant that is there",
      tenantPlan(s, "a", [](Message &m) { m.put32(QGPU_A_TENANT_FLAGS, QGPU_TENANT_CREATE_ONLY); }),
      EEXIST, QGPU_A_TENANT_NAME);

  refused(s, "binding to a tenant that is not there",
          bindTo("x", [](Message &m) { m.put32(QGPU_A_BIND_PID, 1); }), ENOENT,
          QGPU_A_BIND_TENANT_NAME);
  refused(s, "binding a process that is not there",
          bindTo("a", [](Message &m) { m.put32(QGPU_A_BIND_PID, 4194303); }), ENOENT,
          QGPU_A_BIND_PID);
  refused(s, "binding process 4294967295",
          bindTo("a", [](Message &m) { m.put32(QGPU_A_BIND_PID, ~0u); }), ENOENT, QGPU_A_BIND_PID);
  refused(s, "binding a TSG that is not there",
          bindTo("a", [](Message &m) { m.put64(QGPU_A_BIND_TSG_SERIAL, 1ull << 40); }), ENOENT,
          QGPU_A_BIND_TSG_SERIAL);
  refused(s, "binding the cgroup 0",
          bindTo("a", [](Message &m) { m.put64(QGPU_A_BIND_CGROUP_ID, 0); }), EINVAL,
          QGPU_A_BIND_CGROUP_ID);
  refused(s, "binding nothing", bindTo("a", [](Message &) {}), EINVAL, QGPU_A_BIND);
  refused(s, "binding two things at once",
          bindTo("a",
                 [](Message &m) {
                   m.put32(QGPU_A_BIND_PID, 1);
                   m.put64(QGPU_A_BIND_CGROUP_ID, 5);
                 }),
          EINVAL, QGPU_A_BIND);
}

// A process without privileges, on a socket of its own.
void refuseTheUnprivileged(genl::Socket &s) {
  const Message set = plan(s, [](Message &m) { tenant(m, "x"); });
  const Message bind = bindTo("a", [](Message &m) { m.put32(QGPU_A_BIND_PID, 1); });
  const std::string before = state(s);

  std::cout << std::flush;
  const pid_t child = fork();
  if (!child) {
    if (setgid(65534) || setuid(65534)) _exit(9);
    genl::Socket own;
    int bad = 0;
    for (const Message &message : {set, bind}) {
      const Answer answer = own.call(message);
      bad += answer.error != EPERM || answer.sentence.empty();
    }
    for (std::uint8_t cmd :
         {QGPU_CMD_CARD_GET, QGPU_CMD_TENANT_GET, QGPU_CMD_TSG_GET, QGPU_CMD_STATS_GET}) {
      const Answer answer = own.call(Message(cmd, NLM_F_DUMP));
      bad += answer.error != 0 || (cmd != QGPU_CMD_TSG_GET && answer.replies.empty());
    }
    _exit(bad);
  }
  int status = 0;
  waitpid(child, &status, 0);
  tap(WIFEXITED(status) && WEXITSTATUS(status) == 0 && state(s) == before,
      "EPERM: uid 65534 may read everything and change nothing");
}

void grant(genl::Socket &s) {
  const std::string before = state(s);
  Answer answer = s.call(plan(s, [](Message &m) {
    m.put32(QGPU_A_PLAN_FLAGS, QGPU_PLAN_DRY_RUN);
    tenant(m, "x", [](Message &inner) { inner.put32(QGPU_A_TENANT_WEIGHT, 77); });
  }));
  tap(!answer.error && answer.replies.size() == 1 && state(s) == before,
      "a dry run is answered and changes nothing");

  // 1,022 tenants more: with "default", "a" and "b" one too many; without "b" just enough.
  auto many = [&](int count, std::size_t name_length) {
    Message message(QGPU_CMD_PLAN_SET);
    message.put32(QGPU_A_CARD_INDEX, 0);
    for (int i = 0; i < count;) {
      const std::size_t nest = message.open(QGPU_A_PLAN);
      if (!i) {
        message.put64(QGPU_A_PLAN_GENERATION, generation(s));
        message.put32(QGPU_A_PLAN_FLAGS, QGPU_PLAN_REPLACE);
      }
      for (const int end = std::min(i + 300, count); i < end; i++) {
        std::string name = "many-" + std::to_string(i);
        name.resize(std::max(name.size(), name_length), 'x');
        tenant(message, name, [](Message &inner) {
          inner.put32(QGPU_A_TENANT_WEIGHT, 3);
          inner.put32(QGPU_A_TENANT_GUARANTEE_PPM, 100);
        });
      }
      message.close(nest);
    }
    return message;
  };
  answer = s.call(many(1023, 63));
  std::size_t told = 0;
  for (const Bytes &reply : answer.replies)
    for (auto &[type, value] : genl::attributes(reply))
      if (type == QGPU_A_PLAN)
        for (auto &[inner, body] : genl::attributes(value)) told += inner == QGPU_A_PLAN_TENANT;
  if (answer.error) std::cout << "# got " << said(answer) << '\n';
  tap(!answer.error && told == 1023,
      "1,023 tenants with names of 63 letters are set by one message");
  answer = dump(s, QGPU_CMD_TENANT_GET);
  tap(!answer.error && answer.replies.size() == 1024, "all of them and \"default\" are listed");
  answer = dump(s, QGPU_CMD_STATS_GET);
  bool one_time = true;
  std::uint64_t time_ns = 0;
  for (const Bytes &reply : answer.replies) {
    auto top = genl::byType(reply);
    const std::uint64_t this_ns =
        genl::number(genl::byType(top[QGPU_A_STATS])[QGPU_A_STATS_TIME_NS]);
    one_time &= !time_ns || this_ns == time_ns;
    time_ns = this_ns;
  }
  tap(!answer.error && answer.replies.size() == 1026 && one_time,
      "their counters are of one instant");
  refused(s, "one more", tenantPlan(s, "more", [](Message &) {}), ENOSPC);
  answer = s.call(plan(s, [](Message &m) { m.put32(QGPU_A_PLAN_FLAGS, QGPU_PLAN_REPLACE); }));
  tap(!answer.error && dump(s, QGPU_CMD_TENANT_GET).replies.size() == 1,
      "a plan that names nobody leaves \"default\"");
}

void fuzz(genl::Socket &s, std::uint64_t seed) {
  std::cout << "# seed " << seed << '\n';
  std::mt19937_64 random(seed);
  auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  std::map<int, int> outcomes;
  std::uint64_t expected = generation(s);
  bool answered = true, counted = true;

  for (int round = 0; round < 4000 && answered; round++) {
    Message message =
        round % 4 == 3
            ? bindTo("a", [&](Message &m) { m.put64(QGPU_A_BIND_CGROUP_ID, below(100)); })
            : plan(s, [&](Message &m) {
                m.put32(QGPU_A_PLAN_POLICY, below(2) ? 3 : 0);
                for (std::size_t i = 0; i < 1 + below(3); i++)
                  tenant(m, std::string(1, static_cast<char>('a' + below(6))), [&](Message &inner) {
                    const std::uint64_t ids[2] = {below(50), 50 + below(50)};
                    inner.put32(QGPU_A_TENANT_FLAGS, static_cast<std::uint32_t>(below(3)));
                    inner.put32(QGPU_A_TENANT_WEIGHT, static_cast<std::uint32_t>(below(12000)));
                    inner.put32(QGPU_A_TENANT_GUARANTEE_PPM,
                                static_cast<std::uint32_t>(below(400000)));
                    inner.put(QGPU_A_TENANT_CGROUPS, ids, 8 * below(3));
                  });
              });
    const std::size_t start = NLMSG_HDRLEN + GENL_HDRLEN;
    for (std::size_t i = 0; i < below(4); i++) {
      const std::size_t at = start + below(message.bytes.size() - start);
      switch (below(5)) {
        case 0:
          message.bytes[at] ^= static_cast<std::uint8_t>(1u << below(8));
          break;
        case 1:
          message.bytes[at] = static_cast<std::uint8_t>(random());
          break;
        case 2:
          message.bytes.resize(start + below(message.bytes.size() - start) + 1);
          break;
        case 3:
          message.bytes.insert(message.bytes.end(), 1 + below(9), 0xff);
          break;
        case 4:
          message.attr(at & ~std::size_t{3}).nla_len = static_cast<std::uint16_t>(random());
          break;
      }
      message.bytes.resize(std::max(message.bytes.size(), start + 8));
    }
    const Answer answer = s.call(message);
    outcomes[answer.error]++;
    answered = answer.error <= 0 || !answer.sentence.empty();
    if (!answered) std::cout << "# round " << round << ": " << said(answer) << '\n';
    const std::uint64_t now = generation(s);
    if (answer.error)
      counted &= now == expected;
    else
      counted &= now == expected || now == expected + 1; /* + 0: a dry run */
    expected = now;
  }
  std::cout << "#";
  for (auto &[error, count] : outcomes)
    std::cout << ' ' << (error ? strerrorname_np(error) : "granted") << ' ' << count;
  std::cout << '\n';
  tap(answered, "4,000 mutated requests: each refusal has a sentence");
  tap(counted, "no refused one changes the generation");
  tap(outcomes[0] > 200 && outcomes[EINVAL] > 200, "enough of them are good and bad");
}

}  // namespace

int main(int argc, char **argv) {
  genl::Socket socket;
  if (!socket.found()) {
    std::cout << "not ok 1 - the family is there\n";
    return 1;
  }
  const Answer answer = socket.call(plan(socket, [](Message &m) {
    m.put32(QGPU_A_PLAN_FLAGS, QGPU_PLAN_REPLACE);
    m.put32(QGPU_A_PLAN_POLICY, QGPU_POLICY_BURST_SHARE);
    tenant(m, "a", [](Message &inner) {
      const std::uint64_t id = 4242;
      inner.put32(QGPU_A_TENANT_GUARANTEE_PPM, 600000);
      inner.put(QGPU_A_TENANT_CGROUPS, &id, 8);
    });
    tenant(m, "b", [](Message &inner) { inner.put32(QGPU_A_TENANT_WEIGHT, 200); });
  }));
  tap(!answer.error && answer.replies.size() == 1, "a plan with two tenants is set");
  refuseMalformed(socket);
  refuseNumbers(socket);
  refuseTheUnknown(socket);
  refuseTheUnprivileged(socket);
  grant(socket);
  fuzz(socket, argc > 1 ? std::strtoull(argv[1], nullptr, 0) : std::random_device{}());
  return tap_failed ? 1 : 0;
}
