// SPDX-License-Identifier: GPL-2.0
#include "cuda_driver.hpp"

#include <dlfcn.h>

namespace qgpu {
namespace {

template <class F>
void find(void *library, const char *name, F &function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  if (!function) throw CudaError(std::string("libcuda has no ") + name);
}

}  // namespace

CudaDriver::CudaDriver() {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) throw CudaError(std::string("no CUDA here: ") + dlerror());
  find(library, "cuInit", init);
  find(library, "cuDriverGetVersion", driverGetVersion);
  find(library, "cuGetErrorName", getErrorName);
  find(library, "cuDeviceGet", deviceGet);
  find(library, "cuDeviceGetName", deviceGetName);
  find(library, "cuDeviceGetAttribute", deviceGetAttribute);
  find(library, "cuDevicePrimaryCtxSetFlags_v2", primaryCtxSetFlags);
  find(library, "cuDevicePrimaryCtxRetain", primaryCtxRetain);
  find(library, "cuCtxSetCurrent", ctxSetCurrent);
  find(library, "cuModuleLoadData", moduleLoadData);
  find(library, "cuModuleGetFunction", moduleGetFunction);
  find(library, "cuStreamCreate", streamCreate);
  find(library, "cuStreamSynchronize", streamSynchronize);
  find(library, "cuLaunchKernel", launchKernel);
  find(library, "cuMemAlloc_v2", memAlloc);
  find(library, "cuMemsetD8_v2", memsetD8);
  find(library, "cuMemHostAlloc", memHostAlloc);
  find(library, "cuMemHostGetDevicePointer_v2", memHostGetDevicePointer);
  find(library, "cuMemcpyHtoDAsync_v2", memcpyHtoDAsync);
  find(library, "cuStreamBeginCapture_v2", streamBeginCapture);
  find(library, "cuStreamEndCapture", streamEndCapture);
  find(library, "cuGraphInstantiateWithFlags", graphInstantiate);
  find(library, "cuGraphLaunch", graphLaunch);
}

void CudaDriver::check(CUresult result, const char *what) const {
  if (!result) return;
  const char *name = nullptr;
  getErrorName(result, &name);
  throw CudaError(std::string(what) + ": " + (name ? name : std::to_string(result)));
}

}  // namespace qgpu
