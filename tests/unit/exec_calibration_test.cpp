// SPDX-License-Identifier: GPL-2.0
// What a card costs, measured with two own processes: on a fake card whose costs are known, and out
// of numbers made by hand.
#include <cerrno>

#include "daemon/exec/card_constants.hpp"
#include "daemon/exec/rm_abi.hpp"
#include "unit/exec_bed.hpp"

namespace qgpu::exec {
namespace {

// Of FakeRm: saving, restoring, and from START to full speed.
constexpr double kSaveNs = 80e3, kGapNs = 80e3, kWarmNs = 30e3;

// An executor with processes of no tenant.
struct CalibrationBed : Bed {
  std::vector<int> pidfds;
  size_t own = 0;

  CalibrationBed() { open(); }
  MeasureRequest request(size_t processes, uint64_t slice_us, uint64_t ns) {
    MeasureRequest out{};
    for (size_t i = 0; i < processes; i++) {
      children.push_back(std::make_unique<fakes::Child>());
      const fakes::Child &fresh = *children.back();
      own++;
      io.addProcess(fresh.pid()).work = queued();
      pidfds.push_back(fresh.pidfd());
      out.pids[i] = fresh.pid();
    }
    out.process_count = static_cast<uint32_t>(processes);
    out.slice_us = slice_us;
    out.until_ns = io.nowNs() + ns;
    return out;
  }
  Result<void> begin(const MeasureRequest &request) {
    return executor->beginMeasuring(request, std::exchange(pidfds, {}));
  }
  // Until it is over; what was computed meanwhile is as in a load that goes on.
  Result<CardMeasurement> measure(const MeasureRequest &request) {
    CardMeasurement out{};
    if (const auto begun = begin(request); !begun) return begun.error();
    run(500 * kMilli);
    SpansRequest spans{};
    const uint64_t from_ns = io.nowNs();
    uint64_t before[kMeasuredMax] = {};
    for (size_t i = 0; i < request.process_count; i++) before[i] = io.tsg(request.pids[i]).run_ns;
    run(2 * kSecond);
    for (size_t i = 0; i < request.process_count; i++)
      out.computed[i] = 0.99 * static_cast<double>(io.tsg(request.pids[i]).run_ns - before[i]) /
                        static_cast<double>(io.nowNs() - from_ns);
    for (size_t i = 0; i < kMeasuredMax; i++) {
      spans.from_ns[i] = from_ns;
      spans.to_ns[i] = io.nowNs();
    }
    if (const auto whole = result(); !whole) return whole;
    executor->askSpans(spans);
    endOwn();  // as loads do
    const auto held = result();
    if (!held) return held;
    out.traced = held->traced;
    out.slice_us = request.slice_us;
    out.on_ns = request.on_ns;
    out.off_ns = request.off_ns;
    return out;
  }
  Result<CardMeasurement> result() {
    std::optional<Result<Measured>> done;
    for (int k = 0; k < 1000 && !(done = executor->measured()); k++) run(10 * kMilli);
    if (!done) return Error{ETIME, "it does not end", {}};
    if (!*done) return done->error();
    CardMeasurement out{};
    out.traced = **done;
    return out;
  }
  // The own processes, which are the youngest.
  void endOwn() {
    for (; own; own--) {
      const pid_t pid = children.back()->pid();
      children.back()->end();
      io.endProcess(pid);
      children.pop_back();
    }
    run(200 * kMilli);
  }
};

TEST(Calibration, FindsWhatTheCardCosts) {
  QGPU_TRACE_SEED();
  CalibrationBed bed;
  std::vector<CardMeasurement> pairs;
  for (const uint64_t slice_us : {1000, 10000}) {
    const auto measured = bed.measure(bed.request(2, slice_us, 3 * kSecond));
    ASSERT_TRUE(measured) << measured.error().text();
    pairs.push_back(*measured);
    bed.executor->endMeasuring();
  }
  MeasureRequest turns = bed.request(1, 2000, 3 * kSecond);
  turns.on_ns = 5 * kMilli;
  turns.off_ns = 15 * kMilli;
  const auto alone = bed.measure(turns);
  ASSERT_TRUE(alone) << alone.error().text();
  const auto constants = cardConstants(pairs[0], pairs[1], *alone);
  ASSERT_TRUE(constants) << constants.error().text();
  EXPECT_NEAR(static_cast<double>(constants->visit_ns), kSaveNs + kWarmNs, 0.05 * 110e3);
  EXPECT_NEAR(static_cast<double>(constants->gap_ns), kGapNs, 0.05 * kGapNs);
  EXPECT_NEAR(static_cast<double>(constants->slice_short_ns), kWarmNs, 10e3);
  // From being let run to full speed, less the while until a stop takes effect.
  EXPECT_LT(constants->duty_bias_ns, 500'000u);
  EXPECT_GT(constants->duty_bias_ns, 10'000u);
}

// CUDA sets the slice of a context that it has made, and that may be after it was found.
TEST(Calibration, WaitsUntilTheirOwnDriverHasSetItsSlices) {
  QGPU_TRACE_SEED();
  CalibrationBed bed;
  const MeasureRequest request = bed.request(2, 10000, 3 * kSecond);
  ASSERT_TRUE(bed.begin(request));
  bed.run(300 * kMilli);
  ASSERT_EQ(bed.io.tsg(request.pids[0]).slice_us, 10000u);
  bed.io.tsg(request.pids[0]).slice_us = 2048;
  bed.io.tsg(request.pids[1]).slice_us = 2048;
  const auto measured = bed.result();
  ASSERT_TRUE(measured) << measured.error().text();
  for (size_t i = 0; i < 2; i++)
    EXPECT_NEAR(static_cast<double>(measured->traced.held_ns[i]) /
                    static_cast<double>(measured->traced.visits[i]),
                10.24e6, 1e6);
}

TEST(Calibration, ASliceThatSomebodySetsMeanwhileSpoilsIt) {
  QGPU_TRACE_SEED();
  CalibrationBed bed;
  const MeasureRequest request = bed.request(2, 10000, 3 * kSecond);
  ASSERT_TRUE(bed.begin(request));
  bed.run(2 * kSecond);
  bed.io.tsg(request.pids[1]).slice_us = 2048;
  const auto measured = bed.result();
  ASSERT_FALSE(measured);
  EXPECT_EQ(measured.error().err, EAGAIN);
  EXPECT_EQ(measured.error().item, std::to_string(request.pids[1]));
}

TEST(Calibration, ChangesNothingOfAnybodyElse) {
  QGPU_TRACE_SEED();
  CalibrationBed bed;
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 100)}));
  const size_t a = bed.add(1, queued());
  bed.run(1 * kSecond);
  // A tenant is at work: only with force.
  MeasureRequest request = bed.request(2, 1000, 3 * kSecond);
  EXPECT_EQ(bed.begin(request).error().err, EBUSY);
  request = bed.request(2, 1000, 3 * kSecond);
  request.flags = kMeasureForce;
  const uint64_t slice_us = bed.tsg(a).slice_us;
  const auto measured = bed.measure(request);
  ASSERT_TRUE(measured) << measured.error().text();
  EXPECT_EQ(bed.tsg(a).slice_us, slice_us);
  EXPECT_EQ(bed.tsg(a).gap_longest_ns, 0u);
  EXPECT_EQ(bed.executor->stats().tenants.size(), 1u);
  // A tenant's own process measures nothing.
  bed.pidfds = {dup(0)};
  MeasureRequest tenants = request;
  tenants.process_count = 1;
  tenants.pids[0] = bed.children[a]->pid();
  tenants.until_ns = bed.io.nowNs() + kSecond;
  EXPECT_EQ(bed.begin(tenants).error().err, EBUSY);
}

// What it takes from one tenant more than from another is nobody's debt, nor a drift of slices.
TEST(Calibration, SharesAreKeptRightAfterIt) {
  QGPU_TRACE_SEED();
  CalibrationBed bed;
  ASSERT_TRUE(bed.plan(QGPU_POLICY_BURST_SHARE, {tenantOf(1, 200), tenantOf(2, 100)}));
  const std::vector<size_t> tenants = {bed.add(1, queued()), bed.add(2, queued())};
  bed.run(5 * kSecond);
  MeasureRequest request = bed.request(1, 2000, 3 * kSecond);
  request.on_ns = 5 * kMilli;
  request.off_ns = 15 * kMilli;
  request.flags = kMeasureForce;
  ASSERT_TRUE(bed.begin(request));
  (void)bed.result();  // beside tenants it may not come to measure
  bed.executor->endMeasuring();
  bed.endOwn();
  for (int second = 0; second < 15; second++) {
    const auto got = bed.shares(tenants, kSecond);
    EXPECT_NEAR(got[0] / (got[0] + got[1]), 2.0 / 3, 0.012) << "second " << second;
  }
}

// For as long as whoever asked may still read what its processes counted, but not for ever.
TEST(Calibration, WhatWasSetIsPutBackThoughNobodyHangsUp) {
  QGPU_TRACE_SEED();
  CalibrationBed bed;
  const MeasureRequest request = bed.request(2, 1000, 3 * kSecond);
  ASSERT_TRUE(bed.begin(request));
  bed.run(4 * kSecond);
  ASSERT_TRUE(bed.executor->measured());
  EXPECT_EQ(bed.io.tsg(request.pids[0]).slice_us, 1000u);
  bed.run(12 * kSecond);
  for (const pid_t pid : request.pids) EXPECT_EQ(bed.io.tsg(pid).slice_us, 2048u);
}

TEST(Calibration, WithoutForceOthersThatRunMeanwhileSpoilIt) {
  QGPU_TRACE_SEED();
  CalibrationBed bed;
  const MeasureRequest request = bed.request(2, 1000, 3 * kSecond);
  ASSERT_TRUE(bed.begin(request));
  bed.run(1 * kSecond);
  fakes::Child stranger;
  bed.io.addProcess(stranger.pid()).work = queued();
  bed.run(3 * kSecond);
  const auto measured = bed.executor->measured();
  ASSERT_TRUE(measured);
  ASSERT_FALSE(*measured);
  EXPECT_EQ(measured->error().err, EBUSY);
}

// Whoever ends, and whenever: slices are as found, nobody is stopped, no descriptor is left.
TEST(Calibration, NothingIsLeftWhenItEndsEarly) {
  QGPU_TRACE_SEED();
  for (const bool cancelled : {true, false})
    for (const uint64_t after_ms : {0, 30, 117, 455, 1111}) {
      CalibrationBed bed;
      bed.run(100 * kMilli);
      const size_t open = bed.io.open_fds.size();
      MeasureRequest request = bed.request(1, 1000, 30 * kSecond);
      request.on_ns = request.off_ns = 5 * kMilli;
      ASSERT_TRUE(bed.begin(request));
      bed.run(after_ms * kMilli);
      if (cancelled) {
        bed.executor->endMeasuring();
        EXPECT_FALSE(bed.executor->measured());
        EXPECT_EQ(bed.io.tsg(request.pids[0]).slice_us, 2048u);
        EXPECT_TRUE(bed.io.tsg(request.pids[0]).enabled);
      } else {
        bed.endOwn();
        const auto measured = bed.executor->measured();
        ASSERT_TRUE(measured);
        ASSERT_FALSE(*measured);
        EXPECT_EQ(measured->error().err, ECONNABORTED);
      }
      EXPECT_EQ(bed.io.open_fds.size(), open);
      EXPECT_TRUE(bed.begin(bed.request(1, 1000, 3 * kSecond)));  // and another may begin
    }
}

// Its contexts may have had different slices.
TEST(Calibration, EachContextOfAProcessGetsItsOwnSliceBack) {
  QGPU_TRACE_SEED();
  CalibrationBed bed;
  const MeasureRequest request = bed.request(1, 1000, 30 * kSecond);
  fakes::FakeTsg &second = bed.io.addTsg(request.pids[0]);
  second.slice_us = 4096;
  bed.io.tsg(request.pids[0]).work = {};  // time enough to find both
  ASSERT_TRUE(bed.begin(request));
  bed.run(1 * kSecond);
  EXPECT_EQ(bed.io.tsg(request.pids[0]).slice_us, 1000u);
  EXPECT_EQ(second.slice_us, 1000u);
  bed.executor->endMeasuring();
  EXPECT_EQ(bed.io.tsg(request.pids[0]).slice_us, 2048u);
  EXPECT_EQ(second.slice_us, 4096u);
}

// Whoever waits is told why nothing comes; whoever has its result already is told nothing more.
TEST(Calibration, WhoWaitsIsAnsweredWhenTheTraceIsLost) {
  QGPU_TRACE_SEED();
  for (const uint64_t after_ms : {10, 1000, 4000}) {
    CalibrationBed bed;
    const MeasureRequest request = bed.request(2, 1000, 3 * kSecond);
    ASSERT_TRUE(bed.begin(request));
    bed.run(after_ms * kMilli);
    const bool was_over = bed.executor->measured().has_value();
    EXPECT_EQ(was_over, after_ms == 4000);
    if (was_over) bed.executor->askSpans({{}, {UINT64_MAX / 4}, {UINT64_MAX / 2}});
    bed.io.record_type = 3;
    bed.run(500 * kMilli);
    const auto measured = bed.executor->measured();
    ASSERT_TRUE(measured) << after_ms;
    ASSERT_FALSE(*measured);
    EXPECT_EQ(measured->error().err, EOPNOTSUPP);
    EXPECT_NE(measured->error().sentence.find("trace"), std::string::npos);
    EXPECT_FALSE(bed.executor->measuring());
    for (const pid_t pid : request.pids) EXPECT_EQ(bed.io.tsg(pid).slice_us, 2048u);
  }
}

TEST(Calibration, RefusesWhatCannotBeMeasured) {
  QGPU_TRACE_SEED();
  CalibrationBed bed;
  MeasureRequest slice = bed.request(1, 100, kSecond);
  EXPECT_EQ(bed.begin(slice).error().err, ERANGE);
  MeasureRequest turns = bed.request(2, 1000, kSecond);
  turns.on_ns = turns.off_ns = 5 * kMilli;
  EXPECT_EQ(bed.begin(turns).error().err, EINVAL);
  MeasureRequest late = bed.request(1, 1000, 1000 * kSecond);
  EXPECT_EQ(bed.begin(late).error().err, ERANGE);
  MeasureRequest other = bed.request(1, 1000, kSecond);
  other.pids[0] = getpid();
  EXPECT_EQ(bed.begin(other).error().err, EINVAL);
  // Never at work.
  MeasureRequest idle = bed.request(1, 1000, kSecond);
  bed.io.tsg(idle.pids[0]).work = {};
  ASSERT_TRUE(bed.begin(idle));
  bed.run(2 * kSecond);
  EXPECT_EQ(bed.executor->measured()->error().err, ETIMEDOUT);
}

TEST(Calibration, WhatWasMeasuredIsUsedAndOutlivesTheWorker) {
  QGPU_TRACE_SEED();
  Bed bed;
  bed.open();
  EXPECT_EQ(bed.executor->stats().head.constants.measured_s, 0u);
  CardConstants constants{60'000, 40'000, 15'000, 20'000, 1'700'000'000};
  ASSERT_TRUE(bed.executor->setConstants(constants));
  CardConstants absurd = constants;
  absurd.visit_ns = 10;
  EXPECT_EQ(bed.executor->setConstants(absurd).error().err, ERANGE);
  for (int i = 0; i < 2; i++) {
    const Stats stats = bed.executor->stats();
    EXPECT_EQ(stats.head.constants.visit_ns, 60'000u);
    EXPECT_EQ(stats.head.constants.measured_s, 1'700'000'000u);
    EXPECT_EQ(bed.executor->hello().switch_ns, 100'000u);
    bed.executor->stop();
    bed.executor.reset();
    bed.open();
  }
  // A file that is damaged is as none.
  bed.folder.write("GPU-fake.card", "visit_ns 60000\ngap_ns x\n");
  bed.executor.reset();
  bed.open();
  EXPECT_EQ(bed.executor->stats().head.constants.measured_s, 0u);
}

TEST(CardConstants, ComeBackAsTheyWereAndNothingMalformedDoes) {
  const CardConstants constants{120'000, 82'000, 28'000, 75'000, 1'700'000'000};
  const std::string text = formatConstants(constants);
  const auto back = parseConstants(text);
  ASSERT_TRUE(back);
  EXPECT_EQ(formatConstants(*back), text);
  for (size_t n = 0; n + 12 < text.size(); n++)
    EXPECT_FALSE(parseConstants(text.substr(0, n))) << n;
}

// One H200's numbers of 2026-11 (held shares and visits by the trace, work by the tenants' counts).
TEST(CardConstants, OfNumbersOfARealCard) {
  CardMeasurement shorter{}, longer{};
  shorter.traced = {
      0, {1'000'000'000, 1'000'000'000}, {481'600'000, 481'900'000}, {220, 220}, 82'500};
  shorter.computed[0] = shorter.computed[1] = 0.4551 * 1.014;
  shorter.slice_us = 2048;
  longer.traced = {0, {1'000'000'000, 1'000'000'000}, {654'600'000, 332'200'000}, {79, 79}, 82'400};
  longer.computed[0] = 0.6448 * 1.014;
  longer.computed[1] = 0.3223 * 1.014;
  longer.slice_us = 8000;
  const auto constants = cardConstants(shorter, longer, std::nullopt);
  ASSERT_TRUE(constants) << constants.error().text();
  EXPECT_NEAR(static_cast<double>(constants->visit_ns), 120e3, 12e3);
  EXPECT_EQ(constants->duty_bias_ns, 0u);
  CardMeasurement same = shorter;
  same.slice_us = longer.slice_us;
  EXPECT_EQ(cardConstants(shorter, same, std::nullopt).error().err, ERANGE);
  std::swap(shorter.computed[0], longer.computed[0]);
  EXPECT_EQ(cardConstants(shorter, longer, std::nullopt).error().err, ERANGE);
}

}  // namespace
}  // namespace qgpu::exec
