// SPDX-License-Identifier: GPL-2.0
#include "packet_socket.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "protocol.hpp"

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

void makeRoom(int fd) {
  const int bytes = static_cast<int>(2 * kMaxPacket);
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

int newSocket() {
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd >= 0) makeRoom(fd);
  return fd;
}

// Root, or who runs the executor.
bool trusted(int fd) {
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
         (peer.uid == 0 || peer.uid == geteuid());
}

std::vector<int> descriptorsOf(msghdr &message) {
  std::vector<int> fds;
  for (cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    for (size_t i = 0; CMSG_LEN((i + 1) * sizeof(int)) <= c->cmsg_len; i++) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
      fds.push_back(fd);
    }
  }
  return fds;
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

int acceptFrom(int listen_fd) {
  const int fd = accept4(listen_fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return -1;
  if (!trusted(fd)) {
    close(fd);
    return -1;
  }
  makeRoom(fd);
  return fd;
}

Packet receivePacket(int fd) {
  Packet out;
  out.bytes.resize(kMaxPacket);
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kDescriptorsMax)];
  iovec part{out.bytes.data(), out.bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return out;
  if (n > 0) out.fds = descriptorsOf(message);
  const bool whole = n > 0 && !(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC));
  out.state = whole ? Packet::kWhole : Packet::kEnded;
  out.bytes.resize(whole ? static_cast<size_t>(n) : 0);
  return out;
}

bool sendPacket(int fd, std::span<const std::byte> packet, std::span<const int> fds) {
  iovec part{const_cast<std::byte *>(packet.data()), packet.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kDescriptorsMax)] = {};
  if (fds.size() > kDescriptorsMax) return false;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(head), fds.data(), fds.size_bytes());
  }
  return sendmsg(fd, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(packet.size());
}

}  // namespace qgpu::exec
