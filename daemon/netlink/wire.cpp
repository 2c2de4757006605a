// SPDX-License-Identifier: GPL-2.0
// The real wire: a libnl socket. Only datagrams of the kernel itself (port 0) are let through.
#include "wire.hpp"

#include <linux/netlink.h>
#include <netlink/errno.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstring>

namespace qgpu::netlink {

namespace {

constexpr int kReceiveBuffer = 2 * 1024 * 1024;
// A plan of 1,024 tenants with 64 cgroups each is 0.7 MiB and must be one message.
constexpr int kSendBuffer = 2 * 1024 * 1024;

class SocketWire final : public Wire {
 public:
  explicit SocketWire(nl_sock *sock) : sock_(sock) {}
  ~SocketWire() override { nl_socket_free(sock_); }
  SocketWire(const SocketWire &) = delete;
  SocketWire &operator=(const SocketWire &) = delete;

  int fd() const override { return nl_socket_get_fd(sock_); }

  Result<void> send(std::span<const uint8_t> message) override {
    sockaddr_nl kernel{};
    kernel.nl_family = AF_NETLINK;
    ssize_t sent;
    do {
      sent = sendto(fd(), message.data(), message.size(), 0, reinterpret_cast<sockaddr *>(&kernel),
                    sizeof(kernel));
    } while (sent < 0 && errno == EINTR);
    if (sent < 0) return Error{errno, std::string("netlink send: ") + strerror(errno), ""};
    return {};
  }

  Result<Bytes> receive() override {
    for (;;) {
      // The answer to a large plan is large: its size is asked first (MSG_TRUNC = the real one).
      ssize_t size = recv(fd(), nullptr, 0, MSG_PEEK | MSG_TRUNC);
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) return Error{errno, std::string("netlink receive: ") + strerror(errno), ""};
      Bytes buffer(static_cast<size_t>(size));
      sockaddr_nl sender{};
      iovec part{buffer.data(), buffer.size()};
      msghdr message{};
      message.msg_name = &sender;
      message.msg_namelen = sizeof(sender);
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      ssize_t received = recvmsg(fd(), &message, 0);
      if (received < 0) {
        if (errno == EINTR) continue;
        return Error{errno, std::string("netlink receive: ") + strerror(errno), ""};
      }
      if (sender.nl_pid != 0) continue;
      if (message.msg_flags & MSG_TRUNC)
        return Error{EMSGSIZE, "a netlink datagram does not fit", ""};
      buffer.resize(static_cast<size_t>(received));
      return buffer;
    }
  }

  Result<void> join(uint32_t group) override {
    int rc = nl_socket_add_membership(sock_, static_cast<int>(group));
    if (rc < 0)
      return Error{EIO, std::string("cannot join the multicast group: ") + nl_geterror(rc), ""};
    return {};
  }

 private:
  nl_sock *sock_;
};

}  // namespace

Result<std::unique_ptr<Wire>> openWire(WireKind kind) {
  nl_sock *sock = nl_socket_alloc();
  if (!sock) return Error{ENOMEM, "no memory for a netlink socket", ""};
  auto wire = std::make_unique<SocketWire>(sock);
  int rc = nl_connect(sock, NETLINK_GENERIC);
  if (rc < 0)
    return Error{EIO, std::string("cannot open a netlink socket: ") + nl_geterror(rc), ""};
  // What an unprivileged reader may not have, it does not need.
  nl_socket_set_buffer_size(sock, kReceiveBuffer, kSendBuffer);
  setsockopt(wire->fd(), SOL_SOCKET, SO_SNDBUFFORCE, &kSendBuffer, sizeof(kSendBuffer));
  setsockopt(wire->fd(), SOL_SOCKET, SO_RCVBUFFORCE, &kReceiveBuffer, sizeof(kReceiveBuffer));

  // libnl knows neither option; without EXT_ACK the kernel's sentence never arrives.
  int on = 1;
  setsockopt(wire->fd(), SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
  setsockopt(wire->fd(), SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on));

  switch (kind) {
    case WireKind::kRequests: {
      timeval limit{5, 0};
      setsockopt(wire->fd(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
      break;
    }
    case WireKind::kEvents:
      nl_socket_set_nonblocking(sock);
      break;
  }
  return std::unique_ptr<Wire>(std::move(wire));
}

}  // namespace qgpu::netlink
