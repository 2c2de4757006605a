// SPDX-License-Identifier: GPL-2.0
// Entries of a runlist: slices as the chip can hold them, and the bytes it reads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

extern "C" {
#include "hw/tu104/tu104.h"
}

namespace tu104_entry_test {

constexpr u64 kMaxNs = 1024ull * 255 << 15;

u64 distance(u64 a, u64 b) { return a > b ? a - b : b - a; }

void expectClose(u64 asked) {
  const u64 got = tu104_ops.slice_round(asked);
  const u64 wanted = std::min(asked, kMaxNs);
  if (asked < 512)
    EXPECT_EQ(got, 1024u) << asked;
  else if (asked < 256 * 1024)
    EXPECT_LE(distance(got, wanted), 512u) << asked;
  else
    EXPECT_LE(distance(got, wanted) * 256, wanted) << asked;
  EXPECT_EQ(tu104_ops.slice_round(got), got) << asked;
}

TEST(Tu104Slice, IsWithinItsStatedErrorAndStableForAnyRequest) {
  const u64 seed = 20261129;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  for (u64 asked = 0; asked < 600'000; asked += 37) expectClose(asked);
  for (int i = 0; i < 200'000; i++) expectClose(random() >> (random() % 64));
  for (u64 edge = 1; edge; edge <<= 1)
    for (u64 asked : {edge - 1, edge, edge + 1, 3 * edge / 2}) expectClose(asked);
  expectClose(kMaxNs - 1);
  expectClose(U64_MAX);
}

TEST(Tu104Slice, NoOtherRepresentableSliceIsNearer) {
  std::vector<u64> all;
  for (u32 scale = 0; scale <= 15; scale++)
    for (u32 timeout = 1; timeout <= 255; timeout++)
      all.push_back(tu104_slice_decode({timeout, scale}));
  std::sort(all.begin(), all.end());
  for (std::size_t i = 0; i + 1 < all.size(); i++) {
    const u64 low = all[i], high = all[i + 1];
    for (u64 asked : {low, low + (high - low) / 3, low + (high - low) / 2, high}) {
      const u64 got = tu104_ops.slice_round(asked);
      EXPECT_LE(distance(got, asked), std::min(distance(low, asked), distance(high, asked)))
          << asked;
    }
  }
}

TEST(Tu104Slice, IsMonotonic) {
  u64 last = 0;
  for (u64 asked = 0; asked < 20'000'000'000; asked += 1 + asked / 997) {
    const u64 got = tu104_ops.slice_round(asked);
    EXPECT_GE(got, last) << asked;
    last = got;
  }
  EXPECT_EQ(last, kMaxNs);
}

TEST(Tu104Slice, LiteralValues) {
  struct Row {
    u64 ns;
    u32 timeout, scale;
  };
  for (const Row &row : {Row{0, 1, 0}, Row{1, 1, 0}, Row{1024, 1, 0}, Row{1535, 1, 0},
                         Row{1536, 2, 0}, Row{255 * 1024, 255, 0}, Row{256 * 1024, 128, 1},
                         Row{1'048'576, 128, 3}, Row{2'097'152, 128, 4}, Row{50'000'000, 191, 8},
                         Row{kMaxNs, 255, 15}, Row{kMaxNs + 1, 255, 15}, Row{U64_MAX, 255, 15}}) {
    const tu104_slice got = tu104_slice_encode(row.ns);
    EXPECT_EQ(got.timeout, row.timeout) << row.ns;
    EXPECT_EQ(got.scale, row.scale) << row.ns;
  }
}

class Tu104Image : public testing::Test {
 protected:
  static constexpr u8 kUntouched = 0xa5;
  std::vector<u8> bytes = std::vector<u8>(4096, kUntouched);
  hw_mem mem{bytes.data(), 0x12340000, 4096, HW_TARGET_SYSMEM_COHERENT};
  u32 entries = 0;

  u32 word(u32 entry, u32 index) const {
    u32 value;
    std::memcpy(&value, &bytes[entry * 16 + index * 4], 4);
    return value;
  }
  int write(const std::vector<hw_image_tsg> &tsgs) {
    return tu104_ops.image_write(&mem, tsgs.data(), static_cast<u32>(tsgs.size()), &entries);
  }
};

TEST_F(Tu104Image, HoldsHeadersAndChannelsAsTheManualLaysThemOut) {
  const hw_channel channels[] = {
      {.id = 0xabc,
       .runqueue = 1,
       .inst_target = 2,
       .userd_target = 3,
       .inst_addr = 0x12'3456'7000,
       .userd_addr = 0xfe'dcba'9200},
      {.id = 5,
       .runqueue = 0,
       .inst_target = 0,
       .userd_target = 0,
       .inst_addr = 0x7000,
       .userd_addr = 0x200},
  };
  ASSERT_EQ(
      write({{.tsg_id = 0xfed, .channel_count = 2, .slice_ns = 1'048'576, .channels = channels}}),
      0);
  EXPECT_EQ(entries, 3u);
  EXPECT_EQ(word(0, 0), 0x80030001u);  // timeout 128, scale 3, type TSG
  EXPECT_EQ(word(0, 1), 2u);
  EXPECT_EQ(word(0, 2), 0xfedu);
  EXPECT_EQ(word(0, 3), 0u);
  EXPECT_EQ(word(1, 0), 0xdcba9200u | 3u << 6 | 2u << 4 | 1u << 1);
  EXPECT_EQ(word(1, 1), 0xfeu);
  EXPECT_EQ(word(1, 2), 0x34567abcu);
  EXPECT_EQ(word(1, 3), 0x12u);
  EXPECT_EQ(word(2, 0), 0x200u);
  EXPECT_EQ(word(2, 2), 0x7005u);
  EXPECT_EQ(bytes[48], kUntouched);
}

TEST_F(Tu104Image, WithoutTsgsIsEmpty) {
  EXPECT_EQ(write({}), 0);
  EXPECT_EQ(entries, 0u);
  EXPECT_EQ(bytes[0], kUntouched);
}

TEST_F(Tu104Image, MayHoldATsgTwice) {
  const hw_channel channel{1, 0, 0, 0, 0x1000, 0x200};
  const hw_image_tsg tsg{.tsg_id = 7, .channel_count = 1, .slice_ns = 1000, .channels = &channel};
  EXPECT_EQ(write({tsg, tsg}), 0);
  EXPECT_EQ(entries, 4u);
}

TEST_F(Tu104Image, FitsToTheLastEntryAndNotOneMore) {
  const std::vector<hw_channel> channels(128, hw_channel{});
  const hw_image_tsg big{
      .tsg_id = 1, .channel_count = 126, .slice_ns = 1, .channels = channels.data()};
  const hw_image_tsg small{
      .tsg_id = 2, .channel_count = 1, .slice_ns = 1, .channels = channels.data()};
  EXPECT_EQ(write({big, big, small}), 0);
  EXPECT_EQ(entries, 256u);
  EXPECT_EQ(write({big, big, small, small}), -ENOSPC);
  mem.bytes = 4095;
  EXPECT_EQ(write({big, big, small}), -ENOSPC);
}

TEST_F(Tu104Image, RefusesWhatTheChipWouldTakeForAMalformedList) {
  const std::vector<hw_channel> channels(129, hw_channel{});
  const hw_channel bad_id{4096, 0, 0, 0, 0, 0}, bad_queue{0, 2, 0, 0, 0, 0},
      bad_inst{0, 0, 0, 0, 0x800, 0}, bad_userd{0, 0, 0, 0, 0, 0x100}, bad_target{0, 0, 4, 0, 0, 0};
  const hw_image_tsg rows[] = {
      {.tsg_id = 1, .channel_count = 0, .slice_ns = 1, .channels = channels.data()},
      {.tsg_id = 1, .channel_count = 129, .slice_ns = 1, .channels = channels.data()},
      {.tsg_id = 4096, .channel_count = 1, .slice_ns = 1, .channels = channels.data()},
      {.tsg_id = 1, .channel_count = 1, .slice_ns = 1, .channels = &bad_id},
      {.tsg_id = 1, .channel_count = 1, .slice_ns = 1, .channels = &bad_queue},
      {.tsg_id = 1, .channel_count = 1, .slice_ns = 1, .channels = &bad_inst},
      {.tsg_id = 1, .channel_count = 1, .slice_ns = 1, .channels = &bad_userd},
      {.tsg_id = 1, .channel_count = 1, .slice_ns = 1, .channels = &bad_target},
  };
  for (const hw_image_tsg &row : rows) EXPECT_EQ(write({row}), -EINVAL) << &row - rows;
}

}  // namespace tu104_entry_test
