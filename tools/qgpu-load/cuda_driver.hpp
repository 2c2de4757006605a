// SPDX-License-Identifier: GPL-2.0
// The part of the CUDA driver library that the load uses, found at run time: nothing of CUDA is
// needed to build. Values and signatures are those of cuda.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace qgpu {

// libcuda is not there, or it said no.
class CudaError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUhandle = void *;  // context, module, function, stream, graph

struct CudaDriver {
  CUresult (*init)(unsigned flags);
  CUresult (*driverGetVersion)(int *version);
  CUresult (*getErrorName)(CUresult error, const char **name);
  CUresult (*deviceGet)(CUdevice *device, int ordinal);
  CUresult (*deviceGetName)(char *name, int bytes, CUdevice device);
  CUresult (*deviceGetAttribute)(int *value, int attribute, CUdevice device);
  CUresult (*primaryCtxSetFlags)(CUdevice device, unsigned flags);
  CUresult (*primaryCtxRetain)(CUhandle *context, CUdevice device);
  CUresult (*ctxSetCurrent)(CUhandle context);
  CUresult (*moduleLoadData)(CUhandle *module, const void *image);
  CUresult (*moduleGetFunction)(CUhandle *function, CUhandle module, const char *name);
  CUresult (*streamCreate)(CUhandle *stream, unsigned flags);
  CUresult (*streamSynchronize)(CUhandle stream);
  CUresult (*launchKernel)(CUhandle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                           unsigned by, unsigned bz, unsigned shared_bytes, CUhandle stream,
                           void **params, void **extra);
  CUresult (*memAlloc)(CUdeviceptr *at, size_t bytes);
  CUresult (*memsetD8)(CUdeviceptr at, unsigned char value, size_t bytes);
  CUresult (*memHostAlloc)(void **at, size_t bytes, unsigned flags);
  CUresult (*memHostGetDevicePointer)(CUdeviceptr *at, void *host, unsigned flags);
  CUresult (*memcpyHtoDAsync)(CUdeviceptr to, const void *from, size_t bytes, CUhandle stream);
  CUresult (*streamBeginCapture)(CUhandle stream, int mode);
  CUresult (*streamEndCapture)(CUhandle stream, CUhandle *graph);
  CUresult (*graphInstantiate)(CUhandle *executable, CUhandle graph, unsigned long long flags);
  CUresult (*graphLaunch)(CUhandle executable, CUhandle stream);

  // Loads libcuda.so.1; throws CudaError.
  CudaDriver();
  // Throws CudaError with the error's name.
  void check(CUresult result, const char *what) const;
};

constexpr int kCudaMultiprocessors = 16;  // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
constexpr unsigned kCudaSpin = 1;         // CU_CTX_SCHED_SPIN
constexpr unsigned kCudaHostMapped = 2;   // CU_MEMHOSTALLOC_DEVICEMAP
constexpr unsigned kCudaStreamNonBlocking = 1;
constexpr int kCudaCaptureThreadLocal = 1;

}  // namespace qgpu
