// SPDX-License-Identifier: GPL-2.0
// A SOCK_SEQPACKET socket: a packet is a message, or it is a mistake that ends the connection.
#include "exec_link.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

namespace qgpu {

namespace {

Error failed(const std::string &what, int err, const std::string &path) {
  return Error{err, what + ": " + strerror(err), path};
}

}  // namespace

Result<void> ExecLink::connect() {
  if (fd_) return {};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path_.size() >= sizeof(address.sun_path))
    return Error{ENAMETOOLONG, "the path of the executor's socket is too long", path_};
  std::memcpy(address.sun_path, path_.data(), path_.size());
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return failed("no socket can be had", errno, path_);
  const int bytes = static_cast<int>(exec::kMaxPacket);
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
  if (::connect(fd.get(), reinterpret_cast<sockaddr *>(&address), sizeof(address)) != 0) {
    if (errno == ENOENT || errno == ECONNREFUSED)
      return Error{errno, "no executor is running for this card", path_};
    return failed("the executor cannot be reached", errno, path_);
  }
  fd_ = std::move(fd);
  ++connections_;
  owed_.clear();
  return {};
}

void ExecLink::disconnect() {
  fd_.reset();
  owed_.clear();
}

Result<void> ExecLink::send(const std::vector<std::byte> &packet, int pass_fd) {
  if (!fd_) return Error{ENOTCONN, "no executor is running for this card", path_};
  iovec part{const_cast<std::byte *>(packet.data()), packet.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (pass_fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(head), &pass_fd, sizeof(int));
  }
  if (sendmsg(fd_.get(), &message, MSG_NOSIGNAL) < 0) {
    const int err = errno;
    if (err == EAGAIN || err == EINTR || err == ENOBUFS)
      return Error{EAGAIN, "the executor does not read its requests", path_};
    disconnect();
    return failed("the executor has gone", err, path_);
  }
  exec::Header header;
  std::memcpy(&header, packet.data(), sizeof(header));
  owed_.push_back({header.serial, clock_.nowNs()});
  return {};
}

Result<void> ExecLink::noteReply(const exec::Header &header) {
  if (header.type == exec::Type::kEvent) return {};
  if (owed_.empty() || owed_.front().serial != header.serial)
    return Error{EPROTO, "the executor answers what was not asked", path_};
  owed_.pop_front();
  return {};
}

Result<std::span<const std::byte>> ExecLink::receive() {
  if (!fd_) return std::span<const std::byte>();
  buffer_.resize(exec::kMaxPacket);
  const ssize_t bytes = recv(fd_.get(), buffer_.data(), buffer_.size(), MSG_TRUNC);
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return std::span<const std::byte>();
  auto end = [&](Error error) -> Result<std::span<const std::byte>> {
    disconnect();
    return error;
  };
  if (bytes < 0) return end(failed("the executor has gone", errno, path_));
  if (bytes == 0) return end(Error{EPIPE, "the executor has ended", path_});
  if (static_cast<size_t>(bytes) > buffer_.size())
    return end(Error{EPROTO, "the executor sends too long a packet", path_});
  const std::span<const std::byte> packet(buffer_.data(), static_cast<size_t>(bytes));
  auto header = exec::decodeHeader(packet);
  if (!header) return end(header.error());
  if (auto known = noteReply(*header); !known) return end(known.error());
  return packet;
}

bool ExecLink::waitReadable(uint64_t until_ns) const {
  const uint64_t now_ns = clock_.nowNs();
  if (!fd_ || now_ns >= until_ns) return false;
  pollfd wait{fd_.get(), POLLIN, 0};
  return poll(&wait, 1, static_cast<int>((until_ns - now_ns) / kMillisecondNs + 1)) == 1;
}

}  // namespace qgpu
