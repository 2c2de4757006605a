// SPDX-License-Identifier: GPL-2.0
// What a TSG answered when it was asked whether it has work with nobody in its way, and what is to
// be thought of it. One that nearly always has is kept from its share by every gap of its own
// (launch-and-sync), and gets windows; one that has not leaves room for others, and windows would
// only hold that room empty.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace qgpu::exec {

// What is thought of one that ends its visits early.
enum class Belief {
  kPaced,  // it has nothing to do for a while
  kSyncs,  // it is back at once
};

class Answers {
 public:
  // What it counts for that one was not back soon after an early end, and what its visits told.
  static constexpr unsigned kNotBack = 4, kVisits = 8;

  void add(bool work, unsigned times = 1) {
    for (; times; times--) bits_ = bits_ << 1 | (work ? 1 : 0), count_ = std::min(count_ + 1, kMax);
  }
  // All but the last few are of another time.
  void keepFresh() { count_ = std::min(count_, kFresh); }

  Belief belief(Belief before) const {
    if (without(kFresh) >= kFreshWithout) return Belief::kPaced;
    if (count_ < kSure) return before;
    const unsigned needed = before == Belief::kSyncs ? kKeepPercent : kBelievePercent;
    return 100 * (count_ - without(count_)) >= needed * count_ ? Belief::kSyncs : Belief::kPaced;
  }
  // Would some more answers soon change it?
  bool inDoubt(Belief belief) const {
    return belief == Belief::kSyncs ? without(kFresh) >= kDoubtWithout
                                    : count_ >= kDoubtWith && without(kDoubtWith) == 0;
  }

 private:
  static constexpr unsigned kMax = 64, kSure = 48;
  static constexpr unsigned kBelievePercent = 87, kKeepPercent = 80;
  // Seven of sixteen without work: one that has some nine times in ten answers so once in 2,000
  // times, and then the next answers put it right.
  static constexpr unsigned kFresh = 16, kFreshWithout = 7;
  static constexpr unsigned kDoubtWithout = 3, kDoubtWith = 8;

  unsigned without(unsigned last) const {
    last = std::min(last, count_);
    const uint64_t mask = last < 64 ? (uint64_t{1} << last) - 1 : UINT64_MAX;
    return last - static_cast<unsigned>(std::popcount(bits_ & mask));
  }

  uint64_t bits_ = 0;  // youngest in bit 0
  unsigned count_ = 0;
};

}  // namespace qgpu::exec
