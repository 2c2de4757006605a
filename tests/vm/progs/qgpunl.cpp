// SPDX-License-Identifier: GPL-2.0
// qgpunl - the family's commands for shell tests: one line an object, numbers in order. A refusal
// is "ERRNO sentence" on stderr and exit status 1; an interrupted dump is repeated.
//
//   qgpunl cards                     index state policy generation tenants tsgs cycle_ns uuid name
//   qgpunl tenants CARD              id name weight guarantee ceiling cgroups share slice window
//                                    awake tsgs
//   qgpunl tsgs CARD                 serial id tenant pid channels slice
//   qgpunl stats CARD                tenant run_ns err_ns source wait_ns windows preempts overruns
//                                    visits;
//                                    card: "card" switch_ns idle_ns submits preempts time_ns
//   qgpunl plan CARD GENERATION|- [dry] [replace] [timed] [policy=N] [cycle=NS]
//               [NAME[:weight=N][:guarantee=PPM][:ceiling=PPM][:cgroups=ID+ID][:remove]]...
//                                    timed: the request's nanoseconds follow the generation
//   qgpunl bind CARD TENANT pid=N|cgroup=ID|tsg=SERIAL
//   qgpunl during cards|tenants|tsgs CMD
//                                    runs CMD (by the shell) in the middle of a dump; 1 = the dump
//                                    said that it was interrupted, else 0
//   qgpunl hold N CMD                runs CMD while N dumps of counters are begun and not read
//   qgpunl events SECONDS            kind tenant tsg pid, as they come
#include <chrono>
#include <iostream>
#include <memory>
#include <sstream>

#include "genl.hpp"

namespace {

using genl::Answer;
using genl::Bytes;
using genl::Message;

std::vector<std::string> split(const std::string &from, char at) {
  std::vector<std::string> out;
  std::istringstream in(from);
  for (std::string part; std::getline(in, part, at);) out.push_back(part);
  return out;
}

Answer dump(genl::Socket &socket, std::uint8_t cmd, const char *card) {
  Answer answer;
  do {
    Message message(cmd, NLM_F_DUMP);
    if (card) message.put32(QGPU_A_CARD_INDEX, static_cast<std::uint32_t>(std::atoi(card)));
    answer = socket.call(message);
  } while (answer.interrupted);
  return answer;
}

int refused(const Answer &answer) {
  std::cerr << strerrorname_np(answer.error) << ' ' << answer.sentence << '\n';
  return 1;
}

// Lines of the numbers of @types in the nest @type of each reply; a string stays one.
int list(const Answer &answer, int nest, const std::vector<int> &types,
         const std::vector<int> &strings = {}) {
  for (const Bytes &reply : answer.replies) {
    auto top = genl::byType(reply);
    auto attrs = genl::byType(top[nest]);
    std::string line;
    if (nest == QGPU_A_CARD) line = std::to_string(genl::number(top[QGPU_A_CARD_INDEX])) + ' ';
    for (int type : types) {
      bool is_string = false;
      for (int string : strings) is_string |= string == type;
      if (is_string)
        line += genl::text(attrs[type]) + ' ';
      else if (nest == QGPU_A_TENANT && type == QGPU_A_TENANT_AWAKE)
        line += attrs.count(type) ? "1 " : "0 ";
      else if (nest == QGPU_A_TENANT && type == QGPU_A_TENANT_CGROUPS) {
        const Bytes &ids = attrs[type];
        std::string joined;
        for (std::size_t i = 0; i + 8 <= ids.size(); i += 8)
          joined += (i ? "+" : "") +
                    std::to_string(genl::number(Bytes(ids.begin() + static_cast<long>(i),
                                                      ids.begin() + static_cast<long>(i) + 8)));
        line += (joined.empty() ? "-" : joined) + ' ';
      } else
        line += std::to_string(genl::number(attrs[type])) + ' ';
    }
    line.pop_back();
    std::cout << line << '\n';
  }
  return answer.error ? refused(answer) : 0;
}

int listStats(const Answer &answer) {
  for (const Bytes &reply : answer.replies) {
    auto top = genl::byType(reply);
    auto attrs = genl::byType(top[QGPU_A_STATS]);
    auto value = [&](int type) { return genl::number(attrs[type]); };
    if (!attrs.count(QGPU_A_STATS_TENANT_ID))
      std::cout << "card " << value(QGPU_A_STATS_SWITCH_NS) << ' ' << value(QGPU_A_STATS_IDLE_NS)
                << ' ' << value(QGPU_A_STATS_SUBMITS) << ' ' << value(QGPU_A_STATS_PREEMPTS) << ' '
                << value(QGPU_A_STATS_TIME_NS) - value(QGPU_A_STATS_SINCE_NS) << '\n';
    else
      std::cout << value(QGPU_A_STATS_TENANT_ID) << ' ' << value(QGPU_A_STATS_RUN_NS) << ' '
                << value(QGPU_A_STATS_RUN_ERR_NS) << ' ' << value(QGPU_A_STATS_SOURCE) << ' '
                << value(QGPU_A_STATS_WAIT_NS) << ' ' << value(QGPU_A_STATS_WINDOWS) << ' '
                << value(QGPU_A_STATS_PREEMPTS) << ' ' << value(QGPU_A_STATS_OVERRUNS) << ' '
                << value(QGPU_A_STATS_VISITS) << '\n';
  }
  return answer.error ? refused(answer) : 0;
}

std::uint64_t generation(genl::Socket &socket, const char *card) {
  Message message(QGPU_CMD_CARD_GET);
  message.put32(QGPU_A_CARD_INDEX, static_cast<std::uint32_t>(std::atoi(card)));
  const Answer answer = socket.call(message);
  if (answer.replies.empty()) return 0;
  return genl::number(
      genl::byType(genl::byType(answer.replies[0])[QGPU_A_CARD])[QGPU_A_CARD_GENERATION]);
}

void putTenant(Message &message, const std::string &spec) {
  const auto parts = split(spec, ':');
  const std::size_t nest = message.open(QGPU_A_PLAN_TENANT);
  message.putString(QGPU_A_TENANT_NAME, parts[0]);
  for (std::size_t i = 1; i < parts.size(); i++) {
    const auto pair = split(parts[i], '=');
    const std::string &key = pair[0], value = pair.size() > 1 ? pair[1] : "";
    const auto number = std::strtoull(value.c_str(), nullptr, 0);
    if (key == "weight") message.put32(QGPU_A_TENANT_WEIGHT, static_cast<std::uint32_t>(number));
    if (key == "guarantee")
      message.put32(QGPU_A_TENANT_GUARANTEE_PPM, static_cast<std::uint32_t>(number));
    if (key == "ceiling")
      message.put32(QGPU_A_TENANT_CEILING_PPM, static_cast<std::uint32_t>(number));
    if (key == "remove") message.put32(QGPU_A_TENANT_FLAGS, QGPU_TENANT_REMOVE);
    if (key == "create") message.put32(QGPU_A_TENANT_FLAGS, QGPU_TENANT_CREATE_ONLY);
    if (key == "cgroups") {
      std::vector<std::uint64_t> ids;
      for (const std::string &id : split(value, '+'))
        ids.push_back(std::strtoull(id.c_str(), nullptr, 0));
      message.put(QGPU_A_TENANT_CGROUPS, ids.data(), ids.size() * 8);
    }
  }
  message.close(nest);
}

int plan(genl::Socket &socket, int argc, char **argv) {
  const std::string asked = argv[1];
  Message message(QGPU_CMD_PLAN_SET);
  message.put32(QGPU_A_CARD_INDEX, static_cast<std::uint32_t>(std::atoi(argv[0])));
  const std::size_t nest = message.open(QGPU_A_PLAN);
  message.put64(QGPU_A_PLAN_GENERATION,
                asked == "-" ? generation(socket, argv[0]) : std::strtoull(argv[1], nullptr, 0));
  std::uint32_t flags = 0;
  bool timed = false;
  for (int i = 2; i < argc; i++) {
    const std::string word = argv[i];
    if (word == "dry")
      flags |= QGPU_PLAN_DRY_RUN;
    else if (word == "timed")
      timed = true;
    else if (word == "replace")
      flags |= QGPU_PLAN_REPLACE;
    else if (word.starts_with("policy="))
      message.put32(QGPU_A_PLAN_POLICY, static_cast<std::uint32_t>(std::atoi(&argv[i][7])));
    else if (word.starts_with("cycle="))
      message.put64(QGPU_A_PLAN_CYCLE_NS, std::strtoull(&argv[i][6], nullptr, 0));
    else
      putTenant(message, word);
  }
  if (flags) message.put32(QGPU_A_PLAN_FLAGS, flags);
  message.close(nest);
  const auto begin = std::chrono::steady_clock::now();
  const Answer answer = socket.call(message);
  const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - begin;
  if (answer.error) return refused(answer);
  for (const Bytes &reply : answer.replies)
    for (auto &[type, value] : genl::attributes(reply))
      if (type == QGPU_A_PLAN)
        for (auto &[inner, body] : genl::attributes(value)) {
          if (inner == QGPU_A_PLAN_GENERATION) std::cout << genl::number(body) << '\n';
        }
  if (timed) std::cout << took.count() << '\n';
  return 0;
}

int bindTo(genl::Socket &socket, char **argv) {
  Message message(QGPU_CMD_BIND);
  message.put32(QGPU_A_CARD_INDEX, static_cast<std::uint32_t>(std::atoi(argv[0])));
  const std::size_t nest = message.open(QGPU_A_BIND);
  message.putString(QGPU_A_BIND_TENANT_NAME, argv[1]);
  const auto pair = split(argv[2], '=');
  const auto number = std::strtoull(pair.at(1).c_str(), nullptr, 0);
  if (pair[0] == "pid") message.put32(QGPU_A_BIND_PID, static_cast<std::uint32_t>(number));
  if (pair[0] == "cgroup") message.put64(QGPU_A_BIND_CGROUP_ID, number);
  if (pair[0] == "tsg") message.put64(QGPU_A_BIND_TSG_SERIAL, number);
  message.close(nest);
  const Answer answer = socket.call(message);
  return answer.error ? refused(answer) : 0;
}

int during(genl::Socket &socket, const std::string &what, const char *command) {
  socket.begin(Message(what == "cards"     ? QGPU_CMD_CARD_GET
                       : what == "tenants" ? QGPU_CMD_TENANT_GET
                                           : QGPU_CMD_TSG_GET,
                       NLM_F_DUMP));
  if (std::system(command)) return 1;
  std::cout << socket.collect().interrupted << '\n';
  return 0;
}

int hold(int count, const char *command) {
  std::vector<std::unique_ptr<genl::Socket>> sockets;
  for (int i = 0; i < count; i++) {
    sockets.push_back(std::make_unique<genl::Socket>());
    sockets.back()->begin(Message(QGPU_CMD_STATS_GET, NLM_F_DUMP));
  }
  return std::system(command) ? 1 : 0;
}

int events(genl::Socket &socket, int seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  socket.joinEvents();
  std::cout << "listening" << std::endl;
  while (std::chrono::steady_clock::now() < end) {
    std::vector<Bytes> got;
    socket.waitEvent(100, got);
    for (const Bytes &message : got) {
      auto top = genl::byType(message);
      auto attrs = genl::byType(top[QGPU_A_EVENT]);
      std::cout << genl::number(attrs[QGPU_A_EVENT_KIND]) << ' '
                << genl::number(attrs[QGPU_A_EVENT_TENANT_ID]) << ' '
                << genl::number(attrs[QGPU_A_EVENT_TSG_SERIAL]) << ' '
                << genl::number(attrs[QGPU_A_EVENT_PID]) << std::endl;
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char **argv) {
  genl::Socket socket;
  const std::string verb = argc > 1 ? argv[1] : "";
  const char *card = argc > 2 ? argv[2] : nullptr;

  if (!socket.found()) {
    std::cerr << "no family qgpu\n";
    return 2;
  }
  if (verb == "cards")
    return list(dump(socket, QGPU_CMD_CARD_GET, card), QGPU_A_CARD,
                {QGPU_A_CARD_STATE, QGPU_A_CARD_POLICY, QGPU_A_CARD_GENERATION, QGPU_A_CARD_TENANTS,
                 QGPU_A_CARD_TSGS, QGPU_A_CARD_CYCLE_NS, QGPU_A_CARD_UUID, QGPU_A_CARD_NAME},
                {QGPU_A_CARD_UUID, QGPU_A_CARD_NAME});
  if (verb == "tenants")
    return list(
        dump(socket, QGPU_CMD_TENANT_GET, card), QGPU_A_TENANT,
        {QGPU_A_TENANT_ID, QGPU_A_TENANT_NAME, QGPU_A_TENANT_WEIGHT, QGPU_A_TENANT_GUARANTEE_PPM,
         QGPU_A_TENANT_CEILING_PPM, QGPU_A_TENANT_CGROUPS, QGPU_A_TENANT_SHARE_PPM,
         QGPU_A_TENANT_SLICE_NS, QGPU_A_TENANT_WINDOW_NS, QGPU_A_TENANT_AWAKE, QGPU_A_TENANT_TSGS},
        {QGPU_A_TENANT_NAME});
  if (verb == "tsgs")
    return list(dump(socket, QGPU_CMD_TSG_GET, card), QGPU_A_TSG,
                {QGPU_A_TSG_SERIAL, QGPU_A_TSG_ID, QGPU_A_TSG_TENANT_ID, QGPU_A_TSG_PID,
                 QGPU_A_TSG_CHANNELS, QGPU_A_TSG_SLICE_NS});
  if (verb == "stats") return listStats(dump(socket, QGPU_CMD_STATS_GET, card));
  if (verb == "plan" && argc > 3) return plan(socket, argc - 2, argv + 2);
  if (verb == "bind" && argc > 4) return bindTo(socket, argv + 2);
  if (verb == "during" && argc > 3) return during(socket, argv[2], argv[3]);
  if (verb == "hold" && argc > 3) return hold(std::atoi(argv[2]), argv[3]);
  if (verb == "events" && argc > 2) return events(socket, std::atoi(argv[2]));
  std::cerr << "usage: see the head of qgpunl.cpp\n";
  return 2;
}
