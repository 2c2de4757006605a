// SPDX-License-Identifier: GPL-2.0
// How busy each process keeps the card, as NVML has it: for when the driver's trace cannot be had.
// The library is loaded when it is there; nothing of it is needed to build.
//
// A sample says for which part of the last sixth of a second or so a process had work on the
// card, in whole percents. It is nothing to schedule by: several processes may each have had it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../result.hpp"

namespace qgpu::exec {

class Utilisation {
 public:
  // ENOENT: no such library; else what it says. `library`: a name or a path.
  static Result<std::unique_ptr<Utilisation>> open(const std::string &uuid,
                                                   const std::string &library);
  ~Utilisation();
  Utilisation(const Utilisation &) = delete;
  Utilisation &operator=(const Utilisation &) = delete;

  // By pid, 0 to 1: of the time since the last call, the mean of its samples. Who has none had no
  // work.
  Result<std::map<uint32_t, double>> read();

 private:
  struct Library;

  explicit Utilisation(std::unique_ptr<Library> library);

  std::unique_ptr<Library> library_;
  void *device_ = nullptr;
  uint64_t seen_us_ = 0;  // the youngest sample
};

}  // namespace qgpu::exec
