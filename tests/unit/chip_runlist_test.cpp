// SPDX-License-Identifier: GPL-2.0
// The runlist slot: submit, fetch, what it does to what runs, and every way to get it wrong.
#include <gtest/gtest.h>

#include "fakes/sim_card.hpp"

namespace qgpu::fakes {
namespace chip_runlist_test {

constexpr uint64_t kMs = 1000000, kSecond = 1000 * kMs, kSwitch = 100000, kLoads = 50000;
constexpr uint32_t kPending = 1u << 15, kSchedError = 1u << 8;

uint64_t fetchNs(size_t entries) { return 10000 + 50 * entries; }

SimOptions withSwitch(bool chip_switches::*which) {
  SimOptions options;
  options.config.sw.*which = true;
  return options;
}

TEST(ChipRunlist, KeepsOnlyTheBitsThatExist) {
  SimCard card;
  card.write32(0x2b00, 0xffffffff);
  card.write32(0x2b04, 0xffffffff);
  EXPECT_EQ(card.read32(0x2b00), 0xfffff003u);
  EXPECT_EQ(card.read32(0x2b04), 0xffu);
}

TEST(ChipRunlist, IsPendingForExactlyTheFetch) {
  SimCard card;
  card.submitEntries(card.entriesOf({&card.createTsg(), &card.createTsg({.channels = 5})}));
  card.advanceTo(fetchNs(8) - 1);
  EXPECT_EQ(card.read32(0x2b0c), kPending);
  EXPECT_EQ(card.read32(0x263c), 1u << 2);
  card.advanceBy(1);
  EXPECT_EQ(card.read32(0x2b0c), 0u);
  EXPECT_EQ(card.read32(0x263c), 0u);
  EXPECT_EQ(card.read32(0x2a00), 1u);
  EXPECT_EQ(card.read32(0x2b08), 8u);
}

TEST(ChipRunlist, EndsTheRunningSliceWhenAnotherComesFirst) {
  SimCard card;
  SimTsg &a = card.createTsg({.timeout = 255, .scale = 12}), &b = card.createTsg();
  a.channel().saturate(Kernel{kMs});
  b.channel().saturate(Kernel{kMs});
  card.submit({&a, &b});
  card.advanceBy(kLoads + 10 * kMs);
  EXPECT_EQ(card.runNs(b), 0u);
  card.submitEntries(card.entriesOf({&b, &a}));
  card.advanceBy(fetchNs(4) + kSwitch + kMs / 2);
  EXPECT_EQ(card.runNs(a), 10 * kMs + fetchNs(4)) << "runs on until its successor is known";
  EXPECT_EQ(card.runNs(b), kMs / 2);
}

TEST(ChipRunlist, LetsTheRunningTenantGoOnWithANewSliceWhenItComesFirst) {
  SimCard card;
  SimTsg &a = card.createTsg(), &b = card.createTsg();
  a.channel().saturate(Kernel{kMs});
  b.channel().saturate(Kernel{kMs});
  card.submit({&a, &b});
  card.advanceBy(kLoads + a.sliceNs() / 2);
  card.submit({&a, &b});
  const uint64_t fetched = card.nowNs();
  card.advanceBy(a.sliceNs() - 1);
  EXPECT_EQ(card.totals().switches, 1u);
  card.advanceBy(2);
  EXPECT_EQ(card.records().back().to_ns, fetched + a.sliceNs());
}

TEST(ChipRunlist, LetsUnlistedWorkRunToItsEndOnlyAsLongAsNobodyWantsTheEngine) {
  SimCard card;
  SimTsg &a = card.createTsg(), &b = card.createTsg();
  a.channel().saturate(Kernel{3 * kMs});
  card.submit({&a, &b});
  card.advanceBy(kLoads + kMs);
  card.submit({&b});
  card.advanceBy(50 * kMs);
  EXPECT_EQ(card.runNs(a), 3 * kMs) << "its kernel ended, the next one did not start";
  EXPECT_EQ(a.channel().completed(), 1u);
}

TEST(ChipRunlist, CutsUnlistedWorkWhenAnotherWakes) {
  SimCard card;
  SimTsg &a = card.createTsg(), &b = card.createTsg();
  a.channel().launch({.duration_ns = 30 * kMs});
  card.submit({&a, &b});
  card.advanceBy(kLoads + kMs);
  card.submit({&b});
  card.advanceBy(kMs);
  b.channel().launch({.duration_ns = kMs});
  const uint64_t rung = card.nowNs();
  card.advanceBy(50 * kMs);
  EXPECT_EQ(b.channel().lastCompletionNs(), rung + 45000 + kLoads + kMs);
  EXPECT_EQ(a.channel().completed(), 0u);
  card.submit({&a});
  card.advanceBy(50 * kMs);
  EXPECT_EQ(a.channel().completed(), 1u) << "what was cut goes on when listed again";
  EXPECT_EQ(card.runNs(a), 30 * kMs);
}

TEST(ChipRunlist, TakesUnlistedWorkBackWithoutALoadWhenListedAgain) {
  SimCard card;
  SimTsg &a = card.createTsg();
  a.channel().saturate(Kernel{5 * kMs});
  card.submit({&a});
  card.advanceBy(kLoads + kMs);
  card.submit({});
  card.advanceBy(kMs);
  card.submit({&a});
  card.advanceBy(20 * kMs);
  EXPECT_EQ(card.runNs(a), 22 * kMs + fetchNs(0) + fetchNs(2));
  EXPECT_EQ(card.totals().switches, 1u);
}

TEST(ChipRunlist, DoesNotTakeADisabledChannelBackWithItsTsg) {
  SimCard card;
  SimTsg &a = card.createTsg({.channels = 2});
  a.channel(0).saturate(Kernel{5 * kMs, CHIP_WFI});
  card.submit({&a});
  card.advanceBy(kLoads + kMs);
  a.channel(0).disable();
  card.submit({});
  a.channel(1).launch({.duration_ns = kMs});
  card.submit({&a});
  card.advanceBy(50 * kMs);
  EXPECT_EQ(a.channel(0).completed(), 1u);
  EXPECT_EQ(a.channel(1).completed(), 1u);
}

TEST(ChipRunlist, EndsADisabledOrFaultedTenantWithItsKernelWhenSubmittedAgain) {
  for (uint32_t write : {1u << 11, 1u << 20, 1u << 21}) {
    SimCard card;
    SimTsg &a = card.createTsg();
    a.channel().saturate(Kernel{3 * kMs});
    card.submit({&a});
    card.advanceBy(kLoads + kMs);
    card.write32(0x800004 + 8 * a.channel().id(), write);
    card.submit({&a});
    card.advanceBy(50 * kMs);
    EXPECT_EQ(card.runNs(a), 3 * kMs) << std::hex << write;
  }
}

TEST(ChipRunlist, DoesNotGiveASliceToWhatItCaughtBeingLoaded) {
  for (uint64_t after = 0; after < 130000; after += 900) {
    SimCard card;
    SimTsg &a = card.createTsg(), &b = card.createTsg({.timeout = 255, .scale = 12});
    SimTsg &c = card.createTsg();
    for (SimTsg *tsg : {&a, &b, &c}) tsg->channel().saturate(Kernel{400000});
    card.submit({&a, &b});
    card.advanceBy(kLoads + a.sliceNs() - 20000 + after);
    card.submit({&c});
    card.advanceBy(50 * kMs);
    ASSERT_LE(card.runNs(b), 30000u + fetchNs(2)) << after;
    ASSERT_GT(card.runNs(c), 49 * kMs) << after;
  }
}

TEST(ChipRunlist, DoesNotVisitATsgForAChannelItNoLongerLists) {
  SimCard card;
  SimTsg &a = card.createTsg({.channels = 2}), &b = card.createTsg();
  b.channel().saturate(Kernel{kMs});
  card.write32(0x2630, 1);
  card.submit({&a, &b});
  a.channel(1).launch({.duration_ns = kMs});
  auto entries = card.entriesOf({&a, &b});
  entries[0][1] = 1;
  entries.erase(entries.begin() + 2);
  card.submitEntries(entries);
  card.advanceBy(kMs);
  card.write32(0x2630, 0);
  card.advanceBy(50 * kMs);
  EXPECT_EQ(card.totals().switches, 1u);
  EXPECT_EQ(a.channel(1).completed(), 0u);
}

TEST(ChipRunlist, NeverRunsAChannelOnTwoEnginesAtOnce) {
  SimCard card;
  SimTsg &a = card.createTsg();
  a.channel().saturate(Kernel{2 * kMs});
  card.submit({&a});
  card.advanceBy(kLoads + kMs);
  card.submit({&a}, 1);
  for (int i = 0; i < 100; i++) {
    card.write32(0xbb0090, 1u << 16 | a.channel().id());
    card.write32(0xbb0090, a.channel().id());
    card.advanceBy(300000);
  }
  EXPECT_LE(card.totals(0).run_ns + card.totals(3).run_ns, card.nowNs());
  EXPECT_LE(a.channel().completed() * 2 * kMs, card.nowNs());
}

TEST(ChipRunlist, StopsUnlistedWorkForGoodOnPreempt) {
  SimCard card;
  SimTsg &a = card.createTsg();
  a.channel().saturate(Kernel{30 * kMs});
  card.submit({&a});
  card.advanceBy(kLoads + kMs);
  card.submitEntries({});
  card.advanceBy(fetchNs(0));
  card.preempt(a);
  card.advanceBy(100 * kMs);
  EXPECT_EQ(card.runNs(a), kMs + fetchNs(0));
  EXPECT_EQ((card.engineStatus() >> 13) & 7, 0u);
}

TEST(ChipRunlist, KeepsTheContextOnTheEngineWhenEmptied) {
  SimCard card;
  SimTsg &a = card.createTsg();
  a.channel().saturate(Kernel{kMs});
  card.submit({&a});
  card.advanceBy(kLoads + kMs / 2);
  card.submit({});
  card.advanceBy(10 * kMs);
  EXPECT_EQ(card.engineStatus(), 1u << 13 | 1u << 12 | a.id()) << "valid, not busy";
  EXPECT_EQ(card.read32(0x3400), 3u << 8);
}

TEST(ChipRunlist, DropsTheContextWhenEmptiedIfTheChipIsSaidToDoThat) {
  SimCard card(withSwitch(&chip_switches::empty_list_drops_context));
  SimTsg &a = card.createTsg();
  a.channel().saturate(Kernel{30 * kMs});
  card.submit({&a});
  card.advanceBy(kLoads + kMs);
  card.submit({});
  card.advanceBy(10 * kMs);
  EXPECT_EQ((card.engineStatus() >> 13) & 7, 0u);
  EXPECT_EQ(card.runNs(a), kMs + fetchNs(0) + 5000) << "cut once the PBDMA had left";
}

TEST(ChipRunlist, DoesNotTouchTheRunningSliceIfTheChipIsSaidToBeAmpere) {
  SimCard card(withSwitch(&chip_switches::submit_keeps_running));
  SimTsg &a = card.createTsg({.timeout = 250, .scale = 6}), &b = card.createTsg();
  a.channel().saturate(Kernel{kMs});
  b.channel().saturate(Kernel{kMs});
  card.submit({&a, &b});
  card.advanceBy(kLoads + kMs);
  card.submit({&b});
  card.advanceBy(100 * kMs);
  EXPECT_EQ(card.runNs(a), a.sliceNs());
  EXPECT_EQ(card.totals().switches, 2u);
}

struct Malformed {
  const char *what;
  std::vector<SimCard::Entry> entries;
};

SimCard::Entry header(uint32_t length, uint32_t tsg) {
  return {1 | 3u << 16 | 128u << 24, length, tsg, 0};
}
SimCard::Entry channelEntry(uint32_t id) { return {0, 0, id, 0}; }

const Malformed kMalformed[] = {
    {"channel outside a TSG", {channelEntry(1)}},
    {"one channel too many", {header(1, 1), channelEntry(1), channelEntry(2)}},
    {"length zero", {header(0, 1)}},
    {"length beyond 128", {header(129, 1)}},
    {"list ends too early", {header(2, 1), channelEntry(1)}},
    {"list ends after a header", {header(1, 1), channelEntry(1), header(1, 2)}},
    {"another header comes too early",
     {header(2, 1), channelEntry(1), header(1, 2), channelEntry(2)}},
};

TEST(ChipRunlist, SchedulesNothingFromAMalformedList) {
  for (const Malformed &row : kMalformed) {
    SimCard card;
    SimTsg &a = card.createTsg();
    a.channel().saturate(Kernel{kMs});
    card.submit({&a});
    card.advanceBy(10 * kMs);
    const uint64_t before = card.runNs(a);
    card.submitEntries(row.entries);
    card.advanceBy(100 * kMs);
    EXPECT_EQ(card.read32(0x254c), 0x20u) << row.what;
    EXPECT_NE(card.read32(0x2100) & kSchedError, 0u) << row.what;
    EXPECT_NE(card.read32(0x2b0c) & kPending, 0u) << row.what << ": stays pending";
    EXPECT_LE(card.runNs(a) - before, kMs + fetchNs(4)) << row.what;
    EXPECT_EQ(card.protocolErrors().size(), 1u) << row.what;

    card.submit({&a});
    card.advanceBy(10 * kMs);
    EXPECT_GT(card.runNs(a) - before, 9 * kMs) << row.what << ": a sound list mends it";
  }
}

TEST(ChipRunlist, ClearsPendingAfterAMalformedListIfTheChipIsSaidToDoThat) {
  SimCard card(withSwitch(&chip_switches::malformed_clears_pending));
  card.submitEntries(kMalformed[0].entries);
  card.advanceBy(kMs);
  EXPECT_EQ(card.read32(0x2b0c) & kPending, 0u);
  EXPECT_EQ(card.read32(0x254c), 0x20u);
}

TEST(ChipRunlist, ReportsAListThatLiesNowhere) {
  for (uint32_t low : {0x0ffff000u, 0x0ffff002u, 0x40000000u, 0x40000001u}) {
    SimCard card;
    card.write32(0x2b00, low);
    card.write32(0x2b04, low & 2 ? 3 : 0);
    card.write32(0x2b08, 300);
    card.advanceBy(kMs);
    EXPECT_EQ(card.read32(0x254c), 8u) << std::hex << low;
    EXPECT_NE(card.read32(0x2100) & kSchedError, 0u);
  }
}

TEST(ChipRunlist, TakesTheLastOfTwoSubmitsAndCallsItAnError) {
  SimCard card;
  SimTsg &a = card.createTsg(), &b = card.createTsg();
  a.channel().saturate(Kernel{kMs});
  b.channel().saturate(Kernel{kMs});
  card.submitEntries(card.entriesOf({&a}));
  card.advanceBy(5000);
  card.submitEntries(card.entriesOf({&b}));
  card.advanceBy(10 * kMs);
  EXPECT_EQ(card.runNs(a), 0u);
  EXPECT_EQ(card.runNs(b), 10 * kMs - fetchNs(2) - kLoads);
  ASSERT_EQ(card.protocolErrors().size(), 1u);
  EXPECT_EQ(card.totals().protocol_errors, 1u);
}

TEST(ChipRunlist, NoticesAListThatWasChangedInMemory) {
  const struct {
    const char *what;
    uint64_t change_after_ns;
    size_t errors;
  } rows[] = {{"while its fetch was pending", 5000, 1}, {"while in force", kMs, 1}};
  for (const auto &row : rows) {
    for (bool ignored : {false, true}) {
      SimOptions options;
      options.config.sw.ignore_owned_list_change = ignored;
      SimCard card(options);
      SimTsg &a = card.createTsg(), &b = card.createTsg();
      const auto entries = card.entriesOf({&a, &b});
      const hw_mem mem = card.allocate(4096);
      std::memcpy(mem.cpu, entries.data(), entries.size() * 16);
      card.submitAt(mem, 4);
      card.advanceBy(row.change_after_ns);
      static_cast<uint32_t *>(mem.cpu)[0] ^= 1u << 24;
      card.advanceBy(kMs);
      card.submit({&b});
      EXPECT_EQ(card.protocolErrors().size(), ignored ? 0 : row.errors) << row.what;
    }
  }
}

TEST(ChipRunlist, LeavesTheOldBufferAloneOnceTheNextSubmitIsThrough) {
  SimCard card;
  SimTsg &a = card.createTsg();
  const auto entries = card.entriesOf({&a});
  const hw_mem mem = card.allocate(4096);
  std::memcpy(mem.cpu, entries.data(), entries.size() * 16);
  card.submitAt(mem, 2);
  card.advanceBy(kMs);
  card.submit({&a});
  std::memset(mem.cpu, 0xff, 4096);
  card.submit({&a});
  card.submit({&a});
  EXPECT_TRUE(card.protocolErrors().empty());
}

TEST(ChipRunlist, DoesNotOwnAMalformedList) {
  SimCard card;
  SimTsg &a = card.createTsg();
  const hw_mem mem = card.allocate(4096);
  card.submitAt(mem, 1);  // zeros: a channel outside a TSG
  card.advanceBy(kMs);
  std::memset(mem.cpu, 0xff, 4096);
  card.submit({&a});
  EXPECT_EQ(card.protocolErrors().size(), 1u) << "the malformed list itself";
}

TEST(ChipRunlist, WorksFromASnapshot) {
  for (bool reread : {false, true}) {
    SimOptions options;
    options.config.sw.list_reread = reread;
    options.config.sw.ignore_owned_list_change = true;
    SimCard card(options);
    SimTsg &a = card.createTsg(), &b = card.createTsg();
    a.channel().saturate(Kernel{kMs});
    b.channel().saturate(Kernel{kMs});
    const auto entries = card.entriesOf({&a, &b});
    const hw_mem mem = card.allocate(4096);
    std::memcpy(mem.cpu, entries.data(), entries.size() * 16);
    card.submitAt(mem, 4);
    card.advanceBy(10 * kMs);
    static_cast<uint32_t *>(mem.cpu)[0] += 1u << 16;  // a's slice doubles
    const uint64_t before_a = card.runNs(a), before_b = card.runNs(b);
    card.advanceBy(kSecond);
    const double ratio = static_cast<double>(card.runNs(a) - before_a) /
                         static_cast<double>(card.runNs(b) - before_b);
    EXPECT_NEAR(ratio, reread ? 2.0 : 1.0, 0.01);
  }
}

TEST(ChipRunlist, StartsAtTheOffset) {
  SimCard card;
  SimTsg &a = card.createTsg(), &b = card.createTsg(), &c = card.createTsg();
  for (SimTsg *tsg : {&a, &b, &c}) tsg->channel().saturate(Kernel{kMs});
  card.submitEntries(card.entriesOf({&a, &b, &c}), 0, 2);
  card.advanceBy(20 * kMs);
  ASSERT_GE(card.records().size(), 4u);
  const uint16_t want[] = {b.id(), c.id(), a.id(), b.id()};
  for (size_t i = 0; i < 4; i++) EXPECT_EQ(card.records()[i].tsg, want[i]) << i;
}

TEST(ChipRunlist, SaysWhereTheOldListWasCut) {
  SimCard card;
  SimTsg &a = card.createTsg(), &b = card.createTsg();
  card.submit({&a, &b});
  EXPECT_EQ(card.read32(0x2b0c), 0u) << "nobody was running";
  b.channel().saturate(Kernel{kMs});
  card.advanceBy(kMs);
  card.submit({&a, &b});
  EXPECT_EQ(card.read32(0x2b0c), b.id() | 1u << 14 | 2u << 16);
}

TEST(ChipRunlist, IsFetchedWhileSchedulingIsDisabled) {
  SimCard card;
  SimTsg &a = card.createTsg();
  a.channel().saturate(Kernel{kMs});
  card.write32(0x2630, 1);
  card.submit({&a});
  card.advanceBy(10 * kMs);
  EXPECT_EQ(card.runNs(a), 0u);
  card.write32(0x2630, 0);
  card.advanceBy(kLoads + kMs);
  EXPECT_EQ(card.runNs(a), kMs);
}

TEST(ChipRunlist, WaitsForSchedulingIfTheChipIsSaidToDoThat) {
  SimCard card(withSwitch(&chip_switches::fetch_waits_for_sched_enable));
  SimTsg &a = card.createTsg();
  a.channel().saturate(Kernel{kMs});
  card.write32(0x2630, 1);
  card.submitEntries(card.entriesOf({&a}));
  card.advanceBy(10 * kMs);
  EXPECT_TRUE(card.isPending());
  card.write32(0x2630, 0);
  card.advanceBy(fetchNs(2) + kLoads + kMs);
  EXPECT_FALSE(card.isPending());
  EXPECT_EQ(card.runNs(a), kMs);
}

TEST(ChipRunlist, KeepsARingThatCameBeforeTheChannelWasListed) {
  SimCard card;
  SimTsg &a = card.createTsg();
  a.channel().launch({.duration_ns = kMs});
  card.advanceBy(kMs);
  card.submit({&a});
  card.advanceBy(2 * kMs);
  EXPECT_EQ(a.channel().completed(), 1u);
}

TEST(ChipRunlist, SurvivesASubmitAtEveryMomentOfASwitch) {
  constexpr uint64_t kKernel = 400000;
  for (uint64_t after = 0; after < 260000; after += 1700) {
    for (int order = 0; order < 2; order++) {
      SimCard card;
      SimTsg &a = card.createTsg(), &b = card.createTsg(), &c = card.createTsg();
      for (SimTsg *tsg : {&a, &b, &c}) tsg->channel().saturate(Kernel{kKernel});
      card.submit({&a, &b});
      card.advanceBy(kLoads + a.sliceNs() - 70000 + after);
      const uint64_t before_a = card.runNs(a), before_c = card.runNs(c);
      card.submit(order ? std::vector{&b, &c} : std::vector{&c, &b});
      card.advanceBy(50 * kMs);
      ASSERT_LE(card.runNs(a) - before_a, kKernel + fetchNs(4)) << after;
      ASSERT_GT(card.runNs(c) - before_c, 20 * kMs) << after;
      for (SimTsg *tsg : {&a, &b, &c}) {
        ASSERT_GE(card.runNs(*tsg), tsg->channel().completed() * kKernel) << after;
        ASSERT_LT(card.runNs(*tsg), (tsg->channel().completed() + 1) * kKernel) << after;
      }
      ASSERT_TRUE(card.protocolErrors().empty());
      const chip_totals t = card.totals();
      ASSERT_EQ(t.run_ns + t.switch_ns + t.idle_ns, card.nowNs());
    }
  }
}

TEST(ChipRunlist, HoldsAsManyTenantsAsThereAreIds) {
  SimCard card;
  std::vector<SimTsg *> tsgs;
  for (int i = 0; i < 2000; i++) tsgs.push_back(&card.createTsg({.ring_log2 = 4}));
  tsgs[3]->channel().saturate(Kernel{kMs});
  tsgs[1999]->channel().saturate(Kernel{kMs});
  card.submit(tsgs);
  card.advanceBy(kLoads + 2 * (tsgs[3]->sliceNs() + kSwitch));
  EXPECT_EQ(card.runNs(*tsgs[3]), tsgs[3]->sliceNs());
  EXPECT_EQ(card.runNs(*tsgs[1999]), tsgs[3]->sliceNs());
}

}  // namespace chip_runlist_test
}  // namespace qgpu::fakes
