// SPDX-License-Identifier: GPL-2.0
//
// beside.hpp - qgpu beside a driver that owns the card (driver.hpp), in virtual time: what the
// module does with its timer, its worker and the driver's events. Every register access of the
// scheduler goes through here, so that what it may never write is seen, and the driver may act
// between two of them.
#ifndef QGPU_TESTS_STRESS_BESIDE_HPP
#define QGPU_TESTS_STRESS_BESIDE_HPP

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <random>

#include "scenario/world.hpp"
#include "stress/driver.hpp"

namespace qgpu::stress {

using scenario::kMicro, scenario::kMilli, scenario::kSecond;

struct BesideOptions {
  uint64_t seed = 1;
  turn_method method = TURN_IMAGES;
  uint64_t hold_max_ns = 0;
  u32 channels = 1024;  // room for so many in an image
  fakes::SimOptions sim = {
      .mmio_read_ns = 1000, .mmio_write_ns = 100, .start_ns = 1'000'000, .keep_records = false};
};

class Beside : public DriverEars {
 public:
  explicit Beside(const BesideOptions &options = {})
      : options_(options), card_(options.sim), driver_(card_, Driver::kOwn), inner_(card_.io()) {
    driver_.listen(this);
    hw_.ops = &tu104_ops;
    hw_.io = {&kOps, this};
    if (hw_.ops->probe(&hw_)) throw std::runtime_error("the chip was not recognised");
    turn_config cfg{};
    cfg.hw = &hw_;
    for (auto &image : cfg.images)
      image = card_.allocate(16 * (options.channels + 2 * kTsgsMax + HW_MAX_TSG_CHANNELS));
    cfg.tsg_max = kTsgsMax;
    cfg.tenant_max = 256;
    cfg.params = scenario::World::params();
    cfg.seed = options.seed;
    cfg.method = options.method;
    cfg.hold_max_ns = options.hold_max_ns;
    turn_ = turn_create(&cfg, card_.nowNs());
    if (!turn_) throw std::bad_alloc();
    turn_policy_set(turn_, CORE_BURST_SHARE, 0);
  }
  ~Beside() override { turn_destroy(turn_); }
  Beside(const Beside &) = delete;
  Beside &operator=(const Beside &) = delete;

  int addTenant(const scenario::TenantOptions &options = {}) {
    auto &tenant = *tenants_.emplace_back(std::make_unique<core_tenant>());
    const core_settings settings = scenario::settingsOf(options);
    if (turn_tenant_add(turn_, &tenant, &settings)) throw std::length_error("tenants");
    return static_cast<int>(tenants_.size() - 1);
  }

  // The slot is taken over, or the driver keeps it.
  void start() {
    if (options_.method != TURN_GATES) driver_.lend();
    adopt();
    turn_start(turn_, card_.nowNs());
    apply();
  }
  // Unload: as a card is given back.
  void stop() {
    // The card may refuse for a moment; nothing is forgotten until it does not.
    while (turn_stop(turn_)) card_.advanceBy(kMilli);
    stopped_ = true;
    next_turn_ns_ = ~0ull;
    if (options_.method != TURN_GATES) driver_.takeBack();
  }

  // The module's worker: a turn whenever one is due. With gates, what has gone without a word is
  // found by a look at all there is now and then.
  void runFor(uint64_t ns) { runTo(card_.nowNs() + ns); }
  void runTo(uint64_t ns) {
    while (card_.nowNs() < ns) {
      card_.advanceTo(std::max(card_.nowNs(), std::min(ns, next_turn_ns_)));
      if (card_.nowNs() < next_turn_ns_) continue;
      if (turn_uses_gates(turn_) && card_.nowNs() >= next_adoption_ns_) {
        next_adoption_ns_ = card_.nowNs() + kAdoptNs;
        adopt();
      }
      const uint64_t before = card_.nowNs();
      u64 next = 0;
      note(turn_run(turn_, before, &next));
      longest_turn_ns_ = std::max(longest_turn_ns_, card_.nowNs() - before);
      next_turn_ns_ = last_error_ == -ESTALE ? readopt() : next;
    }
  }
  void apply() { applied(turn_apply(turn_, card_.nowNs())); }
  void applied(int error) {
    note(error);
    if (last_error_ == -ESTALE) {
      readopt();
      note(turn_apply(turn_, card_.nowNs()));
    }
    next_turn_ns_ = card_.nowNs();
  }

  // --- the driver's events ---
  void created(Object &object) override { know(object); }
  void freeing(Object &object) override {
    if (!object.known || stopped_) return;
    note(turn_tsg_release(turn_, &object.turn));
    for (const auto &channel : object.channels) EXPECT_FALSE(channel.closed) << channel.id;
  }
  void stays(Object &object) override {
    if (!object.known || stopped_) return;
    note(turn_tsg_retain(turn_, &object.turn));
    next_turn_ns_ = card_.nowNs();
  }
  void destroyed(Object &object) override { forget(object); }
  void listChanged() override {
    if (stopped_) return;
    turn_list_changed(turn_);
    applied(turn_relist(turn_, card_.nowNs()));
  }
  uint64_t readopt() {
    adopt();
    turn_start(turn_, card_.nowNs());
    return card_.nowNs();
  }
  // What exists is read from the driver's own list: channels that no hook reported are nobody's.
  void adopt() {
    for (const auto &object : driver_.objects()) {
      if (object->sim && !object->known) know(*object);
      if (!object->sim && object->known) forget(*object);
    }
    driver_.sweep();
    turn_list_changed(turn_);
  }

  // Called before each of the scheduler's own writes.
  void beforeWrites(std::function<void(u32 offset)> fn) { before_write_ = std::move(fn); }
  // The card does not answer the scheduler any more after so many accesses; 0 = it does.
  void failAfter(uint64_t accesses) { fail_after_ = accesses; }

  fakes::SimCard &card() { return card_; }
  Driver &driver() { return driver_; }
  turn *scheduler() { return turn_; }
  core_tenant &tenant(int i) { return *tenants_.at(static_cast<size_t>(i)); }
  uint64_t nowNs() const { return card_.nowNs(); }
  int lastError() const { return last_error_; }
  uint64_t longestTurnNs() const { return longest_turn_ns_; }
  uint64_t accesses() const { return accesses_; }
  struct turn_counters counters() const {
    struct turn_counters out;
    ::turn_counters(turn_, &out);
    return out;
  }
  // By the chip, of all its TSGs, those that are gone included.
  uint64_t ranNs(int owner) {
    uint64_t ns = driver_.goneNs(owner);
    for (const auto &object : driver_.objects())
      if (object->sim && object->owner == owner) ns += card_.runNs(*object->sim);
    return ns;
  }
  uint64_t gateWrites() const { return gate_writes_; }
  // By the scheduler.
  uint64_t ringsOf(uint16_t channel) const { return rings_[channel]; }

 private:
  static constexpr u32 kTsgsMax = 512;
  static constexpr uint64_t kAdoptNs = 100 * kMilli;

  void know(Object &object) {
    core_tenant *tenant = object.owner == Object::kKernel ? nullptr : &this->tenant(object.owner);
    if (turn_tsg_add(turn_, &object.turn, tenant)) throw std::length_error("tsgs");
    object.known = true;
  }
  void forget(Object &object) {
    if (!object.known) return;
    turn_tsg_remove(turn_, &object.turn);
    object.known = false;
  }
  void note(int error) {
    last_error_ = error;
    EXPECT_TRUE(error == 0 || error == -EBUSY || error == -ETIMEDOUT || error == -ENODEV ||
                error == -EIO || error == -ESTALE)
        << error;
  }

  // --- the bus ---
  static Beside &self(void *ctx) { return *static_cast<Beside *>(ctx); }
  bool answers() { return !fail_after_ || ++since_fail_ < fail_after_; }
  static u32 read32(void *ctx, u32 offset) {
    Beside &b = self(ctx);
    b.accesses_++;
    return b.answers() ? b.inner_.ops->read32(b.inner_.ctx, offset) : 0xffffffffu;
  }
  static void write32(void *ctx, u32 offset, u32 value) {
    Beside &b = self(ctx);
    b.accesses_++;
    b.mayWrite(offset, value);
    // It may take itself away.
    if (const auto fn = b.before_write_) fn(offset);
    if (b.answers()) b.inner_.ops->write32(b.inner_.ctx, offset, value);
  }
  static u64 now(void *ctx) { return self(ctx).card_.nowNs(); }
  static void wait(void *ctx, u64 ns) { self(ctx).card_.advanceBy(ns); }
  static void flush(void *, const hw_mem *) {}

  // PREEMPT; the slot of the own runlist, or enable bits and doorbells: nothing else is ever
  // written.
  void mayWrite(u32 offset, u32 value) {
    if (offset == CHIP_PREEMPT) return;
    if (!turn_uses_gates(turn_)) {
      EXPECT_TRUE(offset >= CHIP_RUNLIST_REGS && offset < CHIP_RUNLIST_REGS + 12)
          << std::hex << offset;
      return;
    }
    gate_writes_++;
    if (offset == CHIP_USERMODE_PAGE + CHIP_USERMODE_DOORBELL) {
      rings_[value % CHIP_CHANNELS]++;
      return;
    }
    EXPECT_TRUE(offset >= CHIP_PCCSR && offset < CHIP_PCCSR + 8 * CHIP_CHANNELS &&
                offset % 8 == CHIP_PCCSR_CHANNEL)
        << std::hex << offset;
    value &= ~u32{CHIP_CH_NEXT};
    EXPECT_TRUE(value == CHIP_CH_ENABLE_SET || value == CHIP_CH_ENABLE_CLR) << std::hex << value;
  }

  static constexpr hw_io_ops kOps = {
      .read32 = read32, .write32 = write32, .now_ns = now, .wait_ns = wait, .flush = flush};

  BesideOptions options_;
  fakes::SimCard card_;
  Driver driver_;
  hw_io inner_;
  hw hw_{};
  turn *turn_ = nullptr;
  std::vector<std::unique_ptr<core_tenant>> tenants_;
  std::function<void(u32)> before_write_;
  uint64_t next_adoption_ns_ = 0;
  uint64_t next_turn_ns_ = 0, longest_turn_ns_ = 0, accesses_ = 0;
  std::array<uint64_t, CHIP_CHANNELS> rings_{};
  uint64_t gate_writes_ = 0, fail_after_ = 0, since_fail_ = 0;
  int last_error_ = 0;
  bool stopped_ = false;
};

}  // namespace qgpu::stress

#endif
