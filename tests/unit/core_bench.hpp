// SPDX-License-Identifier: GPL-2.0
//
// core_bench.hpp - the scheduling core on a test bench: tenants with TSGs, no chip. Tests say what
// a look finds; or let an ideal engine run whatever the core admits.
#ifndef QGPU_TESTS_UNIT_CORE_BENCH_HPP
#define QGPU_TESTS_UNIT_CORE_BENCH_HPP

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

extern "C" {
#include "core/core_inside.h"
}

namespace qgpu::core_bench {

constexpr uint64_t kMicro = 1'000, kMilli = 1'000'000, kSecond = 1'000'000'000;
constexpr uint64_t kSwitch = 100 * kMicro;

// QGPU_SEED=N repeats a run.
inline uint64_t seed() {
  static const uint64_t value = [] {
    const char *given = std::getenv("QGPU_SEED");
    const uint64_t s = given ? std::strtoull(given, nullptr, 0) : std::random_device{}();
    std::printf("QGPU_SEED=%llu\n", static_cast<unsigned long long>(s));
    return s;
  }();
  return value;
}

// What a runlist entry of the chip can hold: 8 bits and a shift, in units of 1024 ns.
inline u64 roundSlice(u64 ns) {
  unsigned scale = 0;
  u64 units = (ns + 512) / 1024;
  while (units > 255 && scale < 15) {
    scale++;
    units = (ns + (1024ull << scale) / 2) / (1024ull << scale);
  }
  return (units ? units : 1) * 1024 << scale;
}

inline core_params params() {
  core_params p;
  core_params_default(&p);
  p.slice_min_ns = 1024;
  p.slice_max_ns = 8'556'380'160;
  p.slice_round = roundSlice;
  return p;
}

struct Tenant {
  core_tenant core{};
  std::vector<std::unique_ptr<core_tsg>> tsgs;
};

struct Settings {
  uint32_t weight = 100;
  uint32_t guarantee_ppm = 0;
  uint32_t ceiling_ppm = CORE_PPM;
  core_class class_ = CORE_NORMAL;
};

class Bench {
 public:
  explicit Bench(core_policy policy = CORE_BURST_SHARE, uint32_t tenants = 64,
                 const core_params &p = params()) {
    if (core_init(&core, &p, tenants, seed(), now)) throw std::bad_alloc();
    core_policy_set(&core, policy, 0);
  }
  ~Bench() { core_fini(&core); }
  Bench(const Bench &) = delete;
  Bench &operator=(const Bench &) = delete;

  Tenant &add(const Settings &settings = {}, unsigned tsgs = 1) {
    auto &tenant = *tenants.emplace_back(std::make_unique<Tenant>());
    core_settings s;
    core_settings_default(&s);
    s.weight = settings.weight;
    s.guarantee_ppm = settings.guarantee_ppm;
    s.ceiling_ppm = settings.ceiling_ppm;
    s.class_ = settings.class_;
    if (core_tenant_add(&core, &tenant.core, &s)) throw std::length_error("tenants");
    for (unsigned i = 0; i < tsgs; i++) {
      auto &tsg = *tenant.tsgs.emplace_back(std::make_unique<core_tsg>());
      core_tsg_add(&core, &tsg, &tenant.core);
      core_tsg_list(&core, &tsg, true);
    }
    return tenant;
  }
  void work(Tenant &tenant, bool has = true) {
    for (auto &tsg : tenant.tsgs) core_work(&core, tsg.get(), now, has);
    if (has) return;
    for (auto &tsg : tenant.tsgs) {  // a gap this long is believed
      core_work(&core, tsg.get(), now + core_hold_ns(&core), has);
      tsg->quiet_from_ns = now;
    }
  }
  void allWork() {
    for (auto &tenant : tenants) work(*tenant);
  }
  void plan() { core_plan_make(&core, now); }
  // All have work and a plan for that.
  void saturate() {
    allWork();
    plan();
    core_pick(&core, now);
  }

  struct core core {};
  uint64_t now = 1'000'000'000'000;
  std::vector<std::unique_ptr<Tenant>> tenants;
};

}  // namespace qgpu::core_bench

#endif
