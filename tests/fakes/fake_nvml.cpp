// SPDX-License-Identifier: GPL-2.0
// NVML as far as the executor uses it, as a shared object of its own: it is loaded as the real one
// is. What it answers is set through fakeNvml().
#include "fakes/fake_nvml.hpp"

#include <cstring>

namespace {

qgpu::fakes::FakeNvml g_state;

struct Sample {
  unsigned pid;
  unsigned long long time_us;
  unsigned sm_percent, memory_percent, encoder_percent, decoder_percent;
};

}  // namespace

extern "C" {

qgpu::fakes::FakeNvml *fakeNvml() { return &g_state; }

int nvmlInit_v2() {
  g_state.starts++;
  return g_state.init_code;
}

int nvmlShutdown() {
  g_state.starts--;
  return 0;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
  *device = &g_state;
  return std::strcmp(uuid, "GPU-fake") == 0 ? 0 : 6;
}

int nvmlDeviceGetProcessUtilization(void *, Sample *samples, unsigned *count,
                                    unsigned long long since_us) {
  g_state.since_us = since_us;
  if (g_state.read_code) return g_state.read_code;
  unsigned n = 0;
  for (const auto &[pid, percent] : g_state.percents)
    if (n < *count) samples[n++] = {pid, g_state.time_us, percent, 0, 0, 0};
  *count = n;
  return n ? 0 : 6;
}
}
