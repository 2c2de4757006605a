// SPDX-License-Identifier: GPL-2.0
#include "server.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace qgpu::exec {
namespace {

constexpr size_t kDescriptorsMax = 4;

Error failed(const std::string &what, const std::string &path) {
  const int err = errno;
  return {err, what + " " + path + ": " + std::strerror(err), path};
}

Result<sockaddr_un> addressOf(const std::string &path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path))
    return Error{ENAMETOOLONG, "the socket's path is too long", path};
  std::memcpy(address.sun_path, path.c_str(), path.size());
  return address;
}

int newSocket() {
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int bytes = static_cast<int>(2 * kMaxPacket);
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
  return fd;
}

// Root, or who runs the executor.
bool trusted(int fd) {
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
         (peer.uid == 0 || peer.uid == geteuid());
}

void closeAll(std::vector<int> &fds) {
  for (const int fd : fds) close(fd);
  fds.clear();
}

}  // namespace

Result<int> listenAt(const std::string &path) {
  const auto address = addressOf(path);
  if (!address) return address.error();
  const int fd = newSocket();
  if (fd < 0) return failed("cannot make", path);
  unlink(path.c_str());
  const mode_t before = umask(0177);
  const int bound = bind(fd, reinterpret_cast<const sockaddr *>(&*address), sizeof(*address));
  umask(before);
  if (bound || listen(fd, 4)) {
    const Error error = failed("cannot listen at", path);
    close(fd);
    return error;
  }
  return fd;
}

Result<int> connectTo(const std::string &path) {
  const auto address = addressOf(path);
  if (!address) return address.error();
  const int fd = newSocket();
  if (fd < 0) return failed("cannot make", path);
  if (connect(fd, reinterpret_cast<const sockaddr *>(&*address), sizeof(*address))) {
    const Error error = failed("cannot reach the executor at", path);
    close(fd);
    return error;
  }
  return fd;
}

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
  const int fd = accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return;
  if (!trusted(fd)) {
    close(fd);
    return;
  }
  const int bytes = static_cast<int>(2 * kMaxPacket);
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
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
  std::vector<std::byte> packet(kMaxPacket);
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kDescriptorsMax)];
  iovec part{packet.data(), packet.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t n = recvmsg(fd_, &message, MSG_CMSG_CLOEXEC);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  std::vector<int> fds;
  for (cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&message) : nullptr; c; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    for (size_t i = 0; CMSG_LEN((i + 1) * sizeof(int)) <= c->cmsg_len; i++) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
      fds.push_back(fd);
    }
  }
  if (n <= 0 || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
    drop();
  else
    answer(std::span(packet).first(static_cast<size_t>(n)), fds);
  closeAll(fds);
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
    case Type::kHelloReply:
    case Type::kPlanReply:
    case Type::kProcessReply:
    case Type::kStatsReply:
    case Type::kEvent:
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
