// SPDX-License-Identifier: GPL-2.0
// The driver's context-switch trace: who got the graphics/compute engine and who left it, with the
// card's own time. Through the executor's own client; no tenant is touched.
//
// A record says START (the context is restored and begins) or END (it is saved). They alternate.
// Nothing is recorded while nobody else wants the engine: the last one holds it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rm_client.hpp"

namespace qgpu::exec {

struct Switch {
  bool start;  // or end
  uint32_t pid;
  uint32_t context;
  uint64_t time_ns;  // RmClient::timeNs()
};

class Trace {
 public:
  // EACCES, EOPNOTSUPP or another error: accounting by something else.
  static Result<std::unique_ptr<Trace>> open(RmClient &client);
  ~Trace();

  // Makes the driver hand over what it has (about 55 us); without it that takes up to 60 ms, up to
  // a second before release 550.
  RmOutcome flush();
  // What has come since the last read, in order.
  void read(std::vector<Switch> &out);
  // Records that did not arrive, by their sequence numbers; always 0 before Hopper.
  uint64_t lost() const { return lost_; }
  // False once a record of a layout came that is not known: what was read may be anything.
  bool understood() const { return understood_; }
  // Readable when records have come.
  int fd() const { return event_fd_; }

 private:
  explicit Trace(RmClient &client) : client_(client) {}
  Result<void> make();
  Result<uint32_t> makeMemory(size_t bytes, const void *&address);
  Result<void> bind();
  void countLost(uint16_t sequence);

  RmClient &client_;
  int event_fd_ = -1;
  uint32_t buffer_ = 0, get_ = 0;
  const volatile void *header_ = nullptr;
  const void *records_ = nullptr;
  bool sequenced_ = false;
  uint16_t sequence_ = 0;
  uint64_t lost_ = 0;
  bool understood_ = true;
};

}  // namespace qgpu::exec
