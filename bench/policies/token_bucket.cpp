// SPDX-License-Identifier: GPL-2.0
//
// token_bucket.cpp - the CUDA hook libraries' way (HAMi-core, vcuda and their kin)
//
// Source: read in HAMi-core's utilization watcher and its rate limiter; written anew. A library
// in each process hooks kernel launches. Each launch takes its grid's number of blocks from a
// bucket; while the bucket is below zero the thread sleeps 10 ms and tries again. Every 120 ms a
// watcher compares the process' utilisation with its limit and gives the bucket a share, which
// grows or shrinks by an increment in proportion to the distance (5 % at least, more when it is
// beyond half of the limit). A kernel once launched is never cut. Underneath, contexts are
// time-sliced by the driver with CUDA's slice. A limit of 100 % is no limit.
//
// The utilisation is NVML's: whole per cent, of a sampling period of the driver; here 200 ms, and
// a reading describes the last period that is over, so what it tells began 200 to 400 ms ago.
//
// Simplifications: blocks of a kernel = 160 (one wave of 256 threads on 40 SMs) for each 100 us of
// its duration, 160 at least; one process a tenant; watchers start out of step.
#include <algorithm>
#include <cmath>

#include "policies/policy.hpp"

namespace qgpu::bench {
namespace {

constexpr uint64_t kWatchNs = 120 * kMilli;
constexpr uint64_t kRetryNs = 10 * kMilli;
constexpr uint64_t kSampleNs = 200 * kMilli;
constexpr int64_t kSms = 40, kThreadsPerSm = 1024, kFactor = 32;
constexpr uint64_t kWaveNs = 100 * kMicro;
constexpr int64_t kWaveBlocks = 160;
constexpr uint64_t kCudaSliceNs = 2048 * 1024;

class TokenBucket : public Policy {
 public:
  uint64_t start(Machine &machine) override {
    machine.putAll([](const Tenant &) { return kCudaSliceNs; });
    for (auto &tenant : machine.tenants()) {
      Bucket bucket;
      bucket.limit = std::max(1, static_cast<int>(std::lround(tenant->share() * 100)));
      buckets_.push_back(bucket);
    }
    machine.card().at(machine.nowNs() + kSampleNs, [this, &machine] { sample(machine); });
    for (size_t i = 0; i < buckets_.size(); i++)
      machine.card().at(machine.nowNs() + kWatchNs * (i + 1) / buckets_.size(),
                        [this, &machine, i] { watch(machine, i); });
    return kNever;
  }

  bool mayLaunch(Machine &machine, Tenant &tenant, const fakes::Kernel &kernel) override {
    Bucket &bucket = buckets_[tenant.index()];
    if (bucket.limit >= 100) return true;
    if (bucket.tokens < 0) {
      if (!bucket.asleep)
        machine.card().at(machine.nowNs() + kRetryNs, [&bucket, &tenant] {
          bucket.asleep = false;
          tenant.pump();
        });
      bucket.asleep = true;
      return false;
    }
    if (bucket.asleep) return false;  // a thread that sleeps does not look
    bucket.tokens -= blocksOf(kernel);
    return true;
  }

 private:
  struct Bucket {
    int limit = 0;
    int64_t tokens = 0, share = 0, most = kThreadsPerSm * kSms * kFactor;
    bool asleep = false;
    uint64_t run_ns = 0;
    int utilisation = 0;  // as NVML tells
  };

  static int64_t blocksOf(const fakes::Kernel &kernel) {
    return std::max<int64_t>(kWaveBlocks,
                             static_cast<int64_t>(kernel.duration_ns / kWaveNs) * kWaveBlocks);
  }

  void sample(Machine &machine) {
    for (size_t i = 0; i < buckets_.size(); i++) {
      const uint64_t run = machine.card().runNs(machine.tenant(i).tsg());
      buckets_[i].utilisation = static_cast<int>((run - buckets_[i].run_ns) * 100 / kSampleNs);
      buckets_[i].run_ns = run;
    }
    machine.card().at(machine.nowNs() + kSampleNs, [this, &machine] { sample(machine); });
  }

  void watch(Machine &machine, size_t i) {
    Bucket &bucket = buckets_[i];
    if (bucket.share == bucket.most && bucket.tokens < 0) {
      bucket.most *= 2;
      bucket.share = bucket.most;
    }
    const int64_t distance = std::max(5, std::abs(bucket.limit - bucket.utilisation));
    int64_t step = kSms * kSms * kThreadsPerSm * distance / 2560;
    if (distance > bucket.limit / 2) step = step * distance * 2 / (bucket.limit + 1);
    if (bucket.utilisation <= bucket.limit)
      bucket.share = std::min(bucket.share + step, bucket.most);
    else
      bucket.share = std::max<int64_t>(bucket.share - step, 0);
    bucket.tokens = std::min(bucket.tokens + bucket.share, bucket.most);
    machine.card().at(machine.nowNs() + kWatchNs, [this, &machine, i] { watch(machine, i); });
  }

  std::vector<Bucket> buckets_;
};

}  // namespace

std::unique_ptr<Policy> makeTokenBucket() { return std::make_unique<TokenBucket>(); }

}  // namespace qgpu::bench
