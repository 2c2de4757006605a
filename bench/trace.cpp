// SPDX-License-Identifier: GPL-2.0
//
// trace.cpp - what the scheduler's log costs: records a second, their time, and that shares stay
//
// 2, 8 and 64 saturating tenants with kernels of 10 us and 1 ms over the chip model, each once
// without and once with a listener that fills a ring as kmod/log.c does. Virtual time is the same
// with and without unless the log changes a decision, so what each tenant ran must be equal to the
// unit; what a record costs is real time, of this machine.
#include <chrono>
#include <cstdio>
#include <vector>

#include "scenario/world.hpp"

namespace {

using namespace qgpu::scenario;

constexpr uint64_t kWatchedNs = 2 * kSecond;
constexpr double kBarPercent = 1;

// As the module's, but for the lock.
struct Ring {
  struct Record {
    uint64_t from_ns, to_ns;
    const void *tenant, *due;
    uint8_t seen, end, window;
  };
  std::vector<Record> records = std::vector<Record>(4096);
  uint64_t next = 0;

  static void take(void *self, const core_visit *visit) {
    auto &ring = *static_cast<Ring *>(self);
    ring.records[ring.next++ % ring.records.size()] = {visit->from_ns,
                                                       visit->to_ns,
                                                       visit->tenant,
                                                       visit->due,
                                                       static_cast<uint8_t>(visit->seen),
                                                       static_cast<uint8_t>(visit->end),
                                                       static_cast<uint8_t>(visit->kind)};
  }
};

std::vector<uint64_t> run(unsigned tenants, uint64_t kernel_ns, Ring *ring) {
  WorldOptions options;
  options.seed = tenants;
  World world(options);
  for (unsigned i = 0; i < tenants; ++i)
    world.addTenant({.weight = 100 * (i + 1)}).saturate({.duration_ns = kernel_ns}, 2);
  if (ring) turn_listen(world.scheduler(), &Ring::take, ring);
  world.start();
  world.runTo(world.nowNs() + kWatchedNs);
  const chip_totals totals = world.card().totals();
  return {totals.run_ns, totals.switch_ns, totals.idle_ns};
}

double recordNs() {
  Ring ring;
  core_visit visit{};
  constexpr int kRecords = 1'000'000;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kRecords; ++i) {
    visit.from_ns = static_cast<uint64_t>(i);
    Ring::take(&ring, &visit);
  }
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  return took.count() / kRecords;
}

}  // namespace

int main() {
  const double record_ns = recordNs();
  double worst = 0;
  bool same = true;
  std::printf("%8s %10s %12s %14s %s\n", "tenants", "kernel us", "records/s", "CPU time, ppm",
              "shares");
  for (unsigned tenants : {2u, 8u, 64u})
    for (uint64_t kernel_ns : {10 * kMicro, kMilli}) {
      Ring ring;
      const bool equal = run(tenants, kernel_ns, nullptr) == run(tenants, kernel_ns, &ring);
      const double per_s = static_cast<double>(ring.next) * kSecond / kWatchedNs;
      const double ppm = per_s * record_ns / 1e9 * 1e6;
      std::printf("%8u %10.0f %12.0f %14.2f %s\n", tenants, static_cast<double>(kernel_ns) / 1e3,
                  per_s, ppm, equal ? "the same" : "DIFFER");
      worst = std::max(worst, ppm / 1e4);
      same = same && equal;
    }
  std::printf("a record takes %.1f ns here\n", record_ns);
  std::printf("trace: worst=%.4f %%\n", worst);
  return same && worst <= kBarPercent ? 0 : 1;
}
