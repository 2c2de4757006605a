// SPDX-License-Identifier: GPL-2.0
#include "server.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include "packet_socket.hpp"

namespace qgpu::exec {
namespace {

void closeAll(std::vector<int> &fds) {
  for (const int fd : fds) close(fd);
  fds.clear();
}

}  // namespace

Server::~Server() { drop(); }

void Server::drop() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
  greeted_ = false;
}

std::vector<pollfd> Server::polls() const {
  std::vector<pollfd> out{{listen_fd_, POLLIN, 0}};
  if (fd_ >= 0) out.push_back({fd_, POLLIN, 0});
  return out;
}

void Server::handle(const std::vector<pollfd> &ready) {
  for (const pollfd &p : ready)
    if (p.revents && p.fd == fd_) read();
  for (const pollfd &p : ready)
    if (p.revents && p.fd == listen_fd_) accept();
}

void Server::accept() {
  const int fd = acceptFrom(listen_fd_);
  if (fd < 0) return;
  drop();
  fd_ = fd;
}

void Server::send(const void *packet, size_t bytes) {
  // A reader that lets its queue fill up has to connect again and ask.
  if (fd_ >= 0 && ::send(fd_, packet, bytes, MSG_NOSIGNAL) < 0) drop();
}

void Server::sendEvents() {
  if (fd_ < 0 || !greeted_) return;
  for (const Event &event : executor_.takeEvents()) send(&event, sizeof(event));
}

void Server::read() {
  Packet packet = receivePacket(fd_);
  if (packet.state == Packet::kEnded) drop();
  if (packet.state == Packet::kWhole) answer(packet.bytes, packet.fds);
  closeAll(packet.fds);
}

// What cannot be understood ends the connection.
void Server::answer(std::span<const std::byte> packet, std::vector<int> &fds) {
  const auto header = decodeHeader(packet);
  if (!header || (!greeted_ && header->type != Type::kHelloRequest)) return drop();
  switch (header->type) {
    case Type::kHelloRequest: {
      HelloReply reply = executor_.hello();
      reply.header.serial = header->serial;
      greeted_ = true;
      return send(&reply, sizeof(reply));
    }
    case Type::kPlanRequest:
      return answerPlan(packet);
    case Type::kProcessAdd:
    case Type::kProcessGone:
      return answerProcess(packet, fds);
    case Type::kStatsRequest: {
      Stats stats = executor_.stats();
      stats.head.header.serial = header->serial;
      const auto reply = encode(std::move(stats));
      return send(reply.data(), reply.size());
    }
    case Type::kLogRequest: {
      const auto request = decodeLogRequest(packet);
      if (!request) return drop();
      Log log = executor_.log(request->from_serial);
      log.head.header.serial = header->serial;
      const auto reply = encode(std::move(log));
      return send(reply.data(), reply.size());
    }
    case Type::kHelloReply:
    case Type::kPlanReply:
    case Type::kProcessReply:
    case Type::kStatsReply:
    case Type::kEvent:
    case Type::kMeasureRequest:
    case Type::kMeasureReply:
    case Type::kSpansRequest:
    case Type::kConstantsRequest:
    case Type::kConstantsReply:
    case Type::kLogReply:
      return drop();
  }
}

void Server::answerPlan(std::span<const std::byte> packet) {
  const auto plan = decodePlan(packet);
  if (!plan) return drop();
  uint32_t guilty = kNoTenant;
  const auto done = executor_.setPlan(*plan, guilty);
  PlanReply reply{};
  reply.header = makeHeader(Type::kPlanReply, sizeof(reply), plan->head.header.serial);
  reply.status = makeStatus(done ? nullptr : &done.error(), guilty);
  reply.generation = executor_.hello().generation;
  send(&reply, sizeof(reply));
}

void Server::answerProcess(std::span<const std::byte> packet, std::vector<int> &fds) {
  const auto request = decodeProcess(packet);
  const bool add = request && request->header.type == Type::kProcessAdd;
  if (!request || fds.size() != (add ? 1u : 0u)) return drop();
  Result<void> done;
  if (add) {
    const int pidfd = fds[0];
    fds.clear();
    done = executor_.addProcess(request->pid, pidfd, request->tenant_id);
  } else {
    done = executor_.dropProcess(request->pid);
  }
  ProcessReply reply{};
  reply.header = makeHeader(Type::kProcessReply, sizeof(reply), request->header.serial);
  reply.status = makeStatus(done ? nullptr : &done.error(), request->tenant_id);
  send(&reply, sizeof(reply));
}

}  // namespace qgpu::exec
