// SPDX-License-Identifier: GPL-2.0
//
// survey_test.cpp - a dump of the chip model's registers, as the module makes it of a real card,
// and what qgpuctl survey says of it.
#include "survey.hpp"

#include <gtest/gtest.h>

#include "fakes/sim_card.hpp"

extern "C" {
#include "hw/tu104/survey.h"
}

namespace qgpu {
namespace survey_test {

std::string line(uint32_t offset, uint32_t value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%06x %08x\n", offset, value);
  return text;
}

std::string dumpOf(fakes::SimCard &card) {
  std::string out = "address 0000:3b:00.0\nid 10de:1eb8 10de:12a2\ndriver nvidia\n";
  for (const uint32_t offset : {TU104_PMC_BOOT_0, TU104_PMC_BOOT_42})
    out += line(offset, card.read32(offset));
  for (const tu104_survey_range &range : tu104_survey_ranges)
    for (uint32_t i = 0; i < range.count; i++) {
      const uint32_t offset = range.offset + i * range.stride;
      out += line(offset, card.read32(offset));
    }
  return out + "state read\n";
}

TEST(Survey, TellsWhatIsThereAndWhoRuns) {
  fakes::SimCard card;
  fakes::SimTsg &tsg = card.createTsg();
  tsg.channel().saturate(fakes::Kernel{1'000'000});
  card.submit({&tsg});
  card.advanceBy(5'000'000);
  const ctl::Json out = ctl::surveyOf(dumpOf(card));
  EXPECT_EQ(out["chip"], "0x164");
  EXPECT_EQ(out["supported"], true);
  EXPECT_EQ(out["state"], "read");
  EXPECT_EQ(out["driver"], "nvidia");
  EXPECT_EQ(out["channels"], 4096);
  struct hw hw {};
  hw.io = card.io();
  ASSERT_EQ(tu104_ops.probe(&hw), 0);
  EXPECT_EQ(out["engines"].size(), hw.id.engine_count);
  EXPECT_GE(out["runlists"].size(), 4u);
  EXPECT_EQ(out["engines"][0]["type"], "graphics");
  EXPECT_EQ(out["engines"][0]["state"], "running");
  EXPECT_EQ(out["engines"][0]["tsg"], tsg.id());
  EXPECT_EQ(out["runlists"][0]["entries"], 2);
  EXPECT_EQ(out["runlists"][0]["list_in"], "coherent system memory");
  EXPECT_EQ(out["runlists"][0]["pending"], false);
}

// Nothing of it is a window, an interrupt, or a unit whose reads have effects; all of it reads.
TEST(Survey, ReadsWhatIsAlwaysOnAndChangesNothing) {
  fakes::SimCard card;
  const std::string before = dumpOf(card);
  EXPECT_EQ(before.find(" bad"), std::string::npos);
  EXPECT_EQ(dumpOf(card), before);
  EXPECT_TRUE(card.protocolErrors().empty());
  EXPECT_EQ(card.totals().submits + card.totals().preempts, 0u);
}

TEST(Survey, OfAnotherChipSaysWhichAndNoMore) {
  const ctl::Json out = ctl::surveyOf("id 10de:2330 10de:16c1\n" + line(0, 0x180000a1) +
                                      line(0xa00, 0x18000000) + "state read\n");
  EXPECT_EQ(out["chip"], "0x180");
  EXPECT_EQ(out["supported"], false);
  EXPECT_EQ(out["why"], "another chip than a TU104");
  EXPECT_FALSE(out.contains("engines"));
}

TEST(Survey, OfACardThatWasNotReadHasNoRegisters) {
  const ctl::Json out = ctl::surveyOf("address 0000:3b:00.0\nstate asleep: left alone\n");
  EXPECT_EQ(out["state"], "asleep: left alone");
  EXPECT_FALSE(out.contains("registers"));
  EXPECT_FALSE(out.contains("supported"));
}

TEST(Survey, NonsenseIsNoCard) {
  for (const char *text : {"", "\n\n", "zzzzzz 1", "000000", "000000 ffffffff\n",
                           "000000 164000a1\n000a00 16400000\n"})
    EXPECT_FALSE(ctl::surveyOf(text).value("supported", false)) << text;
}

}  // namespace survey_test
}  // namespace qgpu
