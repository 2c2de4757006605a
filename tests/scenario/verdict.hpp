// SPDX-License-Identifier: GPL-2.0
//
// verdict.hpp - what is asked of a run of a World: parts of delivered and of wall time,
// the worst window at any start (judge.hpp), longest waits. All by the chip's own record.
#ifndef QGPU_TESTS_SCENARIO_VERDICT_HPP
#define QGPU_TESTS_SCENARIO_VERDICT_HPP

#include <vector>

#include "judge.hpp"
#include "scenario/work.hpp"
#include "scenario/world.hpp"

namespace qgpu::scenario {

constexpr uint64_t kSwitchNs = 100 * kMicro, kTakeoffNs = 50 * kMicro;

// Windows of this length and up to 3 % longer, so that no rotation is flattered by fitting in.
inline std::vector<uint64_t> about(uint64_t ns) {
  return {ns, ns + ns * 7 / 1000, ns + ns * 15 / 1000, ns + ns * 22 / 1000, ns + ns * 3 / 100};
}

class Verdict {
 public:
  // Nothing outside [from, to] counts.
  Verdict(const World &world, uint64_t from_ns, uint64_t to_ns)
      : record_(world.record()), from_ns_(from_ns), to_ns_(to_ns) {
    for (size_t i = 0; i < world.tenantCount(); i++) {
      bench::Spans spans;
      for (const auto &[from, to] : record_.spans(i)) spans.push_back({from, to});
      ran_.push_back(std::move(spans));
    }
    edges_ = bench::edgesOf(ran_);
  }

  const Record &record() const { return record_; }
  const bench::Spans &ran(size_t i) const { return ran_[i]; }
  double seconds() const { return static_cast<double>(to_ns_ - from_ns_) / 1e9; }
  uint64_t runNs(size_t i) const { return record_.run(i, from_ns_, to_ns_); }
  // Percent of delivered time, of wall time; of wall time, all together.
  double percent(size_t i) const {
    return 100.0 * static_cast<double>(runNs(i)) /
           static_cast<double>(record_.delivered(from_ns_, to_ns_));
  }
  double wallPercent(size_t i) const { return static_cast<double>(runNs(i)) / seconds() / 1e7; }
  double delivered() const {
    return static_cast<double>(record_.delivered(from_ns_, to_ns_)) / seconds() / 1e7;
  }

  // Worst deviation, in percentage points, from a share of delivered time that does not change,
  // over every window of these lengths.
  double worstPp(size_t i, double share, const std::vector<uint64_t> &lengths) const {
    return worst(caseOf(i, share, bench::Entitled::kByWeight), lengths);
  }
  double worstWallPp(size_t i, double share, const std::vector<uint64_t> &lengths) const {
    return worst(caseOf(i, share, bench::Entitled::kFixed), lengths);
  }
  // Only what it had too much.
  double mostWallExcessPp(size_t i, double share, const std::vector<uint64_t> &lengths) const {
    const bench::Case party = caseOf(i, share, bench::Entitled::kFixed);
    double most = -100;
    for (const uint64_t length : lengths) most = std::max(most, party.mostExcessPp(length));
    return most;
  }
  // Only what it had too little, of delivered time.
  double mostShortPp(size_t i, double share, const std::vector<uint64_t> &lengths) const {
    const bench::Case party = caseOf(i, share, bench::Entitled::kByWeight);
    double most = -100;
    for (const uint64_t length : lengths) most = std::max(most, party.mostShortPp(length));
    return most;
  }
  // The longest time with work and not running.
  uint64_t longestWaitNs(size_t i, const bench::Spans &work) const {
    return bench::starvationNs(record_, i, work, from_ns_, to_ns_);
  }
  // The same for one that always has work.
  uint64_t longestGapNs(size_t i) const { return record_.longestGap(i, from_ns_, to_ns_); }

 private:
  bench::Case caseOf(size_t i, double share, bench::Entitled how) const {
    return bench::Case(record_, i, edges_, {{from_ns_, share}}, how, from_ns_, to_ns_);
  }
  static double worst(const bench::Case &party, const std::vector<uint64_t> &lengths) {
    double worst = 0;
    for (const uint64_t length : lengths) worst = std::max(worst, party.worstErrorPp(length));
    return worst;
  }

  Record record_;
  uint64_t from_ns_, to_ns_;
  std::vector<bench::Spans> ran_;
  std::vector<uint64_t> edges_;
};

}  // namespace qgpu::scenario

#endif
