// SPDX-License-Identifier: GPL-2.0
// An executor that keeps the contract of exec/protocol.hpp, in a thread of its own: RmCard waits
// for its answers. Records what it was told, and fails by name when told to.
#pragma once

#include <sys/poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "exec/protocol.hpp"
#include "unique_fd.hpp"

namespace qgpu::fakes {

class FakeExecutor {
 public:
  FakeExecutor(const std::string &run_dir, const std::string &uuid)
      : path_(exec::socketPath(run_dir, uuid)) {
    start();
  }
  ~FakeExecutor() { stop(); }

  void start() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path_.c_str());
    unlink(path_.c_str());
    listener_.reset(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (bind(listener_.get(), reinterpret_cast<sockaddr *>(&address), sizeof(address)) != 0 ||
        listen(listener_.get(), 4) != 0)
      std::abort();
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    stop_read_.reset(ends[0]);
    stop_write_.reset(ends[1]);
    thread_ = std::thread([this] { run(); });
  }
  // As when it is killed: connections end, the socket stays and refuses.
  void stop() {
    if (!thread_.joinable()) return;
    (void)!write(stop_write_.get(), "x", 1);
    thread_.join();
    peer_.reset();
    listener_.reset();
  }

  // Everything below under lock(), also by tests.
  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }
  struct Process {
    int32_t pid;
    uint32_t tenant_id;
    bool has_fd;
    bool gone;
  };
  std::vector<exec::Plan> plans;  // asked, dry runs and refused ones included
  std::vector<Process> processes;
  std::map<uint32_t, exec::TenantStats> tenants;  // what StatsReply says
  std::vector<exec::ObjectStats> objects;         // likewise
  uint64_t nobody_ns = 0, removed_ns = 0;         // likewise
  std::vector<exec::LogEntry> log;                // from serial 0 on
  exec::LogEntry log_ongoing{};                   // behind them
  uint64_t log_since_ns = 9;
  uint32_t refuse_log = 0;  // an errno
  uint64_t generation = 0;
  uint32_t card_state = QGPU_CARD_OK;
  exec::Status shortfall = exec::makeStatus(nullptr);  // why card_state is not OK
  std::optional<Error> refuse_plan, refuse_hello;
  exec::CardConstants constants{};      // what StatsReply says the card costs
  uint32_t source = QGPU_SOURCE_TRACE;  // of run times
  bool silent = false;                  // reads, does not answer
  std::vector<std::byte> send_instead;  // once, for the next request
  uint64_t time_ns = 1000;              // goes on with each StatsReply
  int connections = 0;

  void emit(const exec::Event &event) { send(bytesOf(event)); }
  // Answers what it kept silent about.
  void speak() {
    silent = false;
    for (const auto &packet : owed_) answer(packet, false);
    owed_.clear();
  }

 private:
  template <class T>
  static std::vector<std::byte> bytesOf(const T &message) {
    const auto *from = reinterpret_cast<const std::byte *>(&message);
    return {from, from + sizeof(message)};
  }

  void send(const std::vector<std::byte> &packet) {
    (void)!::send(peer_.get(), packet.data(), packet.size(), MSG_NOSIGNAL);
  }

  void run() {
    for (;;) {
      pollfd waits[3] = {
          {stop_read_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}, {peer_.get(), POLLIN, 0}};
      poll(waits, 3, -1);
      if (waits[0].revents) return;
      auto guard = lock();
      if (waits[1].revents) {
        peer_.reset(accept(listener_.get(), nullptr, nullptr));
        ++connections;
      } else if (waits[2].revents) {
        readPacket();
      }
    }
  }

  void readPacket() {
    std::vector<std::byte> packet(exec::kMaxPacket);
    iovec part{packet.data(), packet.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t bytes = recvmsg(peer_.get(), &message, MSG_CMSG_CLOEXEC);
    if (bytes <= 0) return peer_.reset();
    packet.resize(static_cast<size_t>(bytes));
    UniqueFd passed;
    if (cmsghdr *head = CMSG_FIRSTHDR(&message)) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(head), sizeof(fd));
      passed.reset(fd);
    }
    if (!send_instead.empty()) {
      send(send_instead);
      send_instead.clear();
    } else if (silent) {
      owed_.push_back(packet);
    } else {
      answer(packet, static_cast<bool>(passed));
    }
  }

  template <class Reply>
  Reply reply(exec::Type type, const exec::Header &request, const Error *error = nullptr) {
    Reply out{};
    out.header = exec::makeHeader(type, sizeof(out), request.serial);
    out.status = exec::makeStatus(error);
    return out;
  }

  void answer(const std::vector<std::byte> &packet, bool has_fd) {
    const exec::Header header = exec::decodeHeader(packet).value();
    switch (header.type) {
      case exec::Type::kHelloRequest: {
        const Error *error = refuse_hello ? &*refuse_hello : nullptr;
        auto hello = reply<exec::HelloReply>(exec::Type::kHelloReply, header, error);
        hello.generation = generation;
        hello.card_state = card_state;
        hello.switch_ns = 200'000;
        return send(bytesOf(hello));
      }
      case exec::Type::kPlanRequest: {
        plans.push_back(exec::decodePlan(packet).value());
        const Error *error = refuse_plan ? &*refuse_plan : nullptr;
        const exec::PlanRequest &head = plans.back().head;
        if (!error && !(head.flags & exec::kPlanDryRun)) generation = head.generation;
        auto out = reply<exec::PlanReply>(exec::Type::kPlanReply, header, error);
        out.generation = generation;
        return send(bytesOf(out));
      }
      case exec::Type::kProcessAdd:
      case exec::Type::kProcessGone: {
        const auto request = exec::decodeProcess(packet).value();
        processes.push_back(
            {request.pid, request.tenant_id, has_fd, header.type == exec::Type::kProcessGone});
        return send(bytesOf(reply<exec::ProcessReply>(exec::Type::kProcessReply, header)));
      }
      case exec::Type::kStatsRequest: {
        exec::Stats stats{};
        stats.head = reply<exec::StatsReply>(exec::Type::kStatsReply, header);
        stats.head.time_ns = time_ns += 1'000'000;
        stats.head.since_ns = 1;
        stats.head.generation = generation;
        stats.head.card_state = card_state;
        stats.head.status = shortfall;
        stats.head.constants = constants;
        stats.head.source = source;
        stats.head.nobody_ns = nobody_ns;
        stats.head.removed_ns = removed_ns;
        stats.objects = objects;
        for (const auto &[id, tenant] : tenants) stats.tenants.push_back(tenant);
        return send(exec::encode(std::move(stats)));
      }
      case exec::Type::kLogRequest: {
        const Error error{static_cast<int>(refuse_log), "there is no log", {}};
        exec::Log out{};
        out.head =
            reply<exec::LogReply>(exec::Type::kLogReply, header, refuse_log ? &error : nullptr);
        const uint64_t from = exec::decodeLogRequest(packet).value().from_serial;
        out.head.first_serial = std::min<uint64_t>(from, log.size());
        out.head.next_serial = log.size();
        out.head.since_ns = log_since_ns;
        out.entries.assign(log.begin() + static_cast<ptrdiff_t>(out.head.first_serial), log.end());
        out.entries.push_back(log_ongoing);
        out.entries.back().ongoing = 1;
        return send(exec::encode(std::move(out)));
      }
      default:
        std::abort();
    }
  }

  std::string path_;
  UniqueFd listener_, peer_, stop_read_, stop_write_;
  std::mutex mutex_;
  std::vector<std::vector<std::byte>> owed_;
  std::thread thread_;
};

}  // namespace qgpu::fakes
