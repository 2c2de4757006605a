// SPDX-License-Identifier: GPL-2.0
// What the fake NVML answers, and what it was asked.
#pragma once

#include <map>

namespace qgpu::fakes {

struct FakeNvml {
  int init_code = 0, read_code = 0;
  std::map<unsigned, unsigned> percents;  // by pid
  unsigned long long time_us = 1;         // of the samples
  unsigned long long since_us = 0;        // as it was asked
  int starts = 0;                         // inits less shutdowns
};

}  // namespace qgpu::fakes
