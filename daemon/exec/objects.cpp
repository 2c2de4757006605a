// SPDX-License-Identifier: GPL-2.0
// The probes. None changes anything: GET_INFO answers on TSGs alone, GET_WORK_SUBMIT_TOKEN on
// channels alone, GPU_GET_ID on subdevices alone.
#include "objects.hpp"

#include <algorithm>

#include "rm_abi.hpp"

namespace qgpu::exec {
namespace {

constexpr uint32_t kBlock = 0x400;
constexpr uint32_t kBlocksMax = 64;
// Controls that one handle may cost: none of three kinds but a subdevice, and its parent.
constexpr unsigned kHandleControls = 4;
// Handles that the quick look tries without a hint: libcuda's first TSG is among them.
constexpr uint32_t kFirstHandles = 0x40;
// Three controls a handle and one more for each object, of which but few have three.
constexpr unsigned kFirstControls = 3 * kFirstHandles + 8;
// Objects in a hint, and what it costs: each is asked for what it is, and for its parent.
constexpr size_t kHintObjects = 40;
constexpr unsigned kHintControls = 2 * kHintObjects;

}  // namespace

std::optional<uint32_t> ObjectScan::parentOf(uint32_t handle) {
  rm::HandleInfo info{handle, rm::kHandleInfoParent, 0};
  probes_++;
  if (!rmControl(*io_, fd_, client_, client_, rm::kCtrlClientGetHandleInfo, info).ok())
    return std::nullopt;
  return static_cast<uint32_t>(info.result);
}

// With one card in the process, or a driver that does not tell parents, every TSG is on it.
bool ObjectScan::onCard(uint32_t tsg) {
  const auto parent = parentOf(tsg);
  return !device_ || !parent || *parent == device_;
}

bool ObjectScan::probeChannel(uint32_t handle) {
  uint32_t token = 0;
  probes_++;
  if (!rmControl(*io_, fd_, client_, handle, rm::kCtrlChannelGetSubmitToken, token).ok())
    return false;
  const auto parent = parentOf(handle);
  // Channels follow their TSG where the driver does not tell the parent.
  for (auto tsg = tsgs_.rbegin(); tsg != tsgs_.rend(); ++tsg)
    if (!parent || tsg->handle == *parent) {
      tsg->channels.push_back({handle, token});
      break;
    }
  return true;
}

bool ObjectScan::probeTsg(uint32_t handle) {
  uint32_t id = 0;
  probes_++;
  if (!rmControl(*io_, fd_, client_, handle, rm::kCtrlTsgGetInfo, id).ok()) return false;
  if (onCard(handle)) tsgs_.push_back({handle, id, {}});
  return true;
}

bool ObjectScan::probeSubdevice(uint32_t handle) {
  uint32_t gpu_id = 0;
  probes_++;
  if (!rmControl(*io_, fd_, client_, handle, rm::kCtrlGpuGetId, gpu_id).ok()) return false;
  if (gpu_id == gpu_id_) {
    subdevice_ = handle;
    device_ = parentOf(handle).value_or(0);
  }
  return true;
}

bool ObjectScan::probe(uint32_t handle) {
  if (probeTsg(handle)) return true;
  if (!tsgs_.empty() && probeChannel(handle)) return true;
  return !subdevice_ && probeSubdevice(handle);
}

void ObjectScan::dropEmpty() {
  std::erase_if(tsgs_, [](const Tsg &tsg) { return tsg.channels.empty(); });
}

// While a process starts it has the first of these and not the others: then it ends early.
void ObjectScan::probeHint(const Hint &hint) {
  probeSubdevice(hint.subdevice);
  if (!subdevice_) return;
  for (const Tsg &tsg : hint.tsgs)
    if (probeTsg(tsg.handle))
      for (const Channel &channel : tsg.channels) probeChannel(channel.handle);
}

unsigned ObjectScan::quickControls(const Hint *hint) {
  return hint ? kHintControls : kFirstControls;
}

bool ObjectScan::quick(const Hint *hint) {
  if (hint)
    probeHint(*hint);
  else
    for (uint32_t i = 0; i < kFirstHandles && probes_ + kHandleControls <= kFirstControls; i++)
      probe(rm::kCudaObjectBase + i);
  dropEmpty();
  return found() &&
         std::any_of(tsgs_.begin(), tsgs_.end(), [](const Tsg &t) { return t.compute(); });
}

bool ObjectScan::goOn(unsigned controls) {
  const uint64_t end = probes_ + controls;
  while (probes_ + kHandleControls <= end) {
    block_has_ |= probe(rm::kCudaObjectBase + tried_++);
    if (tried_ % kBlock) continue;
    if (!block_has_ || tried_ == kBlock * kBlocksMax) {
      dropEmpty();
      return true;
    }
    block_has_ = false;
  }
  return false;
}

Hint ObjectScan::hint() const {
  Hint out{subdevice_, {}};
  size_t room = kHintObjects - 1;
  for (const Tsg &tsg : tsgs_) {
    if (!tsg.compute() || room < 2) continue;
    out.tsgs.push_back(tsg);
    std::vector<Channel> &channels = out.tsgs.back().channels;
    if (channels.size() > room - 1) channels.resize(room - 1);
    room -= 1 + channels.size();
  }
  return out;
}

std::vector<uint32_t> clientsOf(RmIo &io, int fd, uint32_t from, uint32_t to) {
  std::vector<uint32_t> out;
  for (uint32_t handle = from; handle >= to && handle >= rm::kClientBase; handle--) {
    uint32_t features = 0;
    if (rmControl(io, fd, handle, handle, rm::kCtrlSystemGetFeatures, features).ok())
      out.push_back(handle);
  }
  return out;
}

}  // namespace qgpu::exec
