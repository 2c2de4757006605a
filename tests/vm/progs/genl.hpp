// SPDX-License-Identifier: GPL-2.0
// genl.hpp - generic netlink down to the byte, for test programs: messages can be built right and
// spoiled on purpose, and a refusal is read as errno, sentence and offset of the guilty attribute.
// Not libnl: that would neither send what is malformed nor show the sentence.
#pragma once

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/qgpu.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace genl {

using Bytes = std::vector<std::uint8_t>;

[[noreturn]] inline void die(const char *what) {
  std::perror(what);
  std::exit(2);
}

class Message {
 public:
  explicit Message(std::uint8_t cmd, std::uint16_t flags = 0, std::uint16_t family = 0) {
    bytes.resize(NLMSG_HDRLEN + GENL_HDRLEN);
    header().nlmsg_type = family;
    header().nlmsg_flags = NLM_F_REQUEST | flags;
    auto *generic = reinterpret_cast<genlmsghdr *>(bytes.data() + NLMSG_HDRLEN);
    generic->cmd = cmd;
    generic->version = QGPU_GENL_VERSION;
  }

  nlmsghdr &header() { return *reinterpret_cast<nlmsghdr *>(bytes.data()); }

  // Returns where the attribute begins.
  std::size_t put(std::uint16_t type, const void *data, std::size_t length) {
    const std::size_t at = bytes.size();
    nlattr head{static_cast<std::uint16_t>(NLA_HDRLEN + length), type};
    bytes.resize(at + NLA_HDRLEN + NLA_ALIGN(length));
    std::memcpy(&bytes[at], &head, sizeof(head));
    if (length) std::memcpy(&bytes[at + NLA_HDRLEN], data, length);
    return at;
  }
  std::size_t put32(std::uint16_t type, std::uint32_t value) { return put(type, &value, 4); }
  std::size_t put64(std::uint16_t type, std::uint64_t value) { return put(type, &value, 8); }
  std::size_t putString(std::uint16_t type, const std::string &text) {
    return put(type, text.c_str(), text.size() + 1);
  }
  std::size_t open(std::uint16_t type) { return put(type | NLA_F_NESTED, nullptr, 0); }
  void close(std::size_t at) { attr(at).nla_len = static_cast<std::uint16_t>(bytes.size() - at); }
  nlattr &attr(std::size_t at) { return *reinterpret_cast<nlattr *>(&bytes[at]); }

  Bytes bytes;
};

struct Answer {
  int error = 0;  // positive errno; 0 = granted
  std::string sentence;
  long offset = -1;  // of the guilty attribute in the request
  int missing = -1;  // type of an attribute that was not given
  bool interrupted = false;
  std::vector<Bytes> replies;  // attributes of each, with the generic header cut off
};

// The attributes of a reply or nest: the last of each type, or all in order.
inline std::vector<std::pair<int, Bytes>> attributes(const Bytes &from) {
  std::vector<std::pair<int, Bytes>> out;
  for (std::size_t at = 0; at + NLA_HDRLEN <= from.size();) {
    nlattr head;
    std::memcpy(&head, &from[at], sizeof(head));
    if (head.nla_len < NLA_HDRLEN || at + head.nla_len > from.size()) break;
    out.emplace_back(head.nla_type & NLA_TYPE_MASK,
                     Bytes(from.begin() + static_cast<long>(at) + NLA_HDRLEN,
                           from.begin() + static_cast<long>(at) + head.nla_len));
    at += NLA_ALIGN(head.nla_len);
  }
  return out;
}
inline std::map<int, Bytes> byType(const Bytes &from) {
  std::map<int, Bytes> out;
  for (auto &[type, value] : attributes(from)) out[type] = value;
  return out;
}
inline std::uint64_t number(const Bytes &from) {
  std::uint64_t value = 0;
  std::memcpy(&value, from.data(), std::min<std::size_t>(from.size(), 8));
  return value;
}
inline std::string text(const Bytes &from) {
  return std::string(reinterpret_cast<const char *>(from.data()));
}

class Socket {
 public:
  Socket() : fd_(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC)) {
    if (fd_ < 0) die("socket");
    const int on = 1, room = 1 << 20;
    setsockopt(fd_, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
    setsockopt(fd_, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
    sockaddr_nl self{};
    self.nl_family = AF_NETLINK;
    if (bind(fd_, reinterpret_cast<sockaddr *>(&self), sizeof(self))) die("bind");
    findFamily();
  }
  ~Socket() { close(fd_); }
  Socket(const Socket &) = delete;

  bool found() const { return family_ != 0; }
  std::uint16_t family() const { return family_; }

  void joinEvents() {
    if (setsockopt(fd_, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group_, sizeof(group_)))
      die("NETLINK_ADD_MEMBERSHIP");
  }

  // Send as it is, but for family, length and sequence number, and collect what comes back up to
  // the acknowledgement or the end of the dump.
  Answer call(Message message) {
    message.header().nlmsg_type = family_;
    message.header().nlmsg_flags |= NLM_F_ACK;
    message.header().nlmsg_len = static_cast<std::uint32_t>(message.bytes.size());
    return callRaw(message);
  }
  Answer callRaw(Message &message) {
    sendRaw(message);
    return collect();
  }
  // The same in two steps: the kernel fills the first datagram of a dump while it is sent, and the
  // rest while it is collected.
  void begin(Message message) {
    message.header().nlmsg_type = family_;
    message.header().nlmsg_flags |= NLM_F_ACK;
    message.header().nlmsg_len = static_cast<std::uint32_t>(message.bytes.size());
    sendRaw(message);
  }
  Answer collect() {
    Answer answer;
    while (!receive(answer)) {
    }
    return answer;
  }

  // One datagram; false when nothing came in time.
  bool waitEvent(int timeout_ms, std::vector<Bytes> &out) {
    const timeval limit{timeout_ms / 1000, timeout_ms % 1000 * 1000};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    Bytes bytes = datagram();
    for (std::size_t at = 0; at + NLMSG_HDRLEN <= bytes.size();) {
      nlmsghdr head;
      std::memcpy(&head, &bytes[at], sizeof(head));
      out.emplace_back(bytes.begin() + static_cast<long>(at) + NLMSG_HDRLEN + GENL_HDRLEN,
                       bytes.begin() + static_cast<long>(at) + head.nlmsg_len);
      at += NLMSG_ALIGN(head.nlmsg_len);
    }
    return !bytes.empty();
  }

 private:
  void sendRaw(Message &message) {
    message.header().nlmsg_seq = ++sequence_;
    if (send(fd_, message.bytes.data(), message.bytes.size(), 0) < 0) die("send");
  }

  Bytes datagram() {
    Bytes bytes(1 << 20);
    const ssize_t got = recv(fd_, bytes.data(), bytes.size(), 0);
    if (got < 0 && errno != EAGAIN && errno != ENOBUFS && errno != EINTR) die("recv");
    bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return bytes;
  }

  // Returns true at the end of the conversation.
  bool receive(Answer &answer) {
    const Bytes bytes = datagram();
    bool ended = false;
    for (std::size_t at = 0; at + NLMSG_HDRLEN <= bytes.size();) {
      nlmsghdr head;
      std::memcpy(&head, &bytes[at], sizeof(head));
      const Bytes body(bytes.begin() + static_cast<long>(at) + NLMSG_HDRLEN,
                       bytes.begin() + static_cast<long>(at) + head.nlmsg_len);
      at += NLMSG_ALIGN(head.nlmsg_len);
      if (head.nlmsg_seq != sequence_) continue;
      answer.interrupted |= head.nlmsg_flags & NLM_F_DUMP_INTR;
      if (head.nlmsg_type == NLMSG_ERROR || head.nlmsg_type == NLMSG_DONE) {
        takeEnd(head, body, answer);
        ended = true;
      } else if (body.size() >= GENL_HDRLEN) {
        answer.replies.emplace_back(body.begin() + GENL_HDRLEN, body.end());
      }
    }
    return ended;
  }

  static void takeEnd(const nlmsghdr &head, const Bytes &body, Answer &answer) {
    int error = 0;
    std::memcpy(&error, body.data(), std::min<std::size_t>(body.size(), sizeof(error)));
    answer.error = -error;
    if (!(head.nlmsg_flags & NLM_F_ACK_TLVS)) return;
    std::size_t skip = sizeof(int);
    if (head.nlmsg_type == NLMSG_ERROR) {
      nlmsghdr request;
      std::memcpy(&request, &body[4], sizeof(request));
      skip += head.nlmsg_flags & NLM_F_CAPPED ? sizeof(nlmsghdr) : NLMSG_ALIGN(request.nlmsg_len);
    }
    if (skip > body.size()) return;
    const auto said = byType(Bytes(body.begin() + static_cast<long>(skip), body.end()));
    if (const auto it = said.find(NLMSGERR_ATTR_MSG); it != said.end())
      answer.sentence = text(it->second);
    if (const auto it = said.find(NLMSGERR_ATTR_OFFS); it != said.end())
      answer.offset = static_cast<long>(number(it->second));
    if (const auto it = said.find(NLMSGERR_ATTR_MISS_TYPE); it != said.end())
      answer.missing = static_cast<int>(number(it->second));
  }

  void findFamily() {
    Message ask(CTRL_CMD_GETFAMILY, NLM_F_ACK, GENL_ID_CTRL);
    ask.putString(CTRL_ATTR_FAMILY_NAME, QGPU_GENL_NAME);
    ask.header().nlmsg_len = static_cast<std::uint32_t>(ask.bytes.size());
    const Answer answer = callRaw(ask);
    if (answer.error || answer.replies.empty()) return;
    auto attrs = byType(answer.replies[0]);
    family_ = static_cast<std::uint16_t>(number(attrs[CTRL_ATTR_FAMILY_ID]));
    for (auto &[index, group] : attributes(attrs[CTRL_ATTR_MCAST_GROUPS]))
      group_ = static_cast<std::uint32_t>(number(byType(group)[CTRL_ATTR_MCAST_GRP_ID]));
  }

  int fd_;
  std::uint16_t family_ = 0;
  std::uint32_t group_ = 0;
  std::uint32_t sequence_ = 0;
};

}  // namespace genl
