// SPDX-License-Identifier: GPL-2.0
//
// world.hpp - a card of the chip model, the TU104 layer and the scheduler's turn over it, in
// virtual time: what qgpu.ko does with its timer and worker, without threads. Scenario tests and
// benches add tenants with work, let time pass, and judge by the chip's own record.
//
//   World world;
//   auto &a = world.addTenant({.weight = 200}), &b = world.addTenant({.weight = 100});
//   a.saturate({.duration_ns = 50'000'000});
//   b.saturate({.duration_ns = 10'000});
//   world.start();
//   world.runFor(3 * kSecond);
//   EXPECT_LE(world.record().worstShareError(a.index, ...), ...);
#ifndef QGPU_TESTS_SCENARIO_WORLD_HPP
#define QGPU_TESTS_SCENARIO_WORLD_HPP

#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "fakes/sim_card.hpp"

extern "C" {
#include "turn.h"
}

namespace qgpu::scenario {

constexpr uint64_t kMicro = 1'000, kMilli = 1'000'000, kSecond = 1'000'000'000;

// Who ran when, by the chip's record: run time up to an instant for each of several parties.
class Record {
 public:
  explicit Record(size_t parties) : logs_(parties) {}

  void add(size_t party, uint64_t from_ns, uint64_t to_ns) {
    logs_[party].add(from_ns, to_ns);
    all_.add(from_ns, to_ns);
  }
  uint64_t runUpTo(size_t party, uint64_t ns) const { return logs_[party].upTo(ns); }
  uint64_t run(size_t party, uint64_t from_ns, uint64_t to_ns) const {
    return runUpTo(party, to_ns) - runUpTo(party, from_ns);
  }
  uint64_t delivered(uint64_t from_ns, uint64_t to_ns) const {
    return all_.upTo(to_ns) - all_.upTo(from_ns);
  }
  // When it ran, in order.
  std::vector<std::pair<uint64_t, uint64_t>> spans(size_t party) const {
    std::vector<std::pair<uint64_t, uint64_t>> out;
    for (const Span &s : logs_[party].spans) out.emplace_back(s.from, s.to);
    return out;
  }
  // Longest stretch within [from, to] in which the party did not run.
  uint64_t longestGap(size_t party, uint64_t from_ns, uint64_t to_ns) const {
    return logs_[party].longestGap(from_ns, to_ns);
  }

  // Worst deviation, in percentage points, of the party's part of all run time from @share over
  // every window of @lengths that lies in [from, to]. The deviation as a function of the window's
  // start is extreme where an edge of the record meets one of its ends.
  double worstShareError(size_t party, double share, uint64_t from_ns, uint64_t to_ns,
                         const std::vector<uint64_t> &lengths) const {
    double worst = 0;
    for (const uint64_t length : lengths)
      for (const auto &s : logs_[party].spans)
        for (const uint64_t edge : {s.from, s.to})
          for (const uint64_t start : {edge, edge - length}) {
            if (start < from_ns || start + length > to_ns || start > to_ns) continue;
            const double all = static_cast<double>(delivered(start, start + length));
            const double own = static_cast<double>(run(party, start, start + length));
            if (all > 0) worst = std::max(worst, std::abs(own / all - share) * 100);
          }
    return worst;
  }
  static std::vector<uint64_t> aboutOneSecond() {
    std::vector<uint64_t> lengths;
    for (uint64_t ms = 1000; ms <= 1030; ms += 3) lengths.push_back(ms * kMilli);
    return lengths;
  }

 private:
  struct Span {
    uint64_t from, to, before;  // before: run time up to from
  };
  struct Log {
    std::vector<Span> spans;
    uint64_t total = 0;

    void add(uint64_t from, uint64_t to) {
      if (!spans.empty() && spans.back().to == from)
        spans.back().to = to;
      else
        spans.push_back({from, to, total});
      total += to - from;
    }
    uint64_t upTo(uint64_t ns) const {
      auto it = std::upper_bound(spans.begin(), spans.end(), ns,
                                 [](uint64_t t, const Span &s) { return t < s.from; });
      if (it == spans.begin()) return 0;
      --it;
      return it->before + std::min(ns, it->to) - it->from;
    }
    uint64_t longestGap(uint64_t from, uint64_t to) const {
      uint64_t last = from, worst = 0;
      for (const Span &s : spans) {
        if (s.to <= from) continue;
        if (s.from >= to) break;
        if (s.from > last) worst = std::max(worst, s.from - last);
        last = s.to;
      }
      return to > last ? std::max(worst, to - last) : worst;
    }
  };
  std::vector<Log> logs_;
  Log all_;
};

// A TSG of the card as the scheduler knows it.
struct WorldTsg {
  fakes::SimTsg *sim = nullptr;
  std::vector<hw_channel> channels;
  turn_tsg turn{};
};

struct WorldTenant {
  size_t index = 0;
  core_tenant core{};
  std::vector<std::unique_ptr<WorldTsg>> tsgs;

  fakes::SimChannel &channel(size_t tsg = 0) { return tsgs.at(tsg)->sim->channel(); }
  void saturate(const fakes::Kernel &kernel, unsigned depth = 4) {
    for (auto &tsg : tsgs) tsg->sim->channel().saturate(kernel, depth);
  }
};

struct TenantOptions {
  uint32_t weight = 100;
  uint32_t guarantee_ppm = 0;
  uint32_t ceiling_ppm = CORE_PPM;
  core_class class_ = CORE_NORMAL;
  uint64_t wake_ns = 0, hang_ns = 0;
  unsigned tsgs = 1;
};

inline core_settings settingsOf(const TenantOptions &options) {
  return {.weight = options.weight,
          .guarantee_ppm = options.guarantee_ppm,
          .ceiling_ppm = options.ceiling_ppm,
          .class_ = options.class_,
          .wake_ns = options.wake_ns,
          .hang_ns = options.hang_ns};
}

// Guarantee = ceiling: the same time alone and in company.
inline TenantOptions fixedAt(uint32_t share_ppm, unsigned tsgs = 1) {
  return {.guarantee_ppm = share_ppm, .ceiling_ppm = share_ppm, .tsgs = tsgs};
}

struct WorldOptions {
  core_policy policy = CORE_BURST_SHARE;
  uint64_t cycle_ns = 0;
  uint32_t tsg_max = 128;
  uint32_t image_entries = 0;  // 0 = enough for every TSG and one again
  uint64_t seed = 1;
  fakes::SimOptions sim = {.mmio_read_ns = 1000, .mmio_write_ns = 100, .start_ns = 1'000'000};
};

class World {
 public:
  explicit World(const WorldOptions &options = {}) : options_(options), card_(options.sim) {
    hw_.ops = &tu104_ops;
    hw_.io = card_.io();
    if (hw_.ops->probe(&hw_)) throw std::runtime_error("the chip was not recognised");
    turn_config cfg{};
    cfg.hw = &hw_;
    cfg.runlist = 0;
    cfg.engine_index = engineIndex();
    for (auto &image : cfg.images)
      image = card_.allocate(
          16 * (options.image_entries ? options.image_entries : (options.tsg_max + 1) * 3));
    cfg.tsg_max = options.tsg_max;
    cfg.tenant_max = options.tsg_max;
    cfg.params = params();
    cfg.seed = options.seed;
    turn_ = turn_create(&cfg, card_.nowNs());
    if (!turn_) throw std::bad_alloc();
    turn_policy_set(turn_, options.policy, options.cycle_ns);
  }
  ~World() { turn_destroy(turn_); }
  World(const World &) = delete;
  World &operator=(const World &) = delete;

  static core_params params() {
    core_params p;
    core_params_default(&p);
    p.slice_min_ns = 1024;
    p.slice_max_ns = 8'556'380'160;
    p.slice_round = tu104_ops.slice_round;
    return p;
  }

  WorldTenant &addTenant(const TenantOptions &options = {}) {
    auto &tenant = *tenants_.emplace_back(std::make_unique<WorldTenant>());
    tenant.index = tenants_.size() - 1;
    const core_settings settings = settingsOf(options);
    if (turn_tenant_add(turn_, &tenant.core, &settings)) throw std::length_error("tenants");
    for (unsigned i = 0; i < options.tsgs; i++) addTsg(tenant);
    return tenant;
  }
  WorldTsg &addTsg(WorldTenant &tenant) {
    auto &tsg = *tenant.tsgs.emplace_back(std::make_unique<WorldTsg>());
    createTsg(tsg, ++serial_);
    party_of_.resize(4096, SIZE_MAX);
    party_of_[tsg.turn.tsg_id] = tenant.index;
    if (turn_tsg_add(turn_, &tsg.turn, &tenant.core)) throw std::length_error("tsgs");
    return tsg;
  }
  // Of nobody that is known; the caller keeps it for as long as this lives.
  void addNobodysTsg(WorldTsg &tsg) {
    createTsg(tsg, ~0ull);
    tsg.turn.nobody = true;
    if (turn_tsg_add(turn_, &tsg.turn, nullptr)) throw std::length_error("tsgs");
  }
  // As the driver does when a TSG is freed: out of its list first, then gone.
  void removeTsg(WorldTenant &tenant, size_t i) {
    WorldTsg &tsg = *tenant.tsgs.at(i);
    tsg.turn.listed = false;
    turn_list_changed(turn_);
    last_error_ = turn_apply(turn_, card_.nowNs());
    turn_tsg_remove(turn_, &tsg.turn);
    tenant.tsgs.erase(tenant.tsgs.begin() + static_cast<long>(i));
    next_turn_ns_ = card_.nowNs();
  }

  void start() {
    started_ns_ = card_.nowNs();
    turn_start(turn_, card_.nowNs());
    last_error_ = turn_apply(turn_, card_.nowNs());
    next_turn_ns_ = card_.nowNs();
  }
  // What the driver does when its list changes and changes back.
  void changeList() {
    turn_list_changed(turn_);
    last_error_ = turn_relist(turn_, card_.nowNs());
    next_turn_ns_ = card_.nowNs();
  }
  void apply() {
    last_error_ = turn_apply(turn_, card_.nowNs());
    next_turn_ns_ = card_.nowNs();
  }

  void runFor(uint64_t ns) { runTo(card_.nowNs() + ns); }
  // The module's worker: a turn whenever one is due.
  void runTo(uint64_t ns) {
    while (card_.nowNs() < ns) {
      card_.advanceTo(std::max(card_.nowNs(), std::min(ns, next_turn_ns_)));
      if (card_.nowNs() < next_turn_ns_) continue;
      u64 next = 0;
      last_error_ = turn_run(turn_, card_.nowNs(), &next);
      turns_++;
      next_turn_ns_ = next;
    }
  }
  // The same with driver list changes at random instants, on average every @mean_ns.
  void runToWithListChanges(uint64_t ns, uint64_t mean_ns, std::mt19937_64 &random) {
    std::exponential_distribution<double> gap(1.0 / static_cast<double>(mean_ns));
    while (card_.nowNs() < ns) {
      runTo(std::min(ns, card_.nowNs() + 1 + static_cast<uint64_t>(gap(random))));
      changeList();
    }
  }

  Record record() const {
    Record record(tenants_.size());
    std::vector<uint64_t> recorded(4096, 0);
    for (const fakes::Ran &ran : card_.records()) {
      if (ran.engine != 0 || party_of_[ran.tsg] == SIZE_MAX) continue;
      record.add(party_of_[ran.tsg], ran.from_ns, ran.to_ns);
      recorded[ran.tsg] += ran.to_ns - ran.from_ns;
    }
    // The model reports a visit when it is over: what runs now is what its totals have beyond.
    for (const auto &tenant : tenants_)
      for (const auto &tsg : tenant->tsgs) {
        const uint64_t missing = card_.runNs(*tsg->sim) - recorded[tsg->sim->id()];
        if (missing) record.add(tenant->index, card_.nowNs() - missing, card_.nowNs());
      }
    return record;
  }
  // What it ran up to now by the chip.
  uint64_t chipRunNs(const WorldTenant &tenant) const {
    uint64_t ns = 0;
    for (const auto &tsg : tenant.tsgs) ns += card_.runNs(*tsg->sim);
    return ns;
  }
  // As of now: a turn is run, as the module's timer might.
  core_counters counters(WorldTenant &tenant) {
    u64 next = 0;
    last_error_ = turn_run(turn_, card_.nowNs(), &next);
    next_turn_ns_ = next;
    core_counters out;
    turn_tenant_counters(turn_, &tenant.core, &out);
    return out;
  }

  fakes::SimCard &card() { return card_; }
  hw &hardware() { return hw_; }
  turn *scheduler() { return turn_; }
  WorldTenant &tenant(size_t i) { return *tenants_.at(i); }
  size_t tenantCount() const { return tenants_.size(); }
  uint64_t nowNs() const { return card_.nowNs(); }
  uint64_t startNs() const { return started_ns_; }
  uint64_t turns() const { return turns_; }
  int lastError() const { return last_error_; }

 private:
  // As the driver makes it and lists it.
  void createTsg(WorldTsg &tsg, uint64_t serial) {
    tsg.sim = &card_.createTsg();
    for (size_t i = 0; i < tsg.sim->channelCount(); i++)
      tsg.channels.push_back(tsg.sim->channel(i).hwChannel());
    tsg.turn.serial = serial;
    tsg.turn.tsg_id = tsg.sim->id();
    tsg.turn.driver_slice_ns = 1'048'576;
    tsg.turn.channel_count = static_cast<u16>(tsg.channels.size());
    tsg.turn.channels = tsg.channels.data();
    tsg.turn.listed = true;
  }

  u32 engineIndex() const {
    for (u32 i = 0; i < hw_.id.engine_count; i++)
      if (hw_.id.engines[i].type == HW_ENGINE_GRAPHICS) return hw_.id.engines[i].index;
    throw std::runtime_error("no graphics engine");
  }

  WorldOptions options_;
  fakes::SimCard card_;
  hw hw_{};
  turn *turn_ = nullptr;
  std::vector<std::unique_ptr<WorldTenant>> tenants_;
  std::vector<size_t> party_of_;
  uint64_t serial_ = 0, next_turn_ns_ = 0, turns_ = 0, started_ns_ = 0;
  int last_error_ = 0;
};

}  // namespace qgpu::scenario

#endif
