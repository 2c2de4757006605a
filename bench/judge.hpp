// SPDX-License-Identifier: GPL-2.0
//
// judge.hpp - what a run of a workload is judged by: share errors against the entitled shares of
// those who have work, waits of wakers, starvation. Pure: spans and the chip's record in, numbers
// out. The record (who ran when) is that of the scenario tests; this adds entitlements that
// change with who is awake.
//
//   error of i over [a, b] = |run_i(a,b) - integral of phi_i over [a,b]| / whole
//
// Of what is delivered: phi_i is a share of the time the engine ran tenants, and so is the error
// (whole = delivered time of the window). Of wall time (fixed shares): both are of the clock.
#ifndef QGPU_BENCH_JUDGE_HPP
#define QGPU_BENCH_JUDGE_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "scenario/world.hpp"

namespace qgpu::bench {

struct Span {
  uint64_t from_ns, to_ns;
  bool operator==(const Span &) const = default;
};
using Spans = std::vector<Span>;  // in order, apart

// A gap that the host needs between two kernels is no sleep: 2*s + p, as in the rule's own text.
constexpr uint64_t kHostGapNs = 250'000;

inline Spans closeGaps(const Spans &spans, uint64_t gap_ns) {
  Spans out;
  for (const Span &s : spans)
    if (!out.empty() && s.from_ns <= out.back().to_ns + gap_ns)
      out.back().to_ns = std::max(out.back().to_ns, s.to_ns);
    else
      out.push_back(s);
  return out;
}

// Total length within [from, to].
inline uint64_t lengthWithin(const Spans &spans, uint64_t from_ns, uint64_t to_ns) {
  uint64_t ns = 0;
  for (const Span &s : spans) {
    const uint64_t a = std::max(s.from_ns, from_ns), b = std::min(s.to_ns, to_ns);
    if (b > a) ns += b - a;
  }
  return ns;
}

// From at_ns on the party is entitled to @share, until the next step.
struct Step {
  uint64_t at_ns;
  double share;
  bool operator==(const Step &) const = default;
};
using Steps = std::vector<Step>;  // in order; before the first: 0

// How shares follow from who is awake.
enum class Entitled {
  kByWeight,  // asked / sum of asked of the awake, of delivered time
  kOnline,    // the same among awake online tenants; others only while no online one is awake
  kFixed,     // asked, of wall time, whoever else is awake
};

struct Claimant {
  double asked;
  bool online;
  Spans awake;
};

// For each claimant its steps. O(changes * claimants).
inline std::vector<Steps> entitlements(const std::vector<Claimant> &claimants, Entitled how) {
  std::vector<uint64_t> changes;
  for (const Claimant &c : claimants)
    for (const Span &s : c.awake) {
      changes.push_back(s.from_ns);
      changes.push_back(s.to_ns);
    }
  std::sort(changes.begin(), changes.end());
  changes.erase(std::unique(changes.begin(), changes.end()), changes.end());

  std::vector<Steps> out(claimants.size());
  std::vector<size_t> at(claimants.size());
  std::vector<bool> awake(claimants.size());
  for (const uint64_t t : changes) {
    double sum = 0, online_sum = 0;
    for (size_t i = 0; i < claimants.size(); i++) {
      const Spans &spans = claimants[i].awake;
      while (at[i] < spans.size() && spans[at[i]].to_ns <= t) at[i]++;
      awake[i] = at[i] < spans.size() && spans[at[i]].from_ns <= t;
      if (!awake[i]) continue;
      sum += claimants[i].asked;
      if (claimants[i].online) online_sum += claimants[i].asked;
    }
    const bool online_only = how == Entitled::kOnline && online_sum > 0;
    for (size_t i = 0; i < claimants.size(); i++) {
      double share = 0;
      if (awake[i] && how == Entitled::kFixed)
        share = claimants[i].asked;
      else if (awake[i] && (!online_only || claimants[i].online))
        share = claimants[i].asked / (online_only ? online_sum : sum);
      if (out[i].empty() ? share != 0 : share != out[i].back().share) out[i].push_back({t, share});
    }
  }
  return out;
}

// All instants at which somebody starts or stops to run, in order.
inline std::vector<uint64_t> edgesOf(const std::vector<Spans> &ran) {
  std::vector<uint64_t> edges;
  for (const Spans &spans : ran)
    for (const Span &s : spans) {
      edges.push_back(s.from_ns);
      edges.push_back(s.to_ns);
    }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  return edges;
}

// One party before the judge: run, entitled and whole up to t, which are straight lines between
// the edges of the record (anybody's) and the steps of its entitlement.
class Case {
 public:
  // Nothing outside [from, to] is looked at.
  Case(const scenario::Record &record, size_t party, const std::vector<uint64_t> &edges,
       const Steps &steps, Entitled how, uint64_t from_ns, uint64_t to_ns) {
    std::vector<uint64_t> at = {from_ns, to_ns};
    for (const uint64_t edge : edges)
      if (edge > from_ns && edge < to_ns) at.push_back(edge);
    for (const Step &s : steps)
      if (s.at_ns > from_ns && s.at_ns < to_ns) at.push_back(s.at_ns);
    std::sort(at.begin(), at.end());
    at.erase(std::unique(at.begin(), at.end()), at.end());

    size_t step = 0;
    double entitled = 0, share = 0, whole = 0;
    for (const uint64_t t : at) {
      const double now =
          static_cast<double>(how == Entitled::kFixed ? t - from_ns : record.delivered(from_ns, t));
      entitled += share * (now - whole);
      whole = now;
      while (step < steps.size() && steps[step].at_ns <= t) share = steps[step++].share;
      points_.push_back({t, static_cast<double>(record.run(party, from_ns, t)), entitled, whole});
    }
  }

  double entitledNs(uint64_t from_ns, uint64_t to_ns) const {
    return valueAt(to_ns).entitled - valueAt(from_ns).entitled;
  }
  // Percentage points; the worst over all windows of @length_ns in [from, to]. It is at one that
  // begins or ends at a point: while both ends lie between points, the error is a quotient of
  // straight lines in the window's start, so it has no extreme there. 0: no window is that short.
  double worstErrorPp(uint64_t length_ns) const {
    double worst = 0;
    forEachWindow(length_ns, [&](double error_pp) { worst = std::max(worst, std::abs(error_pp)); });
    return worst;
  }
  // The most that it had too much, in the same windows; below 0: it never had its share.
  double mostExcessPp(uint64_t length_ns) const {
    double most = -100;
    forEachWindow(length_ns, [&](double error_pp) { most = std::max(most, error_pp); });
    return most;
  }
  // The most that it had too little.
  double mostShortPp(uint64_t length_ns) const {
    double most = -100;
    forEachWindow(length_ns, [&](double error_pp) { most = std::max(most, -error_pp); });
    return most;
  }

 private:
  struct Point {
    uint64_t at_ns;
    double run, entitled, whole;
  };

  // @fn(signed error) for each window of @length_ns that begins or ends at a point.
  template <typename Fn>
  void forEachWindow(uint64_t length_ns, Fn fn) const {
    size_t other = 0;
    for (const Point &p : points_) {  // windows that begin at a point
      const uint64_t end_ns = p.at_ns + length_ns;
      if (end_ns > points_.back().at_ns) break;
      while (other + 2 < points_.size() && points_[other + 1].at_ns <= end_ns) other++;
      fn(errorPp(p, between(other, end_ns)));
    }
    other = 0;
    for (const Point &p : points_) {  // and those that end at one
      if (p.at_ns < points_.front().at_ns + length_ns) continue;
      const uint64_t start_ns = p.at_ns - length_ns;
      while (other + 2 < points_.size() && points_[other + 1].at_ns <= start_ns) other++;
      fn(errorPp(between(other, start_ns), p));
    }
  }
  // On the line from point @i to the next one.
  Point between(size_t i, uint64_t ns) const {
    const Point &a = points_[i], &b = points_[i + 1];
    const double part = static_cast<double>(ns - a.at_ns) / static_cast<double>(b.at_ns - a.at_ns);
    return {ns, a.run + part * (b.run - a.run), a.entitled + part * (b.entitled - a.entitled),
            a.whole + part * (b.whole - a.whole)};
  }
  Point valueAt(uint64_t ns) const {
    size_t i = 0;
    while (i + 2 < points_.size() && points_[i + 1].at_ns <= ns) i++;
    return between(i, ns);
  }
  static double errorPp(const Point &from, const Point &to) {
    const double whole = to.whole - from.whole;
    if (whole < 1) return 0;  // less than a nanosecond: rounding
    return (to.run - from.run - (to.entitled - from.entitled)) / whole * 100;
  }

  std::vector<Point> points_;
};

// From each wake within [from, to) to the first instant at which the party runs, ns; who did not
// run any more waited until @to.
inline std::vector<double> waits(const Spans &ran, const std::vector<uint64_t> &wakes,
                                 uint64_t from_ns, uint64_t to_ns) {
  std::vector<double> out;
  for (const uint64_t wake : wakes) {
    if (wake < from_ns || wake >= to_ns) continue;
    const auto it = std::upper_bound(ran.begin(), ran.end(), wake,
                                     [](uint64_t t, const Span &s) { return t < s.to_ns; });
    const uint64_t runs = it == ran.end() ? to_ns : std::clamp(it->from_ns, wake, to_ns);
    out.push_back(static_cast<double>(runs - wake));
  }
  return out;
}

// The longest time with work and without running, ns.
inline uint64_t starvationNs(const scenario::Record &record, size_t party, const Spans &work,
                             uint64_t from_ns, uint64_t to_ns) {
  uint64_t worst = 0;
  for (const Span &s : work) {
    const uint64_t a = std::max(s.from_ns, from_ns), b = std::min(s.to_ns, to_ns);
    if (b > a && b - a > worst) worst = std::max(worst, record.longestGap(party, a, b));
  }
  return worst;
}

}  // namespace qgpu::bench

#endif
