// SPDX-License-Identifier: GPL-2.0
// Request and answer. libnl maps errno to its own numbers and drops the extended acknowledgement,
// so answers are taken apart here: errno, sentence and guilty attribute all reach the caller.
#include "client.hpp"

#include <linux/genetlink.h>
#include <linux/netlink.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "attribute_path.hpp"

namespace qgpu::netlink {

namespace {

constexpr int kDumpTries = 10;

const char *defaultSentence(int err) {
  switch (err) {
    case EPERM:
      return "changing a plan needs CAP_NET_ADMIN";
    case ESTALE:
      return "the plan was replaced meanwhile";
    default:
      return strerror(err);
  }
}

// The sentence and the guilty attribute, from the attributes behind an nlmsgerr or a done message.
void readExtendedAck(std::span<const uint8_t> tlvs, std::span<const uint8_t> request,
                     Error &error) {
  constexpr uint32_t kMissingType = 5;  // NLMSGERR_ATTR_MISS_TYPE, newer than some headers
  constexpr uint32_t kMissingNest = 6;  // NLMSGERR_ATTR_MISS_NEST
  std::optional<uint32_t> offset, missing_type;
  uint32_t missing_nest = 0;
  while (tlvs.size() >= NLA_HDRLEN) {
    nlattr head;
    memcpy(&head, tlvs.data(), sizeof(head));
    if (head.nla_len < NLA_HDRLEN || head.nla_len > tlvs.size()) break;
    auto value = tlvs.subspan(NLA_HDRLEN, head.nla_len - NLA_HDRLEN);
    uint32_t type = head.nla_type & NLA_TYPE_MASK;
    uint32_t number = 0;
    if (value.size() >= sizeof(number)) memcpy(&number, value.data(), sizeof(number));
    if (type == NLMSGERR_ATTR_MSG)
      error.sentence.assign(value.begin(), std::find(value.begin(), value.end(), 0));
    if (type == NLMSGERR_ATTR_OFFS) offset = number;
    if (type == kMissingType) missing_type = number;
    if (type == kMissingNest) missing_nest = number;
    tlvs = tlvs.subspan(std::min<size_t>(NLA_ALIGN(head.nla_len), tlvs.size()));
  }
  if (missing_type)
    error.item = missingAttribute(request, missing_nest, *missing_type) + " is missing";
  else if (offset)
    error.item = attributeAt(request, *offset);
  if (error.sentence.empty()) error.sentence = defaultSentence(error.err);
}

// The error of an acknowledgement; err = 0 for success.
Error readAck(std::span<const uint8_t> message, std::span<const uint8_t> request) {
  nlmsghdr head;
  memcpy(&head, message.data(), sizeof(head));
  nlmsgerr ack;
  if (message.size() < NLMSG_HDRLEN + sizeof(ack))
    return Error{EBADMSG, "the kernel's acknowledgement is malformed", ""};
  memcpy(&ack, message.data() + NLMSG_HDRLEN, sizeof(ack));
  Error error{-ack.error, "", ""};
  if (error.err == 0) return error;

  size_t tlvs = NLMSG_HDRLEN + sizeof(ack);
  // Unless capped, the request's payload follows.
  if (!(head.nlmsg_flags & NLM_F_CAPPED) && ack.msg.nlmsg_len > NLMSG_HDRLEN)
    tlvs += NLMSG_ALIGN(ack.msg.nlmsg_len - NLMSG_HDRLEN);
  std::span<const uint8_t> rest;
  if ((head.nlmsg_flags & NLM_F_ACK_TLVS) && tlvs < message.size()) rest = message.subspan(tlvs);
  readExtendedAck(rest, request, error);
  return error;
}

Error readDone(std::span<const uint8_t> message, std::span<const uint8_t> request) {
  nlmsghdr head;
  memcpy(&head, message.data(), sizeof(head));
  Error error;
  int code = 0;
  if (message.size() < NLMSG_HDRLEN + sizeof(code)) return error;
  memcpy(&code, message.data() + NLMSG_HDRLEN, sizeof(code));
  if (code >= 0) return error;
  error.err = -code;
  std::span<const uint8_t> rest;
  if (head.nlmsg_flags & NLM_F_ACK_TLVS) rest = message.subspan(NLMSG_HDRLEN + sizeof(code));
  readExtendedAck(rest, request, error);
  return error;
}

template <class Value, class Read>
Result<std::vector<Value>> readAll(const Result<std::vector<Bytes>> &messages, Read read) {
  if (!messages) return messages.error();
  std::vector<Value> values;
  for (const Bytes &message : *messages) {
    auto incoming = readIncoming(message);
    if (!incoming) return incoming.error();
    auto value = read(*incoming);
    if (!value) return value.error();
    values.push_back(std::move(*value));
  }
  return values;
}

}  // namespace

void eachMessage(std::span<const uint8_t> datagram,
                 const std::function<void(std::span<const uint8_t>)> &visit) {
  while (datagram.size() >= NLMSG_HDRLEN) {
    nlmsghdr head;
    memcpy(&head, datagram.data(), sizeof(head));
    if (head.nlmsg_len < NLMSG_HDRLEN || head.nlmsg_len > datagram.size()) return;
    visit(datagram.first(head.nlmsg_len));
    datagram = datagram.subspan(std::min<size_t>(NLMSG_ALIGN(head.nlmsg_len), datagram.size()));
  }
}

Client::Client(std::unique_ptr<Wire> wire) : wire_(std::move(wire)) {}

Result<Client::Messages> Client::exchange(Request &request) {
  uint32_t sequence = ++sequence_;
  auto bytes = request.finish(sequence);
  if (!bytes) return bytes.error();
  if (auto sent = wire_->send(*bytes); !sent) return sent.error();

  Messages answers;
  std::optional<Error> end;
  bool interrupted = false;
  while (!end) {
    auto datagram = wire_->receive();
    if (!datagram) {
      Error error = datagram.error();
      if (error.err == EAGAIN) error = Error{ETIMEDOUT, "the kernel did not answer within 5 s", ""};
      return error;
    }
    eachMessage(*datagram, [&](std::span<const uint8_t> message) {
      nlmsghdr head;
      memcpy(&head, message.data(), sizeof(head));
      // Answers to an earlier request that was given up may still be in the queue.
      if (head.nlmsg_seq != sequence || end) return;
      if (head.nlmsg_flags & NLM_F_DUMP_INTR) interrupted = true;
      if (head.nlmsg_type == NLMSG_ERROR)
        end = readAck(message, *bytes);
      else if (head.nlmsg_type == NLMSG_DONE)
        end = readDone(message, *bytes);
      else if (head.nlmsg_type >= NLMSG_MIN_TYPE)
        answers.emplace_back(message.begin(), message.end());
    });
  }
  if (end->err != 0) return *end;
  if (interrupted) return Error{EINTR, "the list changed while it was read", ""};
  return answers;
}

Result<Family> Client::resolve() {
  forget();
  Request request(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1, NLM_F_ACK);
  request.string(CTRL_ATTR_FAMILY_NAME, QGPU_GENL_NAME);
  auto answers = exchange(request);
  if (!answers && answers.error().err == ENOENT)
    return Error{ENODEV,
                 "the kernel has no family \"" QGPU_GENL_NAME "\": the module qgpu is not loaded",
                 ""};
  if (!answers) return answers.error();
  for (const Bytes &message : *answers) {
    auto incoming = readIncoming(message);
    if (!incoming) return incoming.error();
    std::string name;
    auto family = readFamily(*incoming, &name);
    if (!family) return family.error();
    if (name != QGPU_GENL_NAME) continue;
    if (family->version != QGPU_GENL_VERSION)
      return Error{EPROTONOSUPPORT,
                   "the module speaks version " + std::to_string(family->version) +
                       " of the contract, this program version " +
                       std::to_string(QGPU_GENL_VERSION),
                   ""};
    family_ = *family;
    return family_;
  }
  return Error{EBADMSG, "the kernel did not name the family", ""};
}

Result<void> Client::ready() {
  if (family_.id != 0) return {};
  auto family = resolve();
  if (!family) return family.error();
  return {};
}

Result<Client::Messages> Client::dump(uint8_t command) {
  for (int i = 0;; ++i) {
    if (auto is_ready = ready(); !is_ready) return is_ready.error();
    Request request(family_.id, command, QGPU_GENL_VERSION, NLM_F_ACK | NLM_F_DUMP);
    auto answers = exchange(request);
    if (answers || i == kDumpTries) return answers;
    switch (answers.error().err) {
      case EINTR:
        break;      // changed while it was read: once more
      case ENOENT:  // the family's number changed: the module was loaded anew
      case EOPNOTSUPP:
        forget();
        break;
      case EPROTONOSUPPORT:  // the kernel's word for a module in the middle of its unloading
        forget();
        return Error{ENODEV, "the module qgpu is being unloaded", ""};
      default:
        return answers;
    }
  }
}

Result<std::vector<CardInfo>> Client::cards() {
  return readAll<CardInfo>(dump(QGPU_CMD_CARD_GET), readCard);
}

Result<std::vector<TenantOfCard>> Client::tenants() {
  return readAll<TenantOfCard>(dump(QGPU_CMD_TENANT_GET), readTenant);
}

Result<std::vector<TsgOfCard>> Client::tsgs() {
  return readAll<TsgOfCard>(dump(QGPU_CMD_TSG_GET), readTsg);
}

Result<std::vector<Sample>> Client::samples() {
  return readAll<Sample>(dump(QGPU_CMD_STATS_GET), readSample);
}

Result<std::vector<LogOfCard>> Client::log() {
  return readAll<LogOfCard>(dump(QGPU_CMD_LOG_GET), readLog);
}

Result<PlanReply> Client::planSet(const PlanChange &change) {
  if (auto is_ready = ready(); !is_ready) return is_ready.error();
  Request request(family_.id, QGPU_CMD_PLAN_SET, QGPU_GENL_VERSION, NLM_F_ACK, planBytes(change));
  writePlan(request, change);
  auto answers = exchange(request);
  if (!answers) return answers.error();
  for (const Bytes &message : *answers) {
    auto incoming = readIncoming(message);
    if (!incoming) return incoming.error();
    if (incoming->command == QGPU_CMD_PLAN_SET) return readPlan(*incoming);
  }
  return Error{EBADMSG, "the kernel took the plan but did not say what it set", ""};
}

}  // namespace qgpu::netlink
