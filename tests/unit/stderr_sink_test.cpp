// SPDX-License-Identifier: GPL-2.0
// Log lines to whatever stderr is, read or not. A test that waits for a reader never ends.
#include "stderr_sink.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spdlog/logger.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <string>

#include "fakes/temp_folder.hpp"
#include "unique_fd.hpp"

namespace qgpu {
namespace stderr_sink_test {

struct Ends {
  UniqueFd reader, writer;
};

Ends pipeEnds() {
  int fds[2];
  EXPECT_EQ(pipe2(fds, O_CLOEXEC), 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

Ends socketEnds() {
  int fds[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

spdlog::logger loggerTo(int fd) {
  spdlog::logger logger("test", stderrSink(fd));
  logger.set_pattern("%v");
  return logger;
}

// All that is there now.
std::string readAll(int fd) {
  fcntl(fd, F_SETFL, O_NONBLOCK);
  std::string text;
  char chunk[4096];
  for (ssize_t got; (got = read(fd, chunk, sizeof(chunk))) > 0;)
    text.append(chunk, static_cast<size_t>(got));
  return text;
}

class StderrSink : public ::testing::TestWithParam<Ends (*)()> {};

TEST_P(StderrSink, LeavesOutWhatNobodyReadsAndSaysHowMuch) {
  const Ends ends = GetParam()();
  spdlog::logger logger = loggerTo(ends.writer.get());
  constexpr int kLines = 20'000;
  for (int i = 0; i < kLines; ++i) logger.info("line {:06}: {:100}", i, "");
  // It is other programs' too.
  EXPECT_EQ(fcntl(ends.writer.get(), F_GETFL) & O_NONBLOCK, 0);
  std::string text = readAll(ends.reader.get());
  const auto taken = std::count(text.begin(), text.end(), '\n');
  EXPECT_GT(taken, 10);
  EXPECT_LT(taken, kLines);
  logger.flush();
  logger.info("the last");
  text += readAll(ends.reader.get());
  // Each line whole or not at all, in order, and all that were not are told of.
  std::istringstream lines(text);
  int told = 0, seen = 0, left_out = 0;
  for (std::string line; std::getline(lines, line); ++told)
    if (int number; std::sscanf(line.c_str(), "qgpud: %d lines of the log were", &number) == 1)
      left_out += number;
    else if (line.starts_with("line ")) {
      EXPECT_EQ(line.size(), 113u) << line;
      EXPECT_EQ(std::stoi(line.substr(5)), seen++ + left_out) << line;
    }
  EXPECT_GE(told, 3);
  EXPECT_EQ(seen + left_out, kLines);
  EXPECT_TRUE(text.ends_with("\nthe last\n"));
}

TEST_P(StderrSink, OutlivesItsReader) {
  Ends ends = GetParam()();
  spdlog::logger logger = loggerTo(ends.writer.get());
  ends.reader.reset();
  const auto former = signal(SIGPIPE, SIG_IGN);
  logger.info("to nobody");
  logger.flush();
  signal(SIGPIPE, former);
}

INSTANTIATE_TEST_SUITE_P(All, StderrSink, ::testing::Values(pipeEnds, socketEnds),
                         [](const auto &of) { return of.index ? "Socket" : "Pipe"; });

// Two who write to one file do not write over each other's lines.
TEST(StderrSinkFile, GoesOnWhereTheFileIs) {
  fakes::TempFolder folder;
  const UniqueFd file(open((folder / "log").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  spdlog::logger logger = loggerTo(file.get());
  logger.info("one");
  ASSERT_EQ(write(file.get(), "two\n", 4), 4);
  logger.info("three");
  lseek(file.get(), 0, SEEK_SET);
  EXPECT_EQ(readAll(file.get()), "one\ntwo\nthree\n");
}

}  // namespace stderr_sink_test
}  // namespace qgpu
