// SPDX-License-Identifier: GPL-2.0
// The probes. None changes anything: GET_INFO answers on TSGs alone, GET_WORK_SUBMIT_TOKEN on
// channels alone, GPU_GET_ID on subdevices alone.
#include "objects.hpp"

#include "rm_abi.hpp"

namespace qgpu::exec {
namespace {

constexpr uint32_t kBlock = 0x400;
constexpr uint32_t kBlocksMax = 64;

}  // namespace

std::optional<uint32_t> ObjectScan::parentOf(uint32_t handle) {
  rm::HandleInfo info{handle, rm::kHandleInfoParent, 0};
  probes_++;
  if (!rmControl(io_, fd_, client_, client_, rm::kCtrlClientGetHandleInfo, info).ok())
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
  if (!rmControl(io_, fd_, client_, handle, rm::kCtrlChannelGetSubmitToken, token).ok())
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

bool ObjectScan::probe(uint32_t handle) {
  uint32_t value = 0;
  probes_++;
  if (rmControl(io_, fd_, client_, handle, rm::kCtrlTsgGetInfo, value).ok()) {
    if (onCard(handle)) tsgs_.push_back({handle, value, {}});
    return true;
  }
  if (!tsgs_.empty() && probeChannel(handle)) return true;
  if (subdevice_) return false;
  probes_++;
  if (!rmControl(io_, fd_, client_, handle, rm::kCtrlGpuGetId, value).ok()) return false;
  if (value == gpu_id_) {
    subdevice_ = handle;
    device_ = parentOf(handle).value_or(0);
  }
  return true;
}

bool ObjectScan::block(uint32_t first) {
  bool found = false;
  for (uint32_t i = 0; i < kBlock; i++) found |= probe(first + i);
  return found;
}

bool ObjectScan::look() {
  tsgs_.clear();
  for (uint32_t i = 0; i < kBlocksMax; i++)
    if (!block(rm::kCudaObjectBase + i * kBlock)) break;
  std::erase_if(tsgs_, [](const Tsg &tsg) { return tsg.channels.empty(); });
  return !tsgs_.empty() && subdevice_;
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
