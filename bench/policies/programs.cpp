// SPDX-License-Identifier: GPL-2.0
//
// programs.cpp - the programs that tenants of the bench run (programs.hpp)
#include "policies/programs.hpp"

#include <random>

namespace qgpu::bench {
namespace {

class Queued : public Program {
 public:
  Queued(const fakes::Kernel &kernel, unsigned depth) : kernel_(kernel), depth_(depth) {}
  void start(Tenant &tenant) override {
    for (unsigned i = 0; i < depth_; i++) tenant.launch(kernel_);
  }
  void completed(Tenant &tenant) override { tenant.launch(kernel_); }

 private:
  fakes::Kernel kernel_;
  unsigned depth_;
};

class LaunchAndWait : public Program {
 public:
  LaunchAndWait(const fakes::Kernel &kernel, uint64_t gap_ns) : kernel_(kernel), gap_ns_(gap_ns) {}
  void start(Tenant &tenant) override { tenant.launch(kernel_); }
  void completed(Tenant &tenant) override {
    tenant.machine().card().at(tenant.machine().nowNs() + gap_ns_,
                               [this, &tenant] { tenant.launch(kernel_); });
  }

 private:
  fakes::Kernel kernel_;
  uint64_t gap_ns_;
};

class Bursts : public Program {
 public:
  Bursts(const fakes::Kernel &kernel, unsigned count, uint64_t mean_pause_ns, uint64_t seed)
      : kernel_(kernel),
        count_(count),
        random_(seed),
        pause_ns_(1.0 / static_cast<double>(mean_pause_ns)) {}
  void start(Tenant &tenant) override { sleep(tenant); }
  void completed(Tenant &tenant) override {
    if (--left_ == 0) sleep(tenant);
  }

 private:
  void sleep(Tenant &tenant) {
    const uint64_t wake = tenant.machine().nowNs() + static_cast<uint64_t>(pause_ns_(random_));
    tenant.machine().card().at(wake, [this, &tenant] {
      left_ = count_;
      for (unsigned i = 0; i < count_; i++) tenant.launch(kernel_);
    });
  }

  fakes::Kernel kernel_;
  unsigned count_, left_ = 0;
  std::mt19937_64 random_;
  std::exponential_distribution<double> pause_ns_;
};

class Server : public Program {
 public:
  Server(std::shared_ptr<const std::vector<Request>> trace, const Serving &serving)
      : trace_(std::move(trace)), serving_(serving) {}
  void start(Tenant &tenant) override {
    round_ns_ = tenant.machine().nowNs();
    expectNext(tenant);
  }
  void completed(Tenant &tenant) override {
    if (steps_left_ == 0) {
      expectNext(tenant);
      return;
    }
    steps_left_--;
    tenant.machine().card().at(tenant.machine().nowNs() + serving_.host_gap_ns, [this, &tenant] {
      tenant.launch({.duration_ns = serving_.decode_ns});
    });
  }

 private:
  void expectNext(Tenant &tenant) {
    if (next_ == trace_->size()) {
      round_ns_ += arrivalNs(trace_->back()) + kSecond;
      next_ = 0;
    }
    const Request &request = (*trace_)[next_++];
    const uint64_t at =
        std::max(tenant.machine().nowNs() + serving_.host_gap_ns, round_ns_ + arrivalNs(request));
    tenant.machine().card().at(at, [this, &tenant, &request] {
      steps_left_ = request.generated_tokens;
      tenant.launch({.duration_ns = std::max<uint64_t>(1, request.context_tokens) *
                                    serving_.prefill_ns_per_token});
    });
  }
  uint64_t arrivalNs(const Request &request) const {
    return static_cast<uint64_t>(static_cast<double>(request.at_ns) / serving_.speed_up);
  }

  std::shared_ptr<const std::vector<Request>> trace_;
  Serving serving_;
  size_t next_ = 0;
  uint64_t round_ns_ = 0;
  uint32_t steps_left_ = 0;
};

}  // namespace

MakeProgram queued(const fakes::Kernel &kernel, unsigned depth) {
  return [=](uint64_t) { return std::make_unique<Queued>(kernel, depth); };
}

MakeProgram launchAndWait(const fakes::Kernel &kernel, uint64_t gap_ns) {
  return [=](uint64_t) { return std::make_unique<LaunchAndWait>(kernel, gap_ns); };
}

MakeProgram bursts(const fakes::Kernel &kernel, unsigned count, uint64_t mean_pause_ns) {
  return
      [=](uint64_t seed) { return std::make_unique<Bursts>(kernel, count, mean_pause_ns, seed); };
}

MakeProgram serve(std::shared_ptr<const std::vector<Request>> trace, const Serving &serving) {
  return [=](uint64_t) { return std::make_unique<Server>(trace, serving); };
}

}  // namespace qgpu::bench
