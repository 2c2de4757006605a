// SPDX-License-Identifier: GPL-2.0
// A context on a real card with the spin kernel in it.
#pragma once

#include <cstdint>
#include <string>

#include "cuda_driver.hpp"

namespace qgpu {

class CudaCard {
 public:
  // loops_per_us: how fast the card is; 0 = measured now (on a card that others use, too slow by
  // what they take within 0.4 ms).
  CudaCard(int ordinal, double loops_per_us);

  const std::string &name() const { return name_; }
  int driverVersion() const { return version_; }  // 13000 = CUDA 13.0
  double loopsPerUs() const { return loops_per_us_; }
  const CudaDriver &driver() const { return cuda_; }
  CUhandle stream() const { return stream_; }

  // One kernel of this length, filling the card; returns at once.
  void launch(double us) { launchLoops(loopsOf(us)); }
  void synchronize();
  // Kernels launched by launch() that have ended, and the time of work done, both since the
  // start. Read from memory: no call, any thread.
  uint64_t ended() const { return mirror_[1]; }
  double workUs() const { return static_cast<double>(mirror_[0]) / loops_per_us_; }

  // A graph of `count` kernels of this length, and one launch of it.
  CUhandle makeGraph(unsigned count, double us);
  void launchGraph(CUhandle graph);

 private:
  uint64_t loopsOf(double us) const;
  void launchLoops(uint64_t loops);
  void calibrate();
  double secondsOf(uint64_t loops);

  CudaDriver cuda_;
  std::string name_;
  int version_ = 0, multiprocessors_ = 0;
  CUhandle context_ = nullptr, module_ = nullptr, kernel_ = nullptr, stream_ = nullptr;
  CUdeviceptr total_ = 0, mirror_address_ = 0;
  volatile uint64_t *mirror_ = nullptr;
  double loops_per_us_ = 0;
};

}  // namespace qgpu
