// SPDX-License-Identifier: GPL-2.0
//
// chip_story.hpp - a random history of the chip model that can be told twice: programs that launch,
// a driver that interferes, work that fails, troubles that come and go. What is left of it is
// compared: with registers read in between and without, with a switch one way and the other.
#ifndef QGPU_TESTS_UNIT_CHIP_STORY_HPP
#define QGPU_TESTS_UNIT_CHIP_STORY_HPP

#include <gtest/gtest.h>

#include <random>

#include "unit/chip_driver.hpp"

namespace qgpu::fakes {

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
  Actor(uint64_t seed, bool looks, const chip_switches &switches)
      : random_(seed), looking_(seed + 1), looks_(looks) {
    options_.config.sw = switches;
    options_.config.tenant_errors = random_() & 1;
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
    switch (pick(14)) {
      case 0:
      case 1:
      case 2:
        for (uint32_t n = pick(8); n && channel.launched() - channel.completed() < 60; n--)
          channel.launch({pick(2) ? pick(50000) : pick(3000000), pick(4), pick(90000)});
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
      case 9:
        goWrong(card, channel);
        break;
      case 10:
        comeRight(card, tsg, channel);
        break;
      default:
        submitSome(card, tsgs);
    }
  }

  void goWrong(SimCard &card, SimChannel &channel) {
    const auto mask = [this] { return pick(4) ? 0 : pick(4); };
    switch (pick(6)) {
      case 0:
        setTrouble(card, {.preempt_stuck = mask(),
                          .pbdma_stuck = mask(),
                          .save_stuck = mask(),
                          .load_stuck = mask(),
                          .fetch_stuck = mask(),
                          .fetch_garbled = mask(),
                          .doorbell_late_ns = pick(3) ? 0 : pick(300000)});
        break;
      case 1:
        setPresence(card, CHIP_OFF_BUS);
        break;
      default:
        fail(card, channel, static_cast<enum chip_fault>(pick(4)));
    }
  }
  void comeRight(SimCard &card, SimTsg &tsg, SimChannel &channel) {
    setTrouble(card);
    setPresence(card, CHIP_PRESENT);
    for (uint32_t p = 0; p < 3; p++) card.write32(pbdmaBase(p) + CHIP_PBDMA_INTR_0, ~0u);
    card.write32(0x800004 + 8u * channel.id(), pick(4) << 22);
    if (pick(4) == 0) resetEngine(card, pick(2) ? 1u << 12 : 1u << (pick(2) ? 6 : 21));
    if (pick(4) == 0) card.write32(CHIP_CTXSW_TIMEOUT, pick(2) << 31 | pick(2000));
    if (pick(8) == 0) recover(card, tsg, tsg.runlist() ? kCopyUnits : kGraphicsUnits);
  }

  void submitSome(SimCard &card, std::vector<SimTsg *> &tsgs) {
    std::vector<SimTsg *> some;
    for (uint32_t n = pick(6); n; n--) some.push_back(tsgs[pick(4)]);
    card.submitEntries(card.entriesOf(some), 0, pick(4));
  }

  void finish(SimCard &card, std::vector<SimTsg *> &tsgs) {
    setTrouble(card);
    setPresence(card, CHIP_PRESENT);
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
        EXPECT_GE(busy, 1u) << "only what runs now is missing from the record";
      }
    }
  }

  std::mt19937_64 random_, looking_;
  bool looks_;
  SimOptions options_;
  Story story_;
};

}  // namespace qgpu::fakes

#endif
