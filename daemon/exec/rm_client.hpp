// SPDX-License-Identifier: GPL-2.0
// The executor's own client of the driver: a device, a subdevice and a doorbell page of one card.
// It touches nothing of any tenant.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "driver_profile.hpp"
#include "rm_call.hpp"
#include "rm_io.hpp"

namespace qgpu::exec {

class RmClient {
 public:
  // `minor`: of /dev/nvidia<minor>. Errors name the step and the driver's status.
  static Result<std::unique_ptr<RmClient>> open(RmIo &io, const DriverProfile &profile,
                                                unsigned minor);
  ~RmClient();
  RmClient(const RmClient &) = delete;
  RmClient &operator=(const RmClient &) = delete;

  RmIo &io() const { return io_; }
  const DriverProfile &profile() const { return profile_; }
  int fd() const { return control_fd_; }
  uint32_t client() const { return client_; }
  uint32_t device() const { return device_; }
  uint32_t subdevice() const { return subdevice_; }
  uint32_t gpuId() const { return gpu_id_; }

  // A new object below `parent`; its handle.
  Result<uint32_t> alloc(uint32_t parent, uint32_t klass, void *params, uint32_t bytes,
                         const std::string &what);
  RmOutcome control(uint32_t object, uint32_t cmd, void *params, uint32_t bytes);

  // Memory object `memory`, mapped through `node` (a fresh file of it); unmapped at the end.
  Result<void *> map(uint32_t device, uint32_t memory, size_t bytes, const std::string &node,
                     uint32_t flags);

  // Where the driver's counter of clients stands: the handle a client made now would have.
  Result<uint32_t> nextClient();

  // The card's timer: nanoseconds, the same counter as the trace's times. 0 without a doorbell
  // page.
  uint64_t timeNs() const;
  // One doorbell write: makes the host look at the channel of this token.
  void ring(uint32_t token);
  bool canRing() const { return page_ != nullptr; }

 private:
  struct Mapping {
    void *address;
    size_t bytes;
    int fd;
  };

  RmClient(RmIo &io, const DriverProfile &profile) : io_(io), profile_(profile) {}
  Result<void> openCard(unsigned minor);
  Result<uint32_t> deviceInstance(unsigned minor);
  Result<uint32_t> allocClient();
  void openUsermode();
  Result<int> openNode(const std::string &node);

  RmIo &io_;
  DriverProfile profile_;
  std::string card_node_;
  int control_fd_ = -1, card_fd_ = -1;
  uint32_t client_ = 0, device_ = 0, subdevice_ = 0, gpu_id_ = 0;
  uint32_t next_handle_ = 0x71670001;
  volatile uint8_t *page_ = nullptr;
  std::vector<Mapping> mappings_;
};

}  // namespace qgpu::exec
