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

}  // namespace metrics_test
}  // namespace qgpu
