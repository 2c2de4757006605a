// SPDX-License-Identifier: GPL-2.0
//
// promise.hpp - what the tests of promises (promises_*_test.cpp) share: a run that is watched, with
// nothing wrong on the way.
#ifndef QGPU_TESTS_SCENARIO_PROMISE_HPP
#define QGPU_TESTS_SCENARIO_PROMISE_HPP

#include <gtest/gtest.h>

#include "fakes/seed.hpp"
#include "quantile.hpp"
#include "scenario/verdict.hpp"

namespace qgpu::scenario {

// Let the world pass @settle_ns, then watch it for @watch_ns.
inline Verdict watch(World &world, uint64_t settle_ns, uint64_t watch_ns) {
  const uint64_t from = world.nowNs() + settle_ns, to = from + watch_ns;
  world.runTo(to);
  EXPECT_EQ(world.lastError(), 0);
  EXPECT_TRUE(world.card().protocolErrors().empty()) << world.card().protocolErrors().front();
  return Verdict(world, from, to);
}

}  // namespace qgpu::scenario

#endif
