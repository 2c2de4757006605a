// SPDX-License-Identifier: GPL-2.0
#include "utilisation.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cerrno>

namespace qgpu::exec {
namespace {

// nvml.h: nvmlReturn_t and nvmlProcessUtilizationSample_t; the same since NVML 8.
constexpr int kSuccess = 0, kNotFound = 6, kInsufficientSize = 7;
struct Sample {
  unsigned pid;
  unsigned long long time_us;
  unsigned sm_percent, memory_percent, encoder_percent, decoder_percent;
};
static_assert(sizeof(Sample) == 32);

constexpr unsigned kSamplesMax = 4096;

}  // namespace

struct Utilisation::Library {
  void *handle = nullptr;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*deviceByUuid)(const char *uuid, void **device) = nullptr;
  int (*utilisation)(void *device, Sample *samples, unsigned *count,
                     unsigned long long since_us) = nullptr;
  bool initialised = false;

  ~Library() {
    if (initialised) shutdown();
    if (handle) dlclose(handle);
  }
  template <class Function>
  bool find(Function &function, const char *name) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    return function != nullptr;
  }
  bool findAll() {
    return find(init, "nvmlInit_v2") && find(shutdown, "nvmlShutdown") &&
           find(deviceByUuid, "nvmlDeviceGetHandleByUUID") &&
           find(utilisation, "nvmlDeviceGetProcessUtilization");
  }
};

Utilisation::Utilisation(std::unique_ptr<Library> library) : library_(std::move(library)) {}
Utilisation::~Utilisation() = default;

namespace {

Error said(const char *what, int code) {
  return {EIO, std::string("NVML: ") + what + ": error " + std::to_string(code), {}};
}

}  // namespace

Result<std::unique_ptr<Utilisation>> Utilisation::open(const std::string &uuid,
                                                       const std::string &library) {
  auto loaded = std::make_unique<Library>();
  loaded->handle = library.empty() ? nullptr : dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!loaded->handle) return Error{ENOENT, "there is no NVML", library};
  if (!loaded->findAll()) return Error{ENOENT, "this NVML lacks what is needed", library};
  if (const int code = loaded->init(); code != kSuccess) return said("it does not start", code);
  loaded->initialised = true;
  std::unique_ptr<Utilisation> out(new Utilisation(std::move(loaded)));
  if (const int code = out->library_->deviceByUuid(uuid.c_str(), &out->device_); code != kSuccess)
    return said("it has no such card", code);
  if (const auto first = out->read(); !first) return first.error();
  return out;
}

Result<std::map<uint32_t, double>> Utilisation::read() {
  std::vector<Sample> samples(kSamplesMax);
  unsigned count = kSamplesMax;
  const int code = library_->utilisation(device_, samples.data(), &count, seen_us_);
  std::map<uint32_t, double> out;
  if (code == kNotFound) return out;
  if (code != kSuccess && code != kInsufficientSize)
    return said("it does not say who is busy", code);
  samples.resize(std::min(count, kSamplesMax));
  std::map<uint32_t, unsigned> counts;
  for (const Sample &sample : samples) {
    out[sample.pid] += std::min(sample.sm_percent, 100u) / 100.0;
    counts[sample.pid]++;
    seen_us_ = std::max<uint64_t>(seen_us_, sample.time_us);
  }
  for (auto &[pid, part] : out) part /= counts[pid];
  return out;
}

}  // namespace qgpu::exec
