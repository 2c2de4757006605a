// SPDX-License-Identifier: GPL-2.0
//
// work.hpp - what tenants do with a card of the scenarios, and when they had work: from a launch
// on an empty channel to the completion of the last kernel. A Work drives one channel; it must
// outlive the time that passes.
//
//   Work server(world, online);
//   server.poisson({.duration_ns = 300 * kMicro}, 200, random());
//   world.runFor(20 * kSecond);
//   server.wakes();  // instants at which work came to a channel that had none
#ifndef QGPU_TESTS_SCENARIO_WORK_HPP
#define QGPU_TESTS_SCENARIO_WORK_HPP

#include <deque>
#include <functional>
#include <random>
#include <vector>

#include "judge.hpp"
#include "scenario/world.hpp"

namespace qgpu::scenario {

class Work {
 public:
  Work(World &world, WorldTenant &tenant, size_t tsg = 0)
      : world_(world), channel_(tenant.channel(tsg)) {
    channel_.onComplete([this](fakes::SimChannel &, const chip_completion &completion) {
      completed(completion.time_ns);
    });
  }
  ~Work() { channel_.onComplete(nullptr); }
  Work(const Work &) = delete;
  Work &operator=(const Work &) = delete;

  // Always @depth kernels in flight.
  void queued(const fakes::Kernel &kernel, unsigned depth = 4) {
    then_ = [this, kernel] { launch(kernel); };
    for (unsigned i = 0; i < depth; i++) launch(kernel);
  }
  // Launch one, wait for it, let the host think for @gap_ns, again.
  void sync(const fakes::Kernel &kernel, uint64_t gap_ns) {
    then_ = [this, kernel, gap_ns] { later(gap_ns, [this, kernel] { launch(kernel); }); };
    launch(kernel);
  }
  // One kernel at random instants, @per_second on average, whether the last is done or not.
  void poisson(const fakes::Kernel &kernel, double per_second, uint64_t seed) {
    random_.seed(seed);
    then_ = nullptr;
    expect(kernel, std::exponential_distribution<double>(per_second / 1e9));
  }
  // One kernel at each of the instants, the first of them now.
  void arrivals(const fakes::Kernel &kernel, const std::vector<uint64_t> &at_ns) {
    then_ = nullptr;
    const uint64_t now = world_.nowNs();
    for (const uint64_t at : at_ns)
      world_.card().at(now + at - at_ns.front(), [this, kernel] { launch(kernel); });
  }
  // Work of @on_ns in kernels, all launched at once, then @off_ns without; each burst between
  // half and one and a half times as long, each pause too.
  void bursts(const fakes::Kernel &kernel, uint64_t on_ns, uint64_t off_ns, uint64_t seed) {
    random_.seed(seed);
    then_ = [this, kernel, on_ns, off_ns] {
      if (outstanding_ == 0)
        later(about(off_ns), [this, kernel, on_ns] { burst(kernel, about(on_ns)); });
    };
    burst(kernel, about(on_ns));
  }
  void launch(const fakes::Kernel &kernel) {
    if (stopped_) return;
    if (outstanding_++ == 0) {
      wakes_.push_back(world_.nowNs());
      spans_.push_back({world_.nowNs(), ~0ull});
    }
    channel_.launch(kernel);
  }
  // Launch nothing more.
  void stop() { stopped_ = true; }
  // Called at each completion, before the program goes on.
  void onDone(std::function<void()> fn) { on_done_ = std::move(fn); }

  bench::Spans spans() const {
    bench::Spans out = spans_;
    if (outstanding_) out.back().to_ns = world_.nowNs();
    return out;
  }
  bool busy() const { return outstanding_ != 0; }
  const std::vector<uint64_t> &wakes() const { return wakes_; }
  uint64_t completedKernels() const { return channel_.completed(); }

 private:
  void completed(uint64_t now_ns) {
    if (--outstanding_ == 0) spans_.back().to_ns = now_ns;
    if (on_done_) on_done_();
    if (then_) then_();
  }
  void later(uint64_t ns, std::function<void()> fn) {
    world_.card().at(world_.nowNs() + ns, [fn, alive = std::weak_ptr<bool>(alive_)] {
      if (!alive.expired()) fn();
    });
  }
  void expect(const fakes::Kernel &kernel, std::exponential_distribution<double> gap) {
    later(static_cast<uint64_t>(gap(random_)), [this, kernel, gap] {
      launch(kernel);
      expect(kernel, gap);
    });
  }
  void burst(const fakes::Kernel &kernel, uint64_t on_ns) {
    const uint64_t count = std::max<uint64_t>(1, on_ns / kernel.duration_ns);
    for (uint64_t i = 0; i < std::min<uint64_t>(count, 1000); i++) launch(kernel);
  }
  uint64_t about(uint64_t ns) {
    return static_cast<uint64_t>(static_cast<double>(ns) *
                                 std::uniform_real_distribution<double>(0.5, 1.5)(random_));
  }

  World &world_;
  fakes::SimChannel &channel_;
  std::mt19937_64 random_;
  std::function<void()> then_, on_done_;
  uint64_t outstanding_ = 0;
  bool stopped_ = false;
  bench::Spans spans_;
  std::vector<uint64_t> wakes_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // timers may outlive it
};

}  // namespace qgpu::scenario

#endif
