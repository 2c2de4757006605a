// SPDX-License-Identifier: GPL-2.0
// Looking changes nothing: a random history, watched or not, leaves the same record.
#include <gtest/gtest.h>

#include <random>

#include "fakes/sim_card.hpp"

namespace qgpu::fakes {
namespace {

uint64_t seed() {
  const char *text = std::getenv("QGPU_SEED");
  return text ? std::strtoull(text, nullptr, 0) : std::random_device{}();
}

struct Story {
  std::vector<Ran> records;
  std::vector<std::tuple<uint16_t, uint64_t, uint64_t>> completions;  // channel, number, time
  std::vector<uint64_t> totals;
  std::vector<std::string> errors;
  std::vector<uint32_t> gp_gets;
  bool operator==(const Story &) const = default;
};

// Programs that launch and a driver that interferes, all at random times drawn from @random; the
// same seed acts the same way at the same times, however often @looks has registers read between.
class Actor {
 public:
  Actor(uint64_t seed, bool looks) : random_(seed), looking_(seed + 1), looks_(looks) {
    options_.config.sw.submit_keeps_running = random_() & 1;
    options_.config.sw.disable_keeps_pending = random_() & 1;
    options_.config.sw.gp_put_reread = random_() & 1;
    options_.config.sw.list_reread = random_() & 1;
    options_.config.sw.empty_list_drops_context = random_() & 1;
    options_.config.lat.gr_save_ns = random_() % 3 ? 45000 : 0;
    options_.config.lat.pbdma_load_ns = random_() % 3 ? 5000 : 0;
  }

  Story play(unsigned steps) {
    SimCard card(options_);
    std::vector<SimTsg *> tsgs;
    for (int i = 0; i < 5; i++) {
      tsgs.push_back(&card.createTsg({.channels = 1 + pick(3),
                                      .timeout = static_cast<uint8_t>(pick(256)),
                                      .scale = static_cast<uint8_t>(pick(5)),
                                      .runlist = i == 4 ? 1u : 0u,
                                      .ring_log2 = 6}));
      for (size_t c = 0; c < tsgs.back()->channelCount(); c++)
        tsgs.back()->channel(c).onComplete(
            [this](SimChannel &channel, const chip_completion &done) {
              story_.completions.emplace_back(channel.id(), done.payload, done.time_ns);
            });
    }
    card.submit({tsgs[0], tsgs[1], tsgs[2], tsgs[3]});
    card.submit({tsgs[4]}, 1);
    for (unsigned i = 0; i < steps; i++) {
      const uint64_t until = card.nowNs() + pick(700000);
      while (looks_ && card.nowNs() < until) {
        look(card);
        card.advanceTo(std::min(until, card.nowNs() + looking_() % 100000));
      }
      card.advanceTo(until);
      act(card, tsgs);
    }
    finish(card, tsgs);
    return story_;
  }

 private:
  uint32_t pick(uint32_t n) { return static_cast<uint32_t>(random_() % n); }

  void look(SimCard &card) {
    static constexpr uint32_t kPlaces[] = {0x2640, 0x2658, 0x3080, 0x3400, 0x2634, 0x2638,
                                           0x2b0c, 0x2b1c, 0x263c, 0x9400, 0x2100, 0x40014};
    card.read32(kPlaces[looking_() % std::size(kPlaces)]);
    card.read32(0x800004 + 8 * (looking_() % 16));
  }

  void act(SimCard &card, std::vector<SimTsg *> &tsgs) {
    SimTsg &tsg = *tsgs[pick(5)];
    SimChannel &channel = tsg.channel(pick(static_cast<uint32_t>(tsg.channelCount())));
    switch (pick(12)) {
      case 0:
      case 1:
      case 2:
        for (uint32_t n = pick(8); n && channel.launched() - channel.completed() < 60; n--)
          channel.launch({pick(2) ? pick(50000) : pick(3000000), pick(4)});
        break;
      case 3:
        channel.disable();
        break;
      case 4:
      case 5:
        channel.enable();
        channel.ring();
        break;
      case 6:
        card.preempt(tsg);
        break;
      case 7:
        card.write32(0x2638, 1u << pick(2));
        break;
      case 8:
        card.write32(0x2630, pick(4) ? 0 : pick(4));
        break;
      default:
        submitSome(card, tsgs);
    }
  }

  void submitSome(SimCard &card, std::vector<SimTsg *> &tsgs) {
    std::vector<SimTsg *> some;
    for (uint32_t n = pick(6); n; n--) some.push_back(tsgs[pick(4)]);
    card.submitEntries(card.entriesOf(some), 0, pick(4));
  }

  void finish(SimCard &card, std::vector<SimTsg *> &tsgs) {
    for (uint32_t engine = 0; engine < CHIP_ENGINES; engine++) {
      const chip_totals t = card.totals(engine);
      for (uint64_t v : {t.run_ns, t.switch_ns, t.idle_ns, t.switches, t.kernels, t.submits,
                         t.preempts, t.doorbells, t.protocol_errors})
        story_.totals.push_back(v);
      EXPECT_EQ(t.run_ns + t.switch_ns + t.idle_ns, card.nowNs());
    }
    for (SimTsg *tsg : tsgs) {
      story_.totals.push_back(card.runNs(*tsg));
      for (size_t c = 0; c < tsg->channelCount(); c++)
        story_.gp_gets.push_back(tsg->channel(c).gpGet());
    }
    story_.records = card.records();
    story_.errors = card.protocolErrors();
    checkRecords(card, tsgs);
  }

  // The record is what the totals say, less what still runs; it is in order, nothing overlaps.
  void checkRecords(SimCard &card, std::vector<SimTsg *> &tsgs) {
    std::map<uint32_t, uint64_t> last_end;
    std::map<uint16_t, uint64_t> recorded;
    for (const Ran &r : story_.records) {
      ASSERT_LT(r.from_ns, r.to_ns);
      ASSERT_GE(r.from_ns, last_end[r.engine]);
      last_end[r.engine] = r.to_ns;
      recorded[r.tsg] += r.to_ns - r.from_ns;
    }
    for (SimTsg *tsg : tsgs) {
      const uint64_t open = card.runNs(*tsg) - recorded[tsg->id()];
      ASSERT_LE(recorded[tsg->id()], card.runNs(*tsg));
      if (open) {
        uint32_t busy = 0;
        for (const uint32_t engine : {0u, 1u, 2u, 3u}) {
          const uint32_t status = card.engineStatus(engine);
          busy += status >> 31 && (status & 0xfff) == tsg->id();
        }
        EXPECT_EQ(busy, 1u) << "only what runs now is missing from the record";
      }
    }
  }

  std::mt19937_64 random_, looking_;
  bool looks_;
  SimOptions options_;
  Story story_;
};

TEST(ChipLaziness, LookingChangesNothing) {
  const uint64_t first = seed();
  std::printf("QGPU_SEED=%llu\n", static_cast<unsigned long long>(first));
  for (uint64_t s = first; s < first + 150; s++) {
    const Story unwatched = Actor(s, false).play(120);
    const Story watched = Actor(s, true).play(120);
    ASSERT_TRUE(unwatched == watched) << "QGPU_SEED=" << s;
    ASSERT_FALSE(HasFailure()) << "QGPU_SEED=" << s;
  }
}

// Without the machine around it: one big step and a million small ones end in the same place.
TEST(ChipLaziness, OneStepIsAsGoodAsMany) {
  std::vector<Ran> records[2];
  chip_totals totals[2];
  for (int many = 0; many < 2; many++) {
    SimCard card;
    SimTsg &a = card.createTsg({.timeout = 3, .scale = 5}), &b = card.createTsg({.channels = 2});
    for (int i = 0; i < 500; i++) {
      a.channel().launch({.duration_ns = 10000u + 37u * static_cast<unsigned>(i)});
      b.channel(0).launch({70001, i % 3 ? CHIP_CILP : CHIP_WFI});
      b.channel(1).launch({.duration_ns = 33333});
    }
    card.submit({&a, &b, &a});
    const uint64_t end = card.nowNs() + 100'000'000;
    if (many) {
      for (uint64_t t = card.nowNs(); t < end; t += 101) chip_advance(card.model(), t);
    }
    chip_advance(card.model(), end);
    records[many] = card.records();
    totals[many] = card.totals();
  }
  EXPECT_EQ(records[0], records[1]);
  EXPECT_EQ(std::memcmp(&totals[0], &totals[1], sizeof(totals[0])), 0);
  EXPECT_EQ(totals[0].kernels, 1500u);
}

// A host that sleeps until chip_next_event_ns() misses no completion.
TEST(ChipLaziness, NextEventIsNeverTooLate) {
  SimCard card;
  SimTsg &a = card.createTsg(), &b = card.createTsg();
  uint64_t late = 0;
  for (SimTsg *tsg : {&a, &b})
    tsg->channel().onComplete([&](SimChannel &, const chip_completion &done) {
      late = std::max<uint64_t>(late, card.nowNs() - done.time_ns);
    });
  a.channel().saturate(Kernel{123456}, 20);
  b.channel().syncLaunch({.duration_ns = 4567}, 89012);
  card.submit({&a, &b});
  card.advanceBy(1'000'000'000);
  EXPECT_EQ(late, 0u);
  EXPECT_GT(b.channel().completed(), 300u);
}

TEST(ChipLaziness, NothingHappensOnAnIdleChip) {
  SimCard card;
  SimTsg &a = card.createTsg();
  EXPECT_EQ(chip_next_event_ns(card.model()), U64_MAX);
  a.channel().launch({.duration_ns = 1000});
  card.submit({&a});
  card.advanceBy(1'000'000);
  EXPECT_EQ(chip_next_event_ns(card.model()), U64_MAX);
  chip_advance(card.model(), U64_MAX);
  EXPECT_EQ(card.totals().idle_ns + card.totals().run_ns + card.totals().switch_ns, U64_MAX);
}

}  // namespace
}  // namespace qgpu::fakes
