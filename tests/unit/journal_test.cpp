// SPDX-License-Identifier: GPL-2.0
#include "journal.hpp"

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include "clock.hpp"

namespace qgpu {
namespace journal_test {

class Journal : public ::testing::Test {
 protected:
  Journal() : logger("test", journalSink([this](const JournalFields &f) { lines.push_back(f); })) {}

  spdlog::logger logger;
  std::vector<JournalFields> lines;
};

TEST_F(Journal, LineHasItsPriorityAndWhomItIsAbout) {
  {
    LogAbout about("GPU-0", "web");
    logger.warn("work of \"{}\" hangs", "web");
  }
  logger.error("the end");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0],
            (JournalFields{"MESSAGE=work of \"web\" hangs", "PRIORITY=4", "SYSLOG_IDENTIFIER=qgpud",
                           "QGPU_CARD=GPU-0", "QGPU_TENANT=web"}));
  EXPECT_EQ(lines[1], (JournalFields{"MESSAGE=the end", "PRIORITY=3", "SYSLOG_IDENTIFIER=qgpud"}));
}

TEST(LogLimit, SaysOnceAMinuteAndThenHowManyWereLeftOut) {
  LogLimit limit;
  EXPECT_EQ(limit.admit("a", 0), 0u);
  for (uint64_t second = 1; second < 60; ++second)
    EXPECT_FALSE(limit.admit("a", second * kSecondNs));
  EXPECT_EQ(limit.admit("b", 5 * kSecondNs), 0u);
  EXPECT_EQ(limit.admit("a", 60 * kSecondNs), 59u);
  EXPECT_FALSE(limit.admit("a", 61 * kSecondNs));
}

}  // namespace journal_test
}  // namespace qgpu
