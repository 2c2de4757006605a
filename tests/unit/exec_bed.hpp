// SPDX-License-Identifier: GPL-2.0
// An executor on a fake driver, in virtual time.
#pragma once

#include <gtest/gtest.h>
#include <linux/qgpu.h>

#include <memory>
#include <vector>

#include "daemon/exec/executor.hpp"
#include "fakes/child.hpp"
#include "fakes/fake_rm.hpp"
#include "fakes/seed.hpp"
#include "fakes/temp_folder.hpp"

namespace qgpu::exec {

constexpr uint64_t kMilli = 1'000'000, kSecond = 1'000'000'000;

inline PlanTenant tenantOf(uint32_t id, uint32_t weight, uint32_t guarantee_ppm = 0,
                           uint32_t ceiling_ppm = QGPU_PPM) {
  PlanTenant out{};
  out.id = id;
  out.weight = weight;
  out.guarantee_ppm = guarantee_ppm;
  out.ceiling_ppm = ceiling_ppm;
  return out;
}

// So many, all alike, of the numbers 1 and up.
inline std::vector<PlanTenant> equalTenants(uint32_t count) {
  std::vector<PlanTenant> out;
  for (uint32_t id = 1; id <= count; id++) out.push_back(tenantOf(id, 100));
  return out;
}

struct Bed {
  fakes::TempFolder folder;
  fakes::FakeRm io;
  std::unique_ptr<Executor> executor;
  std::vector<std::unique_ptr<fakes::Child>> children;
  std::vector<Event> events;

  std::string nvml;              // a library, or none
  const Pulse *pulse = nullptr;  // the guard's

  void open(uint32_t restarts = 0) {
    auto own = RmClient::open(io, *driverProfile({580, 159, 4}, DriverChoice::kExact), 0);
    ASSERT_TRUE(own) << own.error().text();
    ExecutorOptions options;
    options.uuid = "GPU-fake";
    options.run_dir = options.state_dir = folder.path();
    options.worker_restarts = restarts;
    options.nvml = nvml;
    options.pulse = pulse;
    options.seed = fakes::seed();
    options.now_ns = [this] { return io.nowNs(); };
    auto made = Executor::create(std::move(*own), options);
    ASSERT_TRUE(made) << made.error().text();
    executor = std::move(*made);
  }

  Result<void> plan(uint32_t policy, std::vector<PlanTenant> tenants) {
    static uint64_t generation = 0;
    Plan plan{};
    plan.head.policy = policy;
    plan.head.generation = ++generation;
    plan.tenants = std::move(tenants);
    uint32_t guilty = 0;
    return executor->setPlan(plan, guilty);
  }

  // A process of this tenant that does this work; its number for tsg(). Its control node has this
  // number there; -1: is not to be seen.
  size_t add(uint32_t tenant, fakes::FakeWork work, int control_fd = 5) {
    children.push_back(std::make_unique<fakes::Child>());
    fakes::Child &child = *children.back();
    fakes::FakeTsg &tsg = io.addProcess(child.pid(), 8, control_fd);
    tsg.work = work;
    tsg.left_ns = work.kind == fakes::FakeWork::kSync ? work.kernel_ns : 0;
    EXPECT_TRUE(executor->addProcess(child.pid(), child.pidfd(), tenant));
    return children.size() - 1;
  }
  void moveTo(size_t i, uint32_t tenant) {
    EXPECT_TRUE(executor->addProcess(children.at(i)->pid(), children.at(i)->pidfd(), tenant));
  }
  void end(size_t i) {
    io.endProcess(children.at(i)->pid());
    children.at(i)->end();
  }
  fakes::FakeTsg &tsg(size_t i) { return io.tsg(children.at(i)->pid()); }

  void run(uint64_t ns) {
    const uint64_t end = io.nowNs() + ns;
    while (io.nowNs() < end) {
      const uint64_t wait = executor->turn();
      const auto fresh = executor->takeEvents();
      events.insert(events.end(), fresh.begin(), fresh.end());
      io.advance(std::min(wait, end - std::min(end, io.nowNs())));
    }
  }
  std::string lastSentence(EventKind kind) const {
    std::string out;
    for (const Event &event : events)
      if (event.kind == kind) out = event.sentence;
    return out;
  }
  size_t count(EventKind kind) const {
    size_t n = 0;
    for (const Event &event : events) n += event.kind == kind;
    return n;
  }
  // Part of a span that each of these ran.
  std::vector<double> shares(const std::vector<size_t> &of, uint64_t ns) {
    std::vector<uint64_t> before;
    for (const size_t i : of) before.push_back(tsg(i).run_ns);
    run(ns);
    std::vector<double> out;
    for (size_t k = 0; k < of.size(); k++)
      out.push_back(static_cast<double>(tsg(of[k]).run_ns - before[k]) / static_cast<double>(ns));
    return out;
  }
};

inline fakes::FakeWork queued() { return {fakes::FakeWork::kQueued, 0, 0, 0}; }
// Kernels so long, so far apart, of which so many pile up.
inline fakes::FakeWork paced(uint64_t kernel_us, uint64_t every_us, unsigned depth) {
  return {fakes::FakeWork::kPaced, kernel_us * 1000, every_us * 1000, depth};
}
inline fakes::FakeWork synced(uint64_t kernel_us, uint64_t gap_us = 10) {
  return {fakes::FakeWork::kSync, kernel_us * 1000, gap_us * 1000, 0};
}

}  // namespace qgpu::exec
