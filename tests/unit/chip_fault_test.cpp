// SPDX-License-Identifier: GPL-2.0
// Work that fails: what the card shows of it, whom it stops, and what a driver's recovery gives
// back.
#include <gtest/gtest.h>

#include "unit/chip_driver.hpp"

namespace qgpu::fakes {
namespace chip_fault_test {

constexpr uint64_t kMs = 1000000, kLoads = 50000;
constexpr uint32_t kPreemptPending = 1u << 20, kPbdmaFaulted = 1u << 22, kEngFaulted = 1u << 23;

uint32_t control(const SimChannel &c) { return 0x800004 + 8u * c.id(); }

// Two tenants that always want the runlist; the first one's kernel runs when a test begins.
class Failing : public ::testing::Test {
 protected:
  void SetUp() override { start(SimOptions{}, 0); }
  void start(const SimOptions &options, uint32_t runlist, unsigned channels = 1) {
    card_ = std::make_unique<SimCard>(options);
    a = &card_->createTsg({.channels = channels, .runlist = runlist});
    b = &card_->createTsg({.runlist = runlist});
    a->channel().saturate(Kernel{20 * kMs});
    b->channel().saturate(Kernel{kMs / 2});
    card_->submit({a, b}, runlist);
    card_->advanceUntil([&] { return card_->runNs(*a) > 0; }, card_->nowNs() + 10 * kMs);
    card_->advanceBy(100000);
  }
  void expectBooksBalance(uint32_t engine = 0) {
    const chip_totals t = card_->totals(engine);
    EXPECT_EQ(t.run_ns + t.switch_ns + t.idle_ns, card_->nowNs());
  }
  uint64_t ranIn(const SimTsg &tsg, uint64_t ns) {
    const uint64_t before = card_->runNs(tsg);
    card_->advanceBy(ns);
    return card_->runNs(tsg) - before;
  }

  std::unique_ptr<SimCard> card_;
  SimTsg *a = nullptr, *b = nullptr;
};

TEST_F(Failing, APageFaultStopsGraphicsUntilItIsCleared) {
  ASSERT_EQ(fail(*card_, a->channel(), CHIP_FAULT_PAGE), 0);
  EXPECT_NE(card_->channelStatus(a->channel()) & kEngFaulted, 0u) << "told before anything saved";
  EXPECT_EQ(card_->engineStatus() >> 30, 3u) << "faulted and busy";
  const uint64_t a_ns = card_->runNs(*a);
  EXPECT_EQ(ranIn(*b, 100 * kMs), 0u);
  EXPECT_EQ(card_->runNs(*a), a_ns) << "it stands still";
  EXPECT_EQ(statusCode(card_->engineStatus()), CHIP_STATUS_SWITCH);
  EXPECT_EQ(statusCode(card_->read32(CHIP_PBDMA_STATUS)), CHIP_STATUS_INVALID);
  card_->write32(control(a->channel()), kEngFaulted | 1u << 10);
  EXPECT_GT(ranIn(*b, 100 * kMs), 30 * kMs);
  EXPECT_GT(card_->runNs(*a), a_ns + 30 * kMs) << "the page is there now: the kernel goes on";
  EXPECT_GT(a->channel().completed(), 0u);
  expectBooksBalance();
}

TEST_F(Failing, AnExceptionIsOverWhenTheEngineIsReset) {
  const uint64_t done = a->channel().completed();
  ASSERT_EQ(fail(*card_, a->channel(), CHIP_FAULT_EXCEPTION), 0);
  EXPECT_EQ(card_->read32(CHIP_PMC_INTR), 1u << 12);
  card_->write32(control(a->channel()), kEngFaulted);
  EXPECT_EQ(ranIn(*b, 100 * kMs), 0u) << "the interrupt is still there";
  resetEngine(*card_, 1u << 12);
  EXPECT_EQ(card_->read32(CHIP_PMC_INTR), 0u);
  EXPECT_GT(ranIn(*b, 20 * kMs), 5 * kMs);
  EXPECT_EQ(a->channel().completed(), done) << "what was on the engine is lost";
  expectBooksBalance();
}

TEST_F(Failing, ACopyThatFailsLeavesByItself) {
  start(SimOptions{}, 1);
  ASSERT_EQ(fail(*card_, a->channel(), CHIP_FAULT_PAGE), 0);
  const uint64_t a_ns = card_->runNs(*a);
  EXPECT_GT(ranIn(*b, 100 * kMs), 99 * kMs);
  EXPECT_EQ(card_->runNs(*a), a_ns);
  card_->write32(control(a->channel()), kEngFaulted);
  EXPECT_GT(ranIn(*a, 100 * kMs), 40 * kMs);
  expectBooksBalance(3);
}

TEST_F(Failing, ThePbdmaLeavesAPageFaultByItself) {
  ASSERT_EQ(fail(*card_, a->channel(), CHIP_FAULT_PBDMA_PAGE), 0);
  EXPECT_NE(card_->channelStatus(a->channel()) & kPbdmaFaulted, 0u);
  EXPECT_NE(statusCode(card_->read32(CHIP_PBDMA_STATUS)), CHIP_STATUS_INVALID)
      << "nobody promises that it has saved by then";
  card_->advanceBy(5000);
  EXPECT_EQ(statusCode(card_->read32(CHIP_PBDMA_STATUS)), CHIP_STATUS_INVALID);
  EXPECT_GT(ranIn(*b, 100 * kMs), 99 * kMs);
  expectBooksBalance();
}

TEST_F(Failing, AFaultedChannelKeepsItsTsgAwayUnlessTheSwitchSaysOtherwise) {
  for (const bool channel_only : {false, true}) {
    SimOptions options;
    options.config.sw.fault_holds_channel_only = channel_only;
    start(options, 0, 2);
    a->channel(1).saturate(Kernel{kMs});
    ASSERT_EQ(fail(*card_, a->channel(0), CHIP_FAULT_PBDMA_PAGE), 0);
    card_->advanceBy(50 * kMs);
    EXPECT_EQ(a->channel(1).completed() > 0, channel_only);
    EXPECT_EQ(a->channel(0).completed(), 0u);
    card_->write32(control(a->channel(0)), kPbdmaFaulted);
    card_->advanceBy(100 * kMs);
    EXPECT_GT(a->channel(0).completed(), 0u);
    EXPECT_GT(a->channel(1).completed(), 0u);
  }
}

TEST_F(Failing, APbdmaInterruptFreezesThePbdmaUntilItIsCleared) {
  ASSERT_EQ(fail(*card_, a->channel(), CHIP_FAULT_METHOD), 0);
  EXPECT_EQ(card_->read32(pbdmaBase(0) + CHIP_PBDMA_INTR_0), CHIP_PBDMA_METHOD);
  EXPECT_EQ(card_->read32(CHIP_INTR_PBDMA), 1u);
  EXPECT_EQ(card_->read32(CHIP_INTR_0) & 1u << 29, 1u << 29);
  card_->preempt(*a);
  EXPECT_EQ(ranIn(*b, 100 * kMs), 0u);
  EXPECT_EQ(card_->read32(CHIP_PREEMPT) & kPreemptPending, kPreemptPending);
  EXPECT_EQ(statusCode(card_->read32(CHIP_PBDMA_STATUS)), CHIP_STATUS_SAVE);
  EXPECT_EQ(a->channel().completed(), 1u) << "the engine finishes what it has";
  card_->write32(pbdmaBase(0) + CHIP_PBDMA_INTR_0, CHIP_PBDMA_METHOD);
  EXPECT_EQ(card_->read32(CHIP_INTR_PBDMA), 0u);
  EXPECT_GT(ranIn(*b, kMs), kMs / 2);
  EXPECT_EQ(card_->read32(CHIP_PREEMPT) & kPreemptPending, 0u);
  expectBooksBalance();
}

TEST_F(Failing, ARealPbdmaErrorComesBackUntilTheChannelIsGone) {
  ASSERT_EQ(fail(*card_, a->channel(), CHIP_FAULT_METHOD), 0);
  for (int i = 0; i < 5; i++) {
    card_->advanceBy(50 * kMs);
    EXPECT_EQ(card_->read32(CHIP_INTR_PBDMA), 1u) << i;
    card_->write32(pbdmaBase(0) + CHIP_PBDMA_INTR_0, ~0u);
  }
  a->channel().disable();
  card_->advanceBy(10 * kMs);
  card_->write32(pbdmaBase(0) + CHIP_PBDMA_INTR_0, ~0u);
  card_->advanceBy(10 * kMs);
  const uint32_t inst = card_->read32(0x800000 + 8u * a->channel().id());
  card_->write32(0x800000 + 8u * a->channel().id(), 0);
  card_->write32(0x800000 + 8u * a->channel().id(), inst);
  a->channel().enable();
  a->channel().ring();
  EXPECT_GT(ranIn(*a, 50 * kMs), 10 * kMs);
  EXPECT_EQ(card_->read32(CHIP_INTR_PBDMA), 0u);
}

TEST_F(Failing, CannotHappenToAChannelThatIsNotThere) {
  for (const enum chip_fault fault :
       {CHIP_FAULT_PAGE, CHIP_FAULT_EXCEPTION, CHIP_FAULT_PBDMA_PAGE, CHIP_FAULT_METHOD})
    EXPECT_EQ(fail(*card_, b->channel(), fault), -ENOENT);
  EXPECT_EQ(card_->channelStatus(b->channel()) & (kPbdmaFaulted | kEngFaulted), 0u);
}

TEST_F(Failing, LosesTheGraphicsCopyWithItsEngine) {
  resetEngine(*card_, 1u << 6);
  EXPECT_GT(ranIn(*a, 10 * kMs), 4 * kMs) << "the graphics engine has nothing to do with it";
}

struct RecoveryRow {
  const char *name;
  enum chip_fault fault;
  uint32_t runlist;
  Recovery how;
};

class Recovering : public Failing, public ::testing::WithParamInterface<RecoveryRow> {};

// Whoever was not on the engine loses time, and no more than the recovery took.
TEST_P(Recovering, GivesTheRunlistBackToTheOthers) {
  const RecoveryRow &row = GetParam();
  start(SimOptions{}, row.runlist);
  const RunlistUnits &units = row.runlist ? kCopyUnits : kGraphicsUnits;
  ASSERT_EQ(fail(*card_, a->channel(), row.fault), 0);
  card_->advanceBy(3 * kMs);
  const uint64_t before = card_->nowNs(), launched = b->channel().launched();
  EXPECT_EQ(recover(*card_, *a, units), row.how);
  EXPECT_LE(card_->nowNs() - before, 30 * kMs);
  EXPECT_EQ(card_->read32(CHIP_SCHED_DISABLE), 0u);
  card_->submit({b}, row.runlist);
  EXPECT_GT(ranIn(*b, 100 * kMs), 98 * kMs);
  EXPECT_GE(b->channel().completed() + 4, launched) << "nothing of the other's was lost";
  EXPECT_EQ(card_->read32(CHIP_INTR_PBDMA), 0u);
  card_->destroyTsg(*a);
  EXPECT_EQ(card_->read32(CHIP_INTR_0) & 1, 0u) << "its channels could be unbound";
  expectBooksBalance(units.engine);
  EXPECT_TRUE(card_->protocolErrors().empty());
}

INSTANTIATE_TEST_SUITE_P(
    Each, Recovering,
    ::testing::Values(RecoveryRow{"Page", CHIP_FAULT_PAGE, 0, Recovery::kEngineReset},
                      RecoveryRow{"Exception", CHIP_FAULT_EXCEPTION, 0, Recovery::kEngineReset},
                      RecoveryRow{"PbdmaPage", CHIP_FAULT_PBDMA_PAGE, 0, Recovery::kLeft},
                      RecoveryRow{"Method", CHIP_FAULT_METHOD, 0, Recovery::kLeft},
                      RecoveryRow{"CopyPage", CHIP_FAULT_PAGE, 1, Recovery::kLeft},
                      RecoveryRow{"CopyMethod", CHIP_FAULT_METHOD, 1, Recovery::kLeft}),
    [](const auto &info) { return info.param.name; });

TEST_F(Failing, ARecoveryGivesUpOnAPbdmaThatDoesNotLetGo) {
  setTrouble(*card_, {.pbdma_stuck = 1});
  const uint64_t before = card_->nowNs();
  EXPECT_EQ(recover(*card_, *a), Recovery::kGaveUp);
  EXPECT_LE(card_->nowNs() - before, kRecoveryPatienceNs + kMs);
}

TEST_F(Failing, AnEngineResetUnderAChannelOnItsPbdmaIsAMistakeAndSurvived) {
  resetEngine(*card_, 1u << 12);
  EXPECT_EQ(card_->protocolErrors().size(), 1u);
  EXPECT_EQ(statusCode(card_->engineStatus()), CHIP_STATUS_INVALID);
  EXPECT_GT(ranIn(*b, 50 * kMs), 10 * kMs);
  expectBooksBalance();
}

TEST_F(Failing, AnEngineInResetLoadsNobody) {
  card_->preempt(*a);
  card_->advanceBy(20000);
  const uint32_t enabled = card_->read32(CHIP_PMC_ENABLE);
  card_->write32(CHIP_PMC_ENABLE, enabled & ~(1u << 12));
  EXPECT_EQ(card_->read32(CHIP_PREEMPT) & kPreemptPending, 0u) << "who was asked to go is gone";
  EXPECT_EQ(ranIn(*b, 100 * kMs) + ranIn(*a, 100 * kMs), 0u);
  card_->write32(CHIP_PMC_ENABLE, enabled);
  EXPECT_GT(ranIn(*b, 50 * kMs), 10 * kMs);
}

// At every moment of two switches: the reset is survived, and everybody runs afterwards.
TEST_F(Failing, AnEngineResetAtAnyMomentLeavesNobodyStopped) {
  for (uint64_t after = 0; after < 2'600'000; after += 13'001) {
    start(SimOptions{}, 0);
    card_->advanceBy(after);
    resetEngine(*card_, 1u << 12);
    for (SimTsg *tsg : {a, b}) tsg->channel().ring();
    const uint64_t a_ns = card_->runNs(*a);
    ASSERT_GT(ranIn(*b, 20 * kMs), 0u) << after;
    ASSERT_TRUE(card_->runNs(*a) > a_ns || a->channel().gpGet() == 4) << after;
    expectBooksBalance();
  }
}

// --- what a tenant does wrong ---

struct TenantError {
  const char *name;
  void (*commit)(SimCard &card, SimTsg &tsg);
  uint32_t fault;  // PCCSR bit
  uint32_t intr;   // PBDMA INTR_0 bit
};

void pointEntryAt(SimTsg &tsg, uint64_t va) {
  tsg.channel().writeEntry(0, static_cast<uint32_t>(va),
                           static_cast<uint32_t>(va >> 32) | CHIP_GP1_SYNC);
  tsg.channel().setGpPut(1);
  tsg.channel().ring();
}

const TenantError kTenantErrors[] = {
    {"GpPutOutsideTheRing",
     [](SimCard &, SimTsg &t) {
       t.channel().setGpPut(1024);
       t.channel().ring();
     },
     0, CHIP_PBDMA_GPPTR},
    {"NoSignature",
     [](SimCard &, SimTsg &t) {
       static_cast<uint32_t *>(t.channel().instMemory().cpu)[4] = 0;
       t.channel().launch({.duration_ns = kMs});
     },
     0, CHIP_PBDMA_SIGNATURE},
    {"ARingThatIsNotThere",
     [](SimCard &, SimTsg &t) {
       static_cast<uint32_t *>(t.channel().instMemory().cpu)[19] |= 0xff;
       t.channel().launch({.duration_ns = kMs});
     },
     kPbdmaFaulted, 0},
    {"AKernelThatIsNotThere", [](SimCard &, SimTsg &t) { pointEntryAt(t, 0x1000); }, kEngFaulted,
     0},
    {"ASemaphoreThatIsNotThere",
     [](SimCard &, SimTsg &t) {
       const chip_kernel kernel = {1000, CHIP_CILP, 0, 0x1000, 1};
       const uint64_t va = t.channel().ringVa() + 8192;
       t.channel().writeVa(va, &kernel, sizeof(kernel));
       pointEntryAt(t, va);
     },
     kEngFaulted, 0},
};

class TenantErrors : public ::testing::TestWithParam<TenantError> {};

TEST_P(TenantErrors, FaultWhenTheHostWantsThem) {
  SimOptions options;
  options.config.tenant_errors = true;
  SimCard card(options);
  SimTsg &bad = card.createTsg(), &good = card.createTsg();
  good.channel().saturate(Kernel{kMs});
  card.submit({&bad, &good});
  GetParam().commit(card, bad);
  card.advanceBy(50 * kMs);
  EXPECT_EQ(card.channelStatus(bad.channel()) & (kPbdmaFaulted | kEngFaulted), GetParam().fault);
  EXPECT_EQ(card.read32(pbdmaBase(0) + CHIP_PBDMA_INTR_0), GetParam().intr);
  EXPECT_NE(recover(card, bad), Recovery::kGaveUp);
  card.submit({&good});
  const uint64_t before = card.runNs(good);
  card.advanceBy(50 * kMs);
  EXPECT_GT(card.runNs(good), before + 48 * kMs);
}

TEST_P(TenantErrors, AreSkippedByDefault) {
  SimCard card;
  SimTsg &bad = card.createTsg();
  card.submit({&bad});
  GetParam().commit(card, bad);
  card.advanceBy(50 * kMs);
  EXPECT_EQ(card.channelStatus(bad.channel()) & (kPbdmaFaulted | kEngFaulted), 0u);
  EXPECT_EQ(card.read32(CHIP_INTR_PBDMA), 0u);
}

INSTANTIATE_TEST_SUITE_P(Each, TenantErrors, ::testing::ValuesIn(kTenantErrors),
                         [](const auto &info) { return info.param.name; });

}  // namespace chip_fault_test
}  // namespace qgpu::fakes
