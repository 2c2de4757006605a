// SPDX-License-Identifier: GPL-2.0
// Somebody's list: found by the registers, read entry by entry, and refused where a card would.
#include <cstring>
#include <utility>
#include <vector>

#include "unit/tu104_card.hpp"

extern "C" {
#include "hw/tu104/list.h"
}

namespace tu104_list_test {

constexpr u32 kPending = 1u << 15;

using Found = std::vector<std::pair<u16, hw_channel>>;

void note(void *ctx, u16 tsg_id, const hw_channel *channel) {
  static_cast<Found *>(ctx)->emplace_back(tsg_id, *channel);
}

class Tu104List : public qgpu::fakes::Tu104Card {
 protected:
  void SetUp() override { probe(); }

  int read(const void *entries, u32 count) { return tu104_list_read(&reader, entries, count); }

  Found found;
  tu104_list_reader reader{.channel = note, .ctx = &found, .tsg_id = 0, .missing = 0};
  tu104_list list{};
};

TEST_F(Tu104List, LiesWhereTheRegistersSay) {
  io.set(0x2b30, 0x12345002);
  io.set(0x2b34, 0xab);
  io.set(0x2b38, 17);
  ASSERT_EQ(tu104_list_find(&hw, 3, &list), 0);
  EXPECT_EQ(list.addr, 0xab'1234'5000u);
  EXPECT_EQ(list.target, HW_TARGET_SYSMEM_COHERENT);
  EXPECT_EQ(list.entries, 17u);
  EXPECT_TRUE(io.writes().empty());
}

TEST_F(Tu104List, IsNotFoundWhileItChanges) {
  io.set(0x2b0c, kPending);
  EXPECT_EQ(tu104_list_find(&hw, 0, &list), -EAGAIN);
  io.set(0x2b0c, 0);
  EXPECT_EQ(tu104_list_find(&hw, 0, &list), 0);
  EXPECT_EQ(tu104_list_find(&hw, 11, &list), -EINVAL);
  io.set(0x2b08, 0xffffffff);
  io.set(TU104_PMC_BOOT_0, 0xffffffff);
  EXPECT_EQ(tu104_list_find(&hw, 0, &list), -ENODEV);
}

// Where it begins is a field that no known driver uses.
TEST_F(Tu104List, ThatBeginsInTheMiddleIsNotUnderstood) {
  io.set(0x2b30, 0x12345002);
  io.set(0x2b38, 17u | 3u << 16);
  EXPECT_EQ(tu104_list_find(&hw, 3, &list), -EOPNOTSUPP);
}

TEST_F(Tu104List, IsAwaitedForABoundedTime) {
  io.set(0x2b0c, kPending);
  const u64 from_ns = hw_now_ns(&hw.io);
  EXPECT_EQ(tu104_list_await(&hw, 0, &list), -EAGAIN);
  EXPECT_GE(hw_now_ns(&hw.io) - from_ns, 500'000u);
  io.set(0x2b0c, 0);
  EXPECT_EQ(tu104_list_await(&hw, 0, &list), 0);
}

TEST_F(Tu104List, IsReadAsItIsWritten) {
  const hw_channel channels[] = {
      {.id = 0xabc,
       .runqueue = 1,
       .inst_target = 2,
       .userd_target = 3,
       .inst_addr = 0x12'3456'7000,
       .userd_addr = 0xfe'dcba'9200,
       .closed = false},
      {.id = 5,
       .runqueue = 0,
       .inst_target = 0,
       .userd_target = 0,
       .inst_addr = 0x7000,
       .userd_addr = 0x200,
       .closed = false},
  };
  const hw_image_tsg tsgs[] = {
      {.tsg_id = 0xfed, .channel_count = 2, .slice_ns = 1'048'576, .channels = channels},
      {.tsg_id = 1, .channel_count = 1, .slice_ns = 1024, .channels = &channels[1]},
  };
  std::vector<u8> bytes(4096);
  hw_mem mem{bytes.data(), 0x1000, 4096, HW_TARGET_SYSMEM_COHERENT};
  u32 entries = 0;
  ASSERT_EQ(tu104_ops.image_write(&mem, tsgs, 2, &entries), 0);
  // In two pieces, cut within a TSG.
  ASSERT_EQ(read(bytes.data(), 2), 0);
  EXPECT_EQ(reader.missing, 1u);
  ASSERT_EQ(read(&bytes[32], entries - 2), 0);
  EXPECT_EQ(reader.missing, 0u);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].first, 0xfed);
  EXPECT_EQ(found[1].first, 0xfed);
  EXPECT_EQ(found[2].first, 1);
  for (const auto &[got, wanted] :
       {std::pair{found[0].second, channels[0]}, std::pair{found[1].second, channels[1]}}) {
    EXPECT_EQ(got.id, wanted.id);
    EXPECT_EQ(got.runqueue, wanted.runqueue);
    EXPECT_EQ(got.inst_target, wanted.inst_target);
    EXPECT_EQ(got.userd_target, wanted.userd_target);
    EXPECT_EQ(got.inst_addr, wanted.inst_addr);
    EXPECT_EQ(got.userd_addr, wanted.userd_addr);
  }
}

TEST_F(Tu104List, ThatNoCardWouldTakeIsRefused) {
  const u32 header[4] = {1, 1, 7, 0}, empty[4] = {1, 0, 7, 0}, crowd[4] = {1, 129, 7, 0};
  const u32 channel[4] = {0x20, 0, 0x1000, 0};
  EXPECT_EQ(read(channel, 1), -EINVAL);  // of no TSG
  reader.missing = 0;
  EXPECT_EQ(read(empty, 1), -EINVAL);
  reader.missing = 0;
  EXPECT_EQ(read(crowd, 1), -EINVAL);
  reader.missing = 0;
  EXPECT_EQ(read(header, 1), 0);
  EXPECT_EQ(read(header, 1), -EINVAL);  // before the channel of the first
  reader.missing = 0;
  EXPECT_TRUE(found.empty());
}

}  // namespace tu104_list_test
