// SPDX-License-Identifier: GPL-2.0
// The loop when a handler fails: over pipes, with the log in memory.
#include "loop.hpp"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <new>
#include <sstream>
#include <stdexcept>

namespace qgpu {
namespace loop_test {

class LoopTest : public ::testing::Test {
 protected:
  LoopTest() {
    former_log = spdlog::default_logger();
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_st>(log)));
    for (auto &pipe : pipes) {
      EXPECT_EQ(::pipe(pipe), 0);
      EXPECT_EQ(write(pipe[1], "x", 1), 1);  // ready, and stays so
    }
  }
  ~LoopTest() override {
    for (auto &pipe : pipes)
      for (int fd : pipe) close(fd);
    spdlog::set_default_logger(former_log);
  }
  size_t linesLogged() const {
    const std::string text = log.str();
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  }

  std::shared_ptr<spdlog::logger> former_log;
  std::ostringstream log;
  int pipes[2][2];
  Loop loop;
};

TEST_F(LoopTest, AHandlerThatFailsIsLoggedAndTheOthersAreCalled) {
  int called = 0;
  loop.add(pipes[0][0], EPOLLIN, [](uint32_t) { throw std::runtime_error("no words"); });
  loop.add(pipes[1][0], EPOLLIN, [&](uint32_t) { called++; });
  EXPECT_NO_THROW(loop.poll());
  EXPECT_EQ(called, 1);
  EXPECT_NE(log.str().find("no words"), std::string::npos);
}

TEST_F(LoopTest, OneThatAlwaysFailsDoesNotFillTheLog) {
  loop.add(pipes[0][0], EPOLLIN, [](uint32_t) { throw std::runtime_error("no words"); });
  for (int i = 0; i < 1000; i++) ASSERT_NO_THROW(loop.poll());
  EXPECT_EQ(linesLogged(), 10u);  // 1, 2, 4 ... 512
}

TEST_F(LoopTest, WorkThatFailsIsToldAndEndsNothing) {
  EXPECT_TRUE(loop.attempt("work", [] {}));
  for (int i = 0; i < 100; i++)
    EXPECT_FALSE(loop.attempt("work", [] { throw std::runtime_error("no words"); }));
  EXPECT_FALSE(loop.attempt("more", [] { throw std::bad_alloc(); }));
  EXPECT_EQ(linesLogged(), 7u + 1);  // 1, 2, 4 ... 64; and the first of the other
  EXPECT_NE(log.str().find("work is left undone: no words (failures so far: 64)"),
            std::string::npos);
}

}  // namespace loop_test
}  // namespace qgpu
