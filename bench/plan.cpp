// SPDX-License-Identifier: GPL-2.0
//
// plan.cpp - real time of a change of plan: settings of all tenants to the submitted image
//
// N saturating tenants on the chip model; all weights change, then turn_apply(): core and TU104
// layer, image written and put in the slot. Register accesses of the model are counted apart: they
// cost here what the model computes, on hardware about 1 us each.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "scenario/world.hpp"

namespace {

using namespace qgpu::scenario;
using Clock = std::chrono::steady_clock;

// Time spent in the model, taken out of the measurement.
Clock::duration in_model;
unsigned accesses;
hw_io_ops inner;

u32 read32(void *ctx, u32 offset) {
  const auto begin = Clock::now();
  const u32 value = inner.read32(ctx, offset);
  in_model += Clock::now() - begin;
  accesses++;
  return value;
}
void write32(void *ctx, u32 offset, u32 value) {
  const auto begin = Clock::now();
  inner.write32(ctx, offset, value);
  in_model += Clock::now() - begin;
  accesses++;
}
void waitNs(void *ctx, u64 ns) {
  const auto begin = Clock::now();
  inner.wait_ns(ctx, ns);
  in_model += Clock::now() - begin;
}

struct Result {
  double p50_us, worst_us;
  unsigned accesses;
};

Result measure(unsigned tenants) {
  World world({.tsg_max = 256});
  for (unsigned i = 0; i < tenants; i++) world.addTenant().saturate({.duration_ns = kMilli});
  world.start();
  world.runFor(kSecond);

  const hw_io_ops *original = world.hardware().io.ops;
  inner = *original;
  hw_io_ops timed = inner;
  timed.read32 = read32;
  timed.write32 = write32;
  timed.wait_ns = waitNs;
  world.hardware().io.ops = &timed;
  std::vector<double> us;
  std::mt19937_64 random(tenants);
  for (int round = 0; round < 300; round++) {
    world.runFor(5 * kMilli);
    in_model = {};
    accesses = 0;
    const auto begin = Clock::now();
    for (unsigned i = 0; i < tenants; i++) {
      core_tenant &core = world.tenant(i).core;
      core_settings settings = core.asked;
      settings.weight = 1 + static_cast<u32>(random() % 10'000);
      turn_tenant_set(world.scheduler(), &core, &settings);
    }
    world.apply();
    const auto spent = Clock::now() - begin - in_model;
    if (world.lastError()) throw std::runtime_error("the plan was not taken");
    us.push_back(std::chrono::duration<double, std::micro>(spent).count());
  }
  world.hardware().io.ops = original;
  std::sort(us.begin(), us.end());
  return {us[us.size() / 2], us[us.size() * 99 / 100], accesses};
}

}  // namespace

int main() {
  std::printf("%8s %10s %10s %18s\n", "tenants", "P50 us", "P99 us", "register accesses");
  Result last{};
  for (const unsigned tenants : {2u, 8u, 16u, 64u}) {
    last = measure(tenants);
    std::printf("%8u %10.1f %10.1f %18u\n", tenants, last.p50_us, last.worst_us, last.accesses);
  }
  std::printf("plan: worst=%.1f us\n", last.worst_us);
  return last.worst_us > 1000;
}
