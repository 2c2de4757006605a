// SPDX-License-Identifier: GPL-2.0
// The two ends that `qgpuctl calibrate` brings together: loads that it starts itself, and the
// executor that measures what becomes of them.
//
// The loads are children that die with this process, and they are no tenants; the executor drops
// what it does with them as soon as the connection or one of them ends. So whoever dies, and
// whenever, leaves nothing.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "exec/card_constants.hpp"
#include "unique_fd.hpp"

namespace qgpu::ctl {

// A qgpu-load with --json; killed when it goes.
class LoadChild {
 public:
  // `program`: a path, or a name that is looked for. On the card of this UUID only.
  static Result<std::unique_ptr<LoadChild>> start(const std::string &program,
                                                  std::vector<std::string> arguments,
                                                  const std::string &uuid);
  ~LoadChild();
  LoadChild(const LoadChild &) = delete;
  LoadChild &operator=(const LoadChild &) = delete;

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }
  // Waits for its end; what it printed.
  Result<nlohmann::json> wait();

 private:
  LoadChild() = default;
  std::string output() const;

  pid_t pid_ = -1;
  UniqueFd pidfd_, out_;
};

// The executor's socket for measuring.
class Measurer {
 public:
  static Result<Measurer> open(const std::string &path);

  // With pidfds for the request's processes. Waits until it is measured.
  Result<exec::Measured> measure(exec::MeasureRequest request, const std::vector<int> &pidfds);
  // Of that measurement, once its processes have ended.
  Result<exec::Measured> spans(exec::SpansRequest request);
  Result<void> store(const exec::CardConstants &constants);

 private:
  explicit Measurer(UniqueFd fd) : fd_(std::move(fd)) {}
  static Result<exec::Measured> measuredOf(const Result<std::vector<std::byte>> &answer);
  Result<std::vector<std::byte>> exchange(std::span<const std::byte> packet,
                                          const std::vector<int> &fds, uint64_t until_ns);

  UniqueFd fd_;
};

// CLOCK_MONOTONIC.
uint64_t monotonicNowNs();

}  // namespace qgpu::ctl
