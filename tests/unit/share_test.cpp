// SPDX-License-Identifier: GPL-2.0
#include <gtest/gtest.h>

#include <numeric>

#include "unit/core_bench.hpp"

namespace qgpu::core_bench {
namespace share_test {

core_claim claim(u32 weight, u32 guarantee = 0, u32 ceiling = CORE_PPM,
                 core_class class_ = CORE_NORMAL) {
  core_claim c{};
  c.weight = weight;
  c.guarantee_ppm = guarantee;
  c.ceiling_ppm = ceiling;
  c.class_ = class_;
  return c;
}

std::vector<u32> split(std::vector<core_claim> claims) {
  core_share_split(claims.data(), static_cast<u32>(claims.size()), CORE_PPM);
  std::vector<u32> shares;
  for (const core_claim &c : claims) shares.push_back(c.share_ppm);
  return shares;
}

std::vector<u32> windows(std::vector<core_claim> claims) {
  core_share_windows(claims.data(), static_cast<u32>(claims.size()));
  std::vector<u32> shares;
  for (const core_claim &c : claims) shares.push_back(c.share_ppm);
  return shares;
}

uint64_t sum(const std::vector<u32> &v) { return std::accumulate(v.begin(), v.end(), 0ull); }

using Shares = std::vector<u32>;

TEST(Share, FollowsWeights) {
  EXPECT_EQ(split({claim(400), claim(300), claim(200), claim(100)}),
            (Shares{400'000, 300'000, 200'000, 100'000}));
  EXPECT_EQ(split({claim(100)}), (Shares{1'000'000}));
  EXPECT_EQ(split({}), (Shares{}));
}

TEST(Share, GivesTheOddPartsToTheLargestRemainders) {
  EXPECT_EQ(split({claim(1), claim(1), claim(1)}), (Shares{333'334, 333'333, 333'333}));
  // 1/7 = 142857.14, 2/7 = 285714.29, 4/7 = 571428.57
  EXPECT_EQ(split({claim(1), claim(2), claim(4)}), (Shares{142'857, 285'714, 571'429}));
}

TEST(Share, GivesGuaranteesBeforeWeights) {
  EXPECT_EQ(split({claim(100, 500'000), claim(100), claim(300)}),
            (Shares{600'000, 100'000, 300'000}));
  // A guarantee alone decides when nothing is left.
  EXPECT_EQ(split({claim(1, 700'000), claim(10'000, 300'000), claim(100)}),
            (Shares{700'000, 300'000, 0}));
}

TEST(Share, FillsUpToCeilings) {
  EXPECT_EQ(split({claim(100, 0, 100'000), claim(100), claim(100)}),
            (Shares{100'000, 450'000, 450'000}));
  // All at their ceiling: the rest stays with nobody.
  EXPECT_EQ(split({claim(100, 0, 100'000), claim(100, 0, 200'000)}), (Shares{100'000, 200'000}));
}

TEST(Share, GivesOfflineWhatIsLeft) {
  EXPECT_EQ(split({claim(100), claim(100, 0, CORE_PPM, CORE_OFFLINE)}), (Shares{1'000'000, 0}));
  EXPECT_EQ(split({claim(100, 0, 300'000), claim(100, 0, CORE_PPM, CORE_OFFLINE),
                   claim(300, 0, CORE_PPM, CORE_OFFLINE)}),
            (Shares{300'000, 175'000, 525'000}));
  EXPECT_EQ(split({claim(100), claim(100, 50'000, CORE_PPM, CORE_OFFLINE)}),
            (Shares{950'000, 50'000}));
}

TEST(Share, OfWindowsIsTheGuaranteeAndTheRestIsSplit) {
  EXPECT_EQ(windows({claim(100, 300'000), claim(100)}), (Shares{300'000, 700'000}));
  EXPECT_EQ(windows({claim(100, 300'000), claim(100), claim(300)}),
            (Shares{300'000, 175'000, 525'000}));
  EXPECT_EQ(windows({claim(100, 600'000), claim(100, 300'000)}), (Shares{600'000, 300'000}));
  EXPECT_EQ(windows({claim(100, 1'000'000), claim(100)}), (Shares{1'000'000, 10'000}));
  EXPECT_EQ(windows({claim(1), claim(1), claim(1)}), (Shares{333'334, 333'333, 333'333}));
}

// Random claims of every kind.
std::vector<core_claim> randomClaims(std::mt19937_64 &random) {
  std::vector<core_claim> claims;
  const size_t n = 1 + random() % 40;
  u32 left = CORE_PPM;
  for (size_t i = 0; i < n; i++) {
    core_claim c = claim(1 + static_cast<u32>(random() % 10'000));
    if (random() % 3 == 0) c.guarantee_ppm = static_cast<u32>(random() % (left / 2 + 1));
    left -= c.guarantee_ppm;
    if (random() % 3 == 0)
      c.ceiling_ppm =
          std::max<u32>(1, c.guarantee_ppm + static_cast<u32>(random() % (CORE_PPM / 4)));
    c.ceiling_ppm = std::min<u32>(c.ceiling_ppm, CORE_PPM);
    c.class_ = static_cast<core_class>(random() % 3);
    claims.push_back(c);
  }
  return claims;
}

TEST(ShareProperty, HoldsForRandomClaims) {
  std::mt19937_64 random(seed());
  for (int round = 0; round < 3000; round++) {
    std::vector<core_claim> claims = randomClaims(random);
    core_share_split(claims.data(), static_cast<u32>(claims.size()), CORE_PPM);
    uint64_t total = 0, ceilings = 0;
    for (const core_claim &c : claims) {
      total += c.share_ppm;
      ceilings += c.ceiling_ppm;
      ASSERT_GE(c.share_ppm, std::min(c.guarantee_ppm, c.ceiling_ppm));
      ASSERT_LE(c.share_ppm, c.ceiling_ppm);
    }
    ASSERT_EQ(total, std::min<uint64_t>(ceilings, CORE_PPM));
    // Two of a class that are not at their ceiling have what is above the guarantee by weight.
    for (const core_claim &a : claims)
      for (const core_claim &b : claims) {
        if ((a.class_ == CORE_OFFLINE) != (b.class_ == CORE_OFFLINE)) continue;
        if (a.share_ppm >= a.ceiling_ppm || b.share_ppm >= b.ceiling_ppm) continue;
        const double ea = a.share_ppm - a.guarantee_ppm, eb = b.share_ppm - b.guarantee_ppm;
        ASSERT_NEAR(ea / a.weight, eb / b.weight, 1.0 / a.weight + 1.0 / b.weight);
      }
    // Offline above its guarantee only when everybody else is at the ceiling.
    bool others_full = true, offline_fed = false;
    for (const core_claim &c : claims) {
      if (c.class_ == CORE_OFFLINE)
        offline_fed |= c.share_ppm > c.guarantee_ppm;
      else
        others_full &= c.share_ppm == c.ceiling_ppm;
    }
    ASSERT_TRUE(others_full || !offline_fed);
  }
}

TEST(ShareProperty, WindowsAddUpForRandomClaims) {
  std::mt19937_64 random(seed() + 1);
  for (int round = 0; round < 3000; round++) {
    std::vector<core_claim> claims = randomClaims(random);
    uint64_t assigned = 0, most = 0;
    for (core_claim &c : claims) {
      assigned += c.guarantee_ppm;
      if (!c.guarantee_ppm) most += c.ceiling_ppm;
    }
    const uint64_t rest = std::max<uint64_t>(CORE_PPM - std::min<uint64_t>(assigned, CORE_PPM),
                                             CORE_REST_MIN_PPM);
    const Shares shares = windows(claims);
    ASSERT_EQ(sum(shares), assigned + std::min(rest, most));
    for (size_t i = 0; i < claims.size(); i++)
      ASSERT_LE(shares[i], std::max(claims[i].guarantee_ppm, claims[i].ceiling_ppm));
  }
}

TEST(Share, ScalesGuaranteesThatAreTooMuch) {
  EXPECT_EQ(split({claim(1, 800'000), claim(1, 800'000)}), (Shares{500'000, 500'000}));
  EXPECT_EQ(sum(split({claim(1, 999'999), claim(1, 333'333), claim(1, 1), claim(9)})), CORE_PPM);
}

}  // namespace share_test
}  // namespace qgpu::core_bench
