// SPDX-License-Identifier: GPL-2.0
// What a card's settings come to for each tenant: computed by the scheduling core itself, which
// plans for made-up tenants that all have work, so that no formula stands twice.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "policy.hpp"

namespace qgpu {

struct TenantPromise {
  std::string name;
  uint32_t share_ppm = 0;  // of delivered time, of the clock's time in windows; online busy
  // Longest time from having work to running within its share; 0 = nothing is promised, as to the
  // group beside online tenants: it takes turns in windows and loses the engine to them. Not in it:
  // tails of work that cannot be cut; gaps that are held for launch-and-sync owners of windows;
  // the order by lag that tenants get who do not fit the rotation; more than one tenant that wakes
  // in one round of it. Who asked for a wait has room for all of these but tails in what it
  // asked for.
  uint64_t wait_ns = 0;
  uint32_t off_ppm = 0;  // most that any second may be off by, of the share's whole
};

// Who is active of the tenants that promises are computed for, by their places among them.
struct ActiveSet {
  std::optional<size_t> without;                  // all but this one
  std::optional<std::pair<size_t, size_t>> pair;  // these two alone

  bool has(size_t i) const { return pair ? i == pair->first || i == pair->second : i != without; }
};

struct CardPromise {
  std::vector<TenantPromise> tenants;
  uint32_t loss_ppm = 0;  // what switching costs
};

struct ComputedPromises {
  CardPromise all;    // everybody busy at all times
  CardPromise worst;  // for each figure, the worst set of tenants that may be active alone
  std::vector<ActiveSet> longest_wait;  // for each tenant, the set that its worst wait is of
  // A tenant of class online is on the card: no loss has in it what its coming and going costs.
  bool beside_online = false;
  bool every_pair = true;  // false: see below
  size_t plans = 0;        // how many were made for all this
};

// What a switch of a card costs: as it told, or what is assumed of one that did not (0), which
// under method rm is what an H200 was measured to have.
uint64_t switchNsOf(CardMethod method, uint64_t told_ns);

// Each tenant with one context, "default" without work. switch_ns: the card's switch cost.
// Sets that are looked at: all, all but one, and every pair; tenants of the same settings stand for
// each other. Of more than 4096 pairs of different settings (from 91 on), each tenant's with those
// of the largest shares.
ComputedPromises promisesOf(const DesiredCard &card, uint64_t switch_ns);

// The promises of many cards: those of cards of the same settings are computed once.
class PromiseBook {
 public:
  // Stays where it is for the life of the book.
  const ComputedPromises &of(const DesiredCard &card, uint64_t switch_ns);

  // How many were made so far.
  size_t plans() const;

 private:
  struct Entry {
    DesiredCard card;
    uint64_t switch_ns;
    ComputedPromises promises;
  };
  std::deque<Entry> entries_;
};

// Why no shorter wait can be promised, or none: the same values as enum core_hindrance.
enum class Hindrance { kSwitches, kWeights, kOnline, kShares, kWindows };

struct WakeBound {
  uint64_t ns;  // the shortest wait that can be promised; UINT64_MAX = none
  Hindrance by;
};

// For each tenant of a card under burst-share, "default" among them: what the driver holds a
// wake_within against.
std::vector<WakeBound> wakeBoundsOf(const DesiredCard &card, uint64_t switch_ns);

}  // namespace qgpu
