// SPDX-License-Identifier: GPL-2.0
#include "metrics.hpp"

#include <gtest/gtest.h>

#include "clock.hpp"

namespace qgpu {
namespace metrics_test {

Sample sampleOf(uint32_t tenant, uint64_t time_ns, uint64_t run_ns, uint64_t since_ns = 1) {
  Sample sample;
  sample.tenant_id = tenant;
  sample.time_ns = time_ns;
  sample.run_ns = run_ns;
  sample.since_ns = since_ns;
  return sample;
}

TEST(Metrics, ShareIsOfDeliveredTimeAndUseOfWallTime) {
  Metrics metrics;
  metrics.update({sampleOf(2, 0, 0), sampleOf(3, 0, 0), sampleOf(QGPU_TENANT_NOBODY, 0, 0)});
  metrics.update({sampleOf(2, kSecondNs, 600'000'000), sampleOf(3, kSecondNs, 300'000'000),
                  sampleOf(QGPU_TENANT_NOBODY, kSecondNs, 50'000'000)});
  EXPECT_EQ(metrics.tenant(0, 2)->share_ppm, 666'666u);
  EXPECT_EQ(metrics.tenant(0, 2)->use_ppm, 600'000u);
  EXPECT_EQ(metrics.tenant(0, 3)->share_ppm, 333'333u);
}

TEST(Metrics, FirstSampleHasNoRate) {
  Metrics metrics;
  metrics.update({sampleOf(2, kSecondNs, 600'000'000)});
  EXPECT_EQ(metrics.tenant(0, 2)->interval_ns, 0u);
  EXPECT_FALSE(metrics.tenant(0, 9));
}

TEST(Metrics, CountersThatBeganAnewGiveNoRate) {
  Metrics metrics;
  metrics.update({sampleOf(2, kSecondNs, 900'000'000)});
  metrics.update({sampleOf(2, 2 * kSecondNs, 950'000'000, 1'500'000'000)});
  EXPECT_EQ(metrics.tenant(0, 2)->interval_ns, 0u);
  metrics.update({sampleOf(2, 3 * kSecondNs, 10, 1'500'000'000)});
  EXPECT_EQ(metrics.tenant(0, 2)->interval_ns, 0u);
}

TEST(Metrics, TenantThatIsGoneIsForgotten) {
  Metrics metrics;
  metrics.update({sampleOf(2, 0, 0), sampleOf(3, 0, 0)});
  metrics.update({sampleOf(3, kSecondNs, 5)});
  EXPECT_FALSE(metrics.tenant(0, 2));
  EXPECT_EQ(metrics.tenant(0, 3)->share_ppm, uint32_t{QGPU_PPM});
}

TEST(Metrics, TheSameSampleAgainIsNotANewOne) {
  Metrics metrics;
  metrics.update({sampleOf(2, 0, 0)});
  metrics.update({sampleOf(2, kSecondNs, 500'000'000)});
  metrics.update({sampleOf(2, kSecondNs, 500'000'000)});
  EXPECT_EQ(metrics.tenant(0, 2)->use_ppm, 500'000u);
}

TEST(Metrics, TooShortAnIntervalIsNotANewOne) {
  Metrics metrics;
  metrics.update({sampleOf(2, 0, 0)});
  metrics.update({sampleOf(2, kSecondNs, 500'000'000)});
  metrics.update({sampleOf(2, kSecondNs + 1000, 500'001'000)});
  EXPECT_EQ(metrics.tenant(0, 2)->use_ppm, 500'000u);
}

// Of the same interval as the tenants' rates.
TEST(Metrics, WhatTenantsDidNotGetIsOfTheirInterval) {
  Metrics metrics;
  const auto update = [&](uint64_t time_ns, uint64_t idle_ns, uint64_t switch_ns,
                          uint64_t nobody_ns) {
    Sample totals;
    totals.time_ns = time_ns;
    totals.since_ns = 1;
    totals.idle_ns = idle_ns;
    totals.switch_ns = switch_ns;
    metrics.update({totals, sampleOf(QGPU_TENANT_NOBODY, time_ns, nobody_ns),
                    sampleOf(2, time_ns, time_ns / 2)});
  };
  update(kSecondNs, 900'000'000, 7, 0);
  EXPECT_FALSE(metrics.card(0));
  update(3 * kSecondNs, 1'400'000'000, 20'000'007, 100'000'000);
  EXPECT_EQ(metrics.card(0)->interval_ns, 2 * kSecondNs);
  EXPECT_EQ(metrics.card(0)->interval_ns, metrics.tenant(0, 2)->interval_ns);
  EXPECT_EQ(metrics.card(0)->idle_ppm, 250'000u);
  EXPECT_EQ(metrics.card(0)->switch_ppm, 10'000u);
  EXPECT_EQ(metrics.card(0)->nobody_ppm, 50'000u);
  // Too short to be one.
  update(3 * kSecondNs + 1000, 1'400'001'000, 20'000'007, 100'000'000);
  EXPECT_EQ(metrics.card(0)->interval_ns, 2 * kSecondNs);
  EXPECT_FALSE(metrics.card(1));
}

TEST(Metrics, TheWaitThatIsOnIsCounted) {
  Metrics metrics;
  Sample sample = sampleOf(2, kSecondNs, 100);
  const auto pass = [&](uint64_t run_ns, uint64_t wait_ns, uint64_t throttled_ns) {
    sample.time_ns += kSecondNs;
    sample.run_ns += run_ns;
    sample.wait_ns += wait_ns;
    sample.throttled_ns += throttled_ns;
    metrics.update({sample});
    return metrics.tenant(0, 2)->waiting_ns;
  };
  metrics.update({sample});
  EXPECT_EQ(pass(0, kSecondNs, 0), kSecondNs);
  EXPECT_EQ(pass(0, kSecondNs, 0), 2 * kSecondNs);
  // Not what a ceiling keeps from it.
  EXPECT_EQ(pass(0, kSecondNs, kSecondNs / 4), 2 * kSecondNs + 3 * kSecondNs / 4);
  EXPECT_EQ(pass(0, kSecondNs, kSecondNs), 2 * kSecondNs + 3 * kSecondNs / 4);
  EXPECT_EQ(pass(1, kSecondNs, 0), 0u);
  EXPECT_EQ(pass(0, kSecondNs, 0), kSecondNs);
  EXPECT_EQ(pass(0, 0, 0), 0u);  // it has no work any more
  EXPECT_EQ(pass(0, kSecondNs, kSecondNs), 0u);
}

TEST(Metrics, AnIntervalInWhichThePlanChangedIsMarked) {
  Metrics metrics;
  Sample sample = sampleOf(2, kSecondNs, 100);
  CardSnapshot card;
  card.tenants.resize(2);
  const auto pass = [&] {
    sample.time_ns += kSecondNs;
    sample.generation++;
    metrics.update({sample}, planMarksOf({card}));
    return metrics.tenant(0, 2)->new_plan;
  };
  EXPECT_FALSE(pass());
  EXPECT_FALSE(pass());
  card.tenants[1].asked.weight++;
  EXPECT_TRUE(pass());
  EXPECT_FALSE(pass());
  card.info.policy++;
  EXPECT_TRUE(pass());
  // Pods that come and go keep nobody from being judged.
  card.tenants[1].asked.cgroups.push_back(7);
  EXPECT_FALSE(pass());
}

}  // namespace metrics_test
}  // namespace qgpu
