// SPDX-License-Identifier: GPL-2.0
//
// explore.cpp - every order of a few events for two or three tenants, to a depth: work comes and
// goes, turns are in time or late, the list changes, work cannot be cut, settings and policies
// change. After each event and in the time that follows, what must always hold is checked.
//
//   explore [DEPTH]        default 4: all orders of four events in each setting
//   explore DEPTH SETTING ACTION...   one of them again, as printed
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

#include "tiny_chip.hpp"

extern "C" {
#include "core/core_inside.h"
#include "turn.h"
const struct core *turn_inside(const struct turn *turn);
}

namespace qgpu::explore {
namespace {

constexpr uint64_t kLateNs = 10 * kMilli, kHoldNs = 15 * kMilli;

struct Setting {
  const char *name;
  core_policy policy;
  std::vector<core_settings> tenants;
};

core_settings by(uint32_t weight, uint32_t guarantee_ppm = 0, uint32_t ceiling_ppm = CORE_PPM,
                 core_class class_ = CORE_NORMAL) {
  return {weight, guarantee_ppm, ceiling_ppm, class_, 0, 0};
}

std::vector<Setting> settings() {
  return {
      {"two by weight", CORE_BURST_SHARE, {by(300), by(100)}},
      {"three by weight", CORE_BURST_SHARE, {by(500), by(100), by(100)}},
      {"guarantee", CORE_BURST_SHARE, {by(100, 500'000), by(100), by(300)}},
      {"two fixed", CORE_FIXED_SHARE, {by(100, 300'000), by(100, 600'000)}},
      {"three equal", CORE_EQUAL_SHARE, {by(100), by(100), by(100)}},
      {"fixed beside weights", CORE_BURST_SHARE, {by(100, 200'000, 200'000), by(300), by(100)}},
      {"ceiling", CORE_BURST_SHARE, {by(900, 0, 400'000), by(100)}},
      {"online beside offline",
       CORE_BURST_SHARE,
       {by(100, 0, CORE_PPM, CORE_ONLINE), by(100, 100'000, CORE_PPM, CORE_OFFLINE)}},
      {"best effort", CORE_BEST_EFFORT, {by(300), by(100)}},
  };
}

enum Action : unsigned { kTurn, kTwentyMs, kLate, kListChange, kHold, kWeights, kPolicy, kWork };

class Run {
 public:
  Run(const Setting &setting, const std::vector<unsigned> &actions)
      : setting_(setting), tenants_(setting.tenants.size()) {
    turn_config cfg{};
    cfg.hw = &chip_.hardware();
    for (unsigned i = 0; i < 2; i++) cfg.images[i] = chip_.image(i);
    cfg.tsg_max = cfg.tenant_max = TinyChip::kTsgs;
    cfg.params = params();
    cfg.seed = 1;
    turn_.reset(turn_create(&cfg, chip_.nowNs()));
    if (!turn_) throw std::bad_alloc();
    turn_policy_set(turn_.get(), setting.policy, 0);
    for (unsigned i = 0; i < tenants_.size(); i++) {
      Tenant &t = tenants_[i];
      turn_tenant_add(turn_.get(), &t.core, &setting.tenants[i]);
      t.channel.id = static_cast<u16>(i);
      t.tsg.serial = i + 1;
      t.tsg.tsg_id = static_cast<u16>(i);
      t.tsg.driver_slice_ns = kMilli;
      t.tsg.channel_count = 1;
      t.tsg.channels = &t.channel;
      t.tsg.listed = true;
      turn_tsg_add(turn_.get(), &t.tsg, &t.core);
      t.waits_from_ns = chip_.nowNs();
      chip_.setWork(i, true);
    }
    started_ns_ = chip_.nowNs();
    turn_start(turn_.get(), chip_.nowNs());
    apply();
    pass(30 * kMilli);
    for (const unsigned action : actions) act(action);
    // What was begun must come to a good end.
    pass(150 * kMilli);
  }

 private:
  struct Tenant {
    core_tenant core{};
    turn_tsg tsg{};
    hw_channel channel{};
    core_counters last{};
    uint64_t waits_from_ns = 0;
    uint64_t most_ns = 0;  // largest slice or budget so far
  };
  struct Destroy {
    void operator()(turn *t) const { turn_destroy(t); }
  };

  static core_params params() {
    core_params p;
    core_params_default(&p);
    p.switch_ns = kSwitchNs;
    p.takeoff_ns = kTakeoffNs;
    p.slice_min_ns = 1024;
    p.slice_max_ns = kSecond;
    p.slice_round = [](u64 ns) -> u64 { return std::max<u64>(ns / 1024, 1) * 1024; };
    return p;
  }

  void act(unsigned action) {
    switch (action) {
      case kTurn:
        turn();
        break;
      case kTwentyMs:
        pass(20 * kMilli);
        break;
      case kLate:
        chip_.advanceTo(std::max(chip_.nowNs(), next_ns_) + kLateNs);
        slack_ns_ += kLateNs;
        turn();
        break;
      case kListChange:
        list(0, !tenants_[0].tsg.listed);
        break;
      case kHold:
        chip_.holdFor(kHoldNs);
        slack_ns_ += kHoldNs;
        break;
      case kWeights:
        for (Tenant &t : tenants_) {
          core_settings s = t.core.asked;
          s.weight = s.weight == 100 ? 400 : 100;
          turn_tenant_set(turn_.get(), &t.core, &s);
        }
        apply();
        break;
      case kPolicy:
        policy_changed_ = !policy_changed_;
        turn_policy_set(turn_.get(), policy_changed_ ? CORE_BURST_SHARE : setting_.policy, 0);
        apply();
        break;
      default:
        chip_.setWork(action - kWork, !chip_.hasWork(action - kWork));
    }
  }
  // As the driver does: out of its list, or back.
  void list(unsigned i, bool listed) {
    tenants_[i].tsg.listed = listed;
    turn_list_changed(turn_.get());
    apply();
  }
  void apply() {
    expect(turn_apply(turn_.get(), chip_.nowNs()) == 0, "a change is applied");
    next_ns_ = chip_.nowNs();
    check();
  }
  void turn() {
    chip_.advanceTo(std::max(chip_.nowNs(), next_ns_));
    const uint64_t began = chip_.nowNs();
    u64 next = 0;
    expect(turn_run(turn_.get(), began, &next) == 0, "a turn succeeds");
    expect(next > began, "time goes on");
    expect(next <= chip_.nowNs() + 100 * kMilli, "it looks again");
    expect(chip_.nowNs() <= began + kMilli, "a turn is short");
    next_ns_ = next;
    check();
  }
  void pass(uint64_t ns) {
    const uint64_t end = chip_.nowNs() + ns;
    while (std::max(chip_.nowNs(), next_ns_) < end) turn();
  }

  void check() {
    checkCounters();
    const core &inside = *turn_inside(turn_.get());
    for (const core_heap *heap : {&inside.ready, &inside.waiting, &inside.ranked}) checkHeap(*heap);
    for (unsigned i = 0; i < tenants_.size(); i++) {
      checkLag(inside, tenants_[i]);
      checkWait(i);
    }
  }
  void checkCounters() {
    uint64_t sum = 0;
    struct turn_counters totals;
    turn_counters(turn_.get(), &totals);
    for (unsigned i = 0; i < tenants_.size(); i++) {
      Tenant &t = tenants_[i];
      core_counters now;
      turn_tenant_counters(turn_.get(), &t.core, &now);
      expect(now.run_ns >= t.last.run_ns && now.run_err_ns >= t.last.run_err_ns &&
                 now.wait_ns >= t.last.wait_ns && now.throttled_ns >= t.last.throttled_ns &&
                 now.windows >= t.last.windows && now.preempts >= t.last.preempts &&
                 now.overruns >= t.last.overruns,
             "no counter goes back");
      t.last = now;
      sum += now.run_ns;
    }
    sum += totals.switch_ns + totals.idle_ns + totals.nobody_ns;
    const uint64_t looked = turn_inside(turn_.get())->looked_ns;
    expect(sum <= looked - started_ns_ && sum + 2 * kSwitchNs + kTakeoffNs >= looked - started_ns_,
           "all time is charged, once");
  }
  void checkHeap(const core_heap &heap) {
    for (u32 i = 0; i < heap.count; i++) {
      expect(heap.at[i]->heap == heap.id && heap.at[i]->heap_at == i, "a heap knows its members");
      expect(!i || !core_heap_before(heap.at[i], heap.at[(i - 1) / 2]), "a heap is in order");
    }
  }
  // Twice its largest slice or budget, as (R), (S) and (W) of theory.rst say, what a cut may be
  // misjudged by, and what late turns and tails have cost.
  void checkLag(const core &inside, Tenant &t) {
    t.most_ns = std::max<uint64_t>({t.most_ns, t.core.cycle_slice_ns, t.core.budget_ns});
    if (!core_tenant_busy(&t.core) || inside.policy == CORE_BEST_EFFORT) return;
    const auto lag = static_cast<uint64_t>(std::abs(core_lag_ns(&inside, &t.core)));
    const uint64_t bound = 2 * t.most_ns + 8 * kMilli + slack_ns_;
    expect(lag <= bound, "lag is within its bound", lag, bound);
  }
  // Whoever has work and a share runs within 60 ms, late turns and tails apart; a floor of a tenth
  // beside busy online tenants comes in windows of at least 10 ms.
  void checkWait(unsigned i) {
    Tenant &t = tenants_[i];
    const bool entitled = chip_.hasWork(i) && t.tsg.listed && (t.core.shown_ppm || !t.core.held);
    if (!entitled) t.waits_from_ns = chip_.nowNs();
    const uint64_t from = std::max(t.waits_from_ns, chip_.lastRanNs(i));
    const uint64_t bound = (hasOnline() ? 100 : 60) * kMilli + slack_ns_;
    expect(chip_.nowNs() - from <= bound, "nobody is left out", chip_.nowNs() - from, bound);
  }
  bool hasOnline() const {
    for (const core_settings &s : setting_.tenants)
      if (s.class_ == CORE_ONLINE) return true;
    return false;
  }
  void expect(bool holds, const char *what, uint64_t value = 0, uint64_t bound = 0) const {
    if (holds) return;
    char text[160];
    std::snprintf(text, sizeof(text),
                  "%s (%" PRIu64 " ns, %" PRIu64 " allowed) after %" PRIu64 " us", what, value,
                  bound, (chip_.nowNs() - started_ns_) / 1000);
    throw std::runtime_error(text);
  }

  const Setting &setting_;
  TinyChip chip_;
  std::vector<Tenant> tenants_;
  std::unique_ptr<struct turn, Destroy> turn_;
  uint64_t next_ns_ = 0, started_ns_ = 0, slack_ns_ = 0;
  bool policy_changed_ = false;
};

std::string textOf(const std::vector<unsigned> &actions) {
  std::string text;
  for (const unsigned action : actions) text.append(" ").append(std::to_string(action));
  return text;
}

// Return: whether all went well; what did not is printed.
bool tryOne(unsigned depth, unsigned number, const Setting &setting,
            const std::vector<unsigned> &actions) {
  try {
    Run run(setting, actions);
    return true;
  } catch (const std::exception &error) {
    std::printf("%s: %s; again: explore %u %u%s\n", setting.name, error.what(), depth, number,
                textOf(actions).c_str());
    return false;
  }
}

int exploreAll(unsigned depth) {
  const std::vector<Setting> all = settings();
  uint64_t orders = 0, failed = 0;
  for (unsigned number = 0; number < all.size(); number++) {
    const unsigned choices = kWork + static_cast<unsigned>(all[number].tenants.size());
    std::vector<unsigned> actions(depth, 0);
    for (bool more = true; more && failed < 20;) {
      failed += !tryOne(depth, number, all[number], actions);
      orders++;
      unsigned i = 0;
      while (i < depth && ++actions[i] == choices) actions[i++] = 0;
      more = i < depth;
    }
  }
  std::printf("explore: %" PRIu64 " orders of %u events, %" PRIu64 " went wrong\n", orders, depth,
              failed);
  return failed != 0;
}

}  // namespace
}  // namespace qgpu::explore

int main(int argc, char **argv) {
  using namespace qgpu::explore;
  const unsigned depth = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 4;
  if (argc <= 2) return exploreAll(depth);
  const std::vector<Setting> all = settings();
  const auto number = static_cast<unsigned>(std::atoi(argv[2]));
  std::vector<unsigned> actions;
  for (int i = 3; i < argc; i++) actions.push_back(static_cast<unsigned>(std::atoi(argv[i])));
  return !tryOne(depth, number, all.at(number), actions);
}
