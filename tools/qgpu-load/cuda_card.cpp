// SPDX-License-Identifier: GPL-2.0
#include "cuda_card.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "cuda_kernel.hpp"

namespace qgpu {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kBlocksPerMultiprocessor = 2;
// Between two writes of the total.
constexpr double kChunkUs = 10;

}  // namespace

CudaCard::CudaCard(int ordinal, double loops_per_us) : loops_per_us_(loops_per_us) {
  CUdevice device = 0;
  char name[128] = {};
  void *host = nullptr;

  cuda_.check(cuda_.init(0), "cuInit");
  cuda_.check(cuda_.driverGetVersion(&version_), "cuDriverGetVersion");
  cuda_.check(cuda_.deviceGet(&device, ordinal), "cuDeviceGet");
  cuda_.check(cuda_.deviceGetName(name, sizeof(name) - 1, device), "cuDeviceGetName");
  name_ = name;
  cuda_.check(cuda_.deviceGetAttribute(&multiprocessors_, kCudaMultiprocessors, device),
              "cuDeviceGetAttribute");
  cuda_.primaryCtxSetFlags(device, kCudaSpin);
  cuda_.check(cuda_.primaryCtxRetain(&context_, device), "cuDevicePrimaryCtxRetain");
  cuda_.check(cuda_.ctxSetCurrent(context_), "cuCtxSetCurrent");
  cuda_.check(cuda_.moduleLoadData(&module_, kCudaKernel), "compiling the kernel");
  cuda_.check(cuda_.moduleGetFunction(&kernel_, module_, kCudaKernelName), "cuModuleGetFunction");
  cuda_.check(cuda_.streamCreate(&stream_, kCudaStreamNonBlocking), "cuStreamCreate");
  cuda_.check(cuda_.memAlloc(&total_, 4096), "cuMemAlloc");
  cuda_.check(cuda_.memsetD8(total_, 0, 4096), "cuMemsetD8");
  cuda_.check(cuda_.memHostAlloc(&host, 4096, kCudaHostMapped), "cuMemHostAlloc");
  mirror_ = static_cast<volatile uint64_t *>(host);
  mirror_[0] = 0;
  mirror_[1] = 0;
  cuda_.check(cuda_.memHostGetDevicePointer(&mirror_address_, host, 0),
              "cuMemHostGetDevicePointer");
  if (loops_per_us_ <= 0) calibrate();
  // Kernels that calibrated are not counted.
  cuda_.check(cuda_.memsetD8(total_, 0, 4096), "cuMemsetD8");
  cuda_.check(cuda_.streamSynchronize(nullptr), "cuStreamSynchronize");
  mirror_[0] = 0;
  mirror_[1] = 0;
}

uint64_t CudaCard::loopsOf(double us) const {
  return static_cast<uint64_t>(std::max(1.0, std::round(us * loops_per_us_)));
}

void CudaCard::launchLoops(uint64_t loops) {
  uint64_t chunk = loops_per_us_ > 0 ? loopsOf(kChunkUs) : loops;
  void *params[] = {&total_, &mirror_address_, &loops, &chunk};
  const auto blocks = static_cast<unsigned>(multiprocessors_) * kBlocksPerMultiprocessor;
  cuda_.check(
      cuda_.launchKernel(kernel_, blocks, 1, 1, kThreads, 1, 1, 0, stream_, params, nullptr),
      "cuLaunchKernel");
}

void CudaCard::synchronize() { cuda_.check(cuda_.streamSynchronize(stream_), "the kernel"); }

double CudaCard::secondsOf(uint64_t loops) {
  const auto begin = std::chrono::steady_clock::now();
  launchLoops(loops);
  synchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The difference of two lengths is free of what a launch costs; the least of many tries is free of
// what others took.
void CudaCard::calibrate() {
  uint64_t loops = 1000;
  while (secondsOf(loops) < 1e-3 && loops < 1u << 30) loops *= 2;  // brings the clocks up as well
  for (int i = 0; i < 200; i++) secondsOf(loops);
  double least[2] = {1, 1};
  for (int i = 0; i < 60; i++)
    for (int k = 0; k < 2; k++) least[k] = std::min(least[k], secondsOf(loops / 4 << k));
  loops_per_us_ = static_cast<double>(loops / 4) / ((least[1] - least[0]) * 1e6);
}

CUhandle CudaCard::makeGraph(unsigned count, double us) {
  CUhandle graph = nullptr, executable = nullptr;
  cuda_.check(cuda_.streamBeginCapture(stream_, kCudaCaptureThreadLocal), "cuStreamBeginCapture");
  for (unsigned i = 0; i < count; i++) launch(us);
  cuda_.check(cuda_.streamEndCapture(stream_, &graph), "cuStreamEndCapture");
  cuda_.check(cuda_.graphInstantiate(&executable, graph, 0), "cuGraphInstantiate");
  return executable;
}

void CudaCard::launchGraph(CUhandle graph) {
  cuda_.check(cuda_.graphLaunch(graph, stream_), "cuGraphLaunch");
}

}  // namespace qgpu
