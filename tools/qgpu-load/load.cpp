// SPDX-License-Identifier: GPL-2.0
// The load itself: keep kernels outstanding, sleep until there is something to do, count ends.
#include "load.hpp"

#include <algorithm>
#include <deque>
#include <limits>

#include "clock.hpp"

namespace qgpu {
namespace {

constexpr uint64_t kRingPeriodNs = 1'000'000;  // at most 1,000 rings a second
constexpr uint64_t kLookMinNs = 100'000, kLookMaxNs = 1'000'000;
// The card's writes are seen a little late: how long to wait for those of the last instant.
constexpr uint64_t kLateNs = 2'000'000;

// One queue's kernels that are not known to be complete, oldest first.
class Stream {
 public:
  Stream(Queue &queue, const Options &options) : queue_(queue), options_(options) {}

  // Takes note of kernels that ended.
  void harvest(Measured &measured, uint64_t &kernels) {
    uint64_t time_ns = 0;
    while (!rung_at_.empty() && queue_.completed(queue_.pushed() - rung_at_.size(), time_ns)) {
      if (time_ns >= measured.begin_ns && time_ns < measured.end_ns) {
        kernels++;
        measured.latencies_ns.push_back(time_ns - std::min(time_ns, rung_at_.front()));
      }
      // Only the end that frees a full queue lets the host begin: else a place was free before.
      if (rung_at_.size() == options_.depth) place_free_at_ = time_ns;
      rung_at_.pop_front();
    }
  }

  // When the next kernel can be put into the ring; max: not before another one ends.
  uint64_t nextPushAt(uint64_t host_free_at) const {
    const size_t out = rung_at_.size();
    if (out >= options_.depth) return std::numeric_limits<uint64_t>::max();
    if (options_.host_ns) return std::max(host_free_at, place_free_at_) + options_.host_ns;
    // Without host time a refill waits until half of the ring is free: fewer, larger ones.
    return out > options_.depth / 2 ? std::numeric_limits<uint64_t>::max() : 0;
  }

  // Puts in every kernel that is ready. Returns whether there was one.
  bool refill(uint64_t now, uint64_t &host_free_at) {
    bool pushed = false;
    if (!options_.host_ns) {
      if (nextPushAt(0) != 0) return false;
      while (rung_at_.size() < options_.depth) pushOne(now);
      return true;
    }
    for (uint64_t at; (at = nextPushAt(host_free_at)) <= now; pushed = true) {
      pushOne(now);
      host_free_at = at;
    }
    return pushed;
  }

  // A time before which nothing that matters can have ended.
  uint64_t lookAgainAt(uint64_t now) const {
    if (rung_at_.empty()) return std::numeric_limits<uint64_t>::max();
    const size_t out = rung_at_.size();
    const uint64_t ends = options_.host_ns || options_.depth == 1
                              ? 1
                              : out - std::min<size_t>(out - 1, options_.depth / 2);
    return now + std::clamp(ends * options_.kernel_ns, kLookMinNs, kLookMaxNs);
  }

 private:
  void pushOne(uint64_t now) {
    queue_.push(options_.kernel_ns, options_.preemption);
    rung_at_.push_back(now);
  }

  Queue &queue_;
  const Options &options_;
  std::deque<uint64_t> rung_at_;
  uint64_t place_free_at_ = 0;
};

}  // namespace

Measured runLoad(const Options &options, Tenant &tenant, const std::atomic<bool> &stop) {
  Measured measured;
  std::vector<Stream> streams;
  // Rings are a period apart on average: one that came late does not delay those after it.
  uint64_t now = nowNs(), ring_at = now, host_free_at = now;

  for (Queue &queue : tenant.queues()) streams.emplace_back(queue, options);
  measured.kernels.resize(streams.size());
  measured.begin_ns = now + options.warmup_ns;
  measured.end_ns = measured.begin_ns + options.measured_ns;

  while (now < measured.end_ns && !stop) {
    uint64_t wake = measured.end_ns;
    bool pushed = false;
    for (size_t i = 0; i < streams.size(); i++) streams[i].harvest(measured, measured.kernels[i]);
    if (now >= ring_at)
      for (Stream &stream : streams) pushed |= stream.refill(now, host_free_at);
    if (pushed) {
      tenant.ring();
      measured.rings++;
      ring_at = std::max(ring_at + kRingPeriodNs, now);
    }
    for (const Stream &stream : streams) {
      const uint64_t push_at = stream.nextPushAt(host_free_at);
      if (push_at != std::numeric_limits<uint64_t>::max())
        wake = std::min(wake, std::max(push_at, ring_at));
      else
        wake = std::min(wake, stream.lookAgainAt(now));
    }
    sleepUntil(wake);
    now = nowNs();
  }
  measured.end_ns = std::min(measured.end_ns, now);
  sleepUntil(now + kLateNs);
  for (size_t i = 0; i < streams.size(); i++) streams[i].harvest(measured, measured.kernels[i]);
  return measured;
}

}  // namespace qgpu
