// SPDX-License-Identifier: GPL-2.0
// Making the executor's own client, in the order that the driver wants: the card's node is opened
// and tied to the control node before a device can be made.
#include "rm_client.hpp"

#include <array>
#include <cerrno>
#include <cstring>

#include "rm_abi.hpp"

namespace qgpu::exec {
namespace {

const char *const kControlNode = "/dev/nvidiactl";

}  // namespace

Result<std::unique_ptr<RmClient>> RmClient::open(RmIo &io, const DriverProfile &profile,
                                                 unsigned minor) {
  std::unique_ptr<RmClient> out(new RmClient(io, profile));
  if (const auto done = out->openCard(minor); !done) return done.error();
  out->openUsermode();
  return out;
}

RmClient::~RmClient() {
  for (const Mapping &m : mappings_) {
    io_.unmap(m.address, m.bytes);
    io_.close(m.fd);
  }
  if (card_fd_ >= 0) io_.close(card_fd_);
  if (control_fd_ >= 0) io_.close(control_fd_);  // the driver frees the client with it
}

Result<uint32_t> RmClient::alloc(uint32_t parent, uint32_t klass, void *params, uint32_t bytes,
                                 const std::string &what) {
  rm::Alloc call{};
  call.client = client_;
  call.parent = parent;
  call.object = next_handle_;
  call.klass = klass;
  call.params = reinterpret_cast<uint64_t>(params);
  if (profile_.alloc_has_size) call.size_or_status = bytes;
  RmOutcome out;
  out.err = io_.ioctl(control_fd_, rm::request(rm::kNrAlloc, sizeof(call)), &call);
  out.status = profile_.alloc_has_size ? call.status : call.size_or_status;
  if (!out.ok()) return out.error("cannot make " + what);
  next_handle_++;
  return call.object;
}

RmOutcome RmClient::control(uint32_t object, uint32_t cmd, void *params, uint32_t bytes) {
  return rmControl(io_, control_fd_, client_, object, cmd, params, bytes);
}

Result<uint32_t> RmClient::allocClient() {
  rm::Alloc call{};
  call.klass = rm::kClassClient;
  RmOutcome out;
  out.err = io_.ioctl(control_fd_, rm::request(rm::kNrAlloc, sizeof(call)), &call);
  out.status = profile_.alloc_has_size ? call.status : call.size_or_status;
  if (!out.ok()) return out.error("cannot make a client of the driver");
  return call.object;
}

Result<uint32_t> RmClient::nextClient() {
  auto handle = allocClient();
  if (!handle) return handle;
  rm::Free call{*handle, *handle, *handle, 0};
  io_.ioctl(control_fd_, rm::request(rm::kNrFree, sizeof(call)), &call);
  return handle;
}

// The device instance and id of the card behind /dev/nvidia<minor>.
Result<uint32_t> RmClient::deviceInstance(unsigned minor) {
  std::array<rm::CardInfo, rm::kCardsMax> cards{};
  if (const int err =
          io_.ioctl(control_fd_, rm::request(rm::kNrCardInfo, sizeof(cards)), cards.data()))
    return Error{err, "the driver does not say what cards there are", card_node_};
  for (const rm::CardInfo &card : cards) {
    if (!card.valid || card.minor != minor) continue;
    gpu_id_ = card.gpu_id;
    rm::GpuIdInfo info{};
    info.gpu_id = card.gpu_id;
    const RmOutcome out = control(client_, rm::kCtrlGpuGetIdInfoV2, &info, sizeof(info));
    if (!out.ok()) return out.error("the driver does not say which device " + card_node_ + " is");
    return info.device_instance;
  }
  return Error{ENODEV, "the driver has no card " + card_node_, card_node_};
}

Result<void> RmClient::openCard(unsigned minor) {
  card_node_ = "/dev/nvidia" + std::to_string(minor);
  auto fd = io_.open(kControlNode);
  if (!fd) return fd.error();
  control_fd_ = *fd;
  fd = openNode(card_node_);
  if (!fd) return fd.error();
  card_fd_ = *fd;
  auto handle = allocClient();
  if (!handle) return handle.error();
  client_ = *handle;
  const auto instance = deviceInstance(minor);
  if (!instance) return instance.error();
  rm::DeviceParams device{};
  device.device_id = *instance;
  handle = alloc(client_, rm::kClassDevice, &device, sizeof(device), "a device");
  if (!handle) return handle.error();
  device_ = *handle;
  rm::SubdeviceParams subdevice{};
  handle = alloc(device_, rm::kClassSubdevice, &subdevice, sizeof(subdevice), "a subdevice");
  if (!handle) return handle.error();
  subdevice_ = *handle;
  return {};
}

// A fresh file of a node; a card's node is tied to the control node.
Result<int> RmClient::openNode(const std::string &node) {
  auto fd = io_.open(node);
  if (!fd || node == kControlNode) return fd;
  rm::RegisterFd call{control_fd_};
  if (const int err = io_.ioctl(*fd, rm::request(rm::kNrRegisterFd, sizeof(call)), &call)) {
    io_.close(*fd);
    return Error{err, "cannot tie " + node + " to the control node", node};
  }
  return fd;
}

Result<void *> RmClient::map(uint32_t device, uint32_t memory, size_t bytes,
                             const std::string &node, uint32_t flags) {
  const auto fd = openNode(node);
  if (!fd) return fd.error();
  rm::MapMemory call{};
  call.client = client_;
  call.device = device;
  call.memory = memory;
  call.length = bytes;
  call.flags = flags;
  call.fd = *fd;
  RmOutcome out;
  out.err = io_.ioctl(control_fd_, rm::request(rm::kNrMapMemory, sizeof(call)), &call);
  out.status = call.status;
  if (!out.ok()) {
    io_.close(*fd);
    return out.error("cannot map the driver's memory");
  }
  const auto at = io_.map(*fd, bytes, !(flags & rm::kMapReadOnly));
  if (!at) {
    io_.close(*fd);
    return at.error();
  }
  mappings_.push_back({*at, bytes, *fd});
  return *at;
}

// Without the page there is no ringing: canRing() tells.
void RmClient::openUsermode() {
  for (const uint32_t klass : rm::kClassUsermode) {
    const auto object = alloc(subdevice_, klass, nullptr, 0, "a doorbell page");
    if (!object) continue;
    for (const uint32_t device : {device_, subdevice_}) {
      const auto at = map(device, *object, rm::kUsermodeBytes, card_node_, 0);
      if (!at) continue;
      page_ = static_cast<volatile uint8_t *>(*at);
      return;
    }
    return;
  }
}

uint64_t RmClient::timeNs() const {
  if (!page_) return 0;
  const auto *low = reinterpret_cast<const volatile uint32_t *>(page_ + rm::kUsermodeTimeLow);
  const auto *high = reinterpret_cast<const volatile uint32_t *>(page_ + rm::kUsermodeTimeHigh);
  for (;;) {
    const uint32_t before = *high, ns = *low;
    if (*high == before) return uint64_t{before} << 32 | ns;
  }
}

void RmClient::ring(uint32_t token) {
  if (page_) *reinterpret_cast<volatile uint32_t *>(page_ + rm::kUsermodeDoorbell) = token;
}

}  // namespace qgpu::exec
