// SPDX-License-Identifier: GPL-2.0
// The control socket's transport over socket pairs: what a hostile or slow peer can and cannot do.
#include "control.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "fakes/fake_clock.hpp"
#include "fakes/seed.hpp"
#include "fakes/temp_folder.hpp"

namespace qgpu {
namespace control_test {

using Json = nlohmann::json;

class Control : public ::testing::Test {
 protected:
  Control() {
    limits.connections = 8;
    limits.connections_not_root = 5;
    limits.connections_per_uid = 3;
    limits.requests_per_second = 10;
    limits.line_bytes = 1024;
    limits.reply_bytes = 64 * 1024;
  }

  void open() {
    server = std::make_unique<ControlServer>(
        loop, clock,
        [this](const Json &request, const Peer &) -> ControlServer::Answer {
          ++handled;
          if (request.value("throw", false)) throw std::runtime_error("no words");
          return {request.value("big", false) ? std::string(20'000, 'x') : R"({"ok":true})",
                  request.value("listen", false)};
        },
        limits);
  }

  // A connected client's end.
  int connect(uid_t uid = 0) {
    if (!server) open();
    int pair[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    server->adopt(pair[0], {uid, 1});
    clients.push_back(pair[1]);
    return pair[1];
  }

  // The same over the file system.
  int connectTo(const std::string &path) {
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr *>(&address), sizeof(address)), 0);
    clients.push_back(fd);
    return fd;
  }

  ~Control() override {
    for (int fd : clients) close(fd);
  }

  void write(int fd, const std::string &text) {
    (void)!send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    turn();
  }

  void turn(int times = 50) {
    for (int i = 0; i < times; ++i) loop.poll();
  }

  std::string read(int fd) {
    std::string text;
    char chunk[65536];
    ssize_t got;
    while ((got = recv(fd, chunk, sizeof(chunk), MSG_DONTWAIT)) > 0)
      text.append(chunk, static_cast<size_t>(got));
    return text;
  }

  bool isClosed(int fd) {
    read(fd);
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT) == 0 || errno != EAGAIN;
  }

  fakes::FakeClock clock;
  Loop loop;
  ControlLimits limits;
  std::unique_ptr<ControlServer> server;
  std::vector<int> clients;
  int handled = 0;
};

TEST_F(Control, AnswersEachLineOnce) {
  int fd = connect();
  write(fd, "{}\n{}\n\n{");
  EXPECT_EQ(read(fd), "{\"ok\":true}\n{\"ok\":true}\n");
  write(fd, "}\n");
  EXPECT_EQ(read(fd), "{\"ok\":true}\n");
  EXPECT_EQ(handled, 3);
}

TEST_F(Control, WhatIsNoObjectIsRefusedAndTheConnectionGoesOn) {
  int fd = connect();
  for (const char *line : {"rubbish\n", "[1]\n", "5\n", "\"x\"\n", "{\"a\":\n"}) {
    write(fd, line);
    EXPECT_EQ(Json::parse(read(fd))["error"]["name"], "EINVAL") << line;
  }
  write(fd, "{}\n");
  EXPECT_EQ(read(fd), "{\"ok\":true}\n");
  EXPECT_EQ(handled, 1);
}

TEST_F(Control, DeepNestingIsRefusedBeforeItIsParsed) {
  int fd = connect();
  write(fd, "{\"a\":" + std::string(500, '[') + std::string(500, ']') + "}\n");
  EXPECT_EQ(Json::parse(read(fd))["error"]["sentence"], "a request is nested too deeply");
  write(fd, "{\"a\":\"" + std::string(100, '[') + "\\\"\"}\n");
  EXPECT_EQ(read(fd), "{\"ok\":true}\n");
}

TEST_F(Control, TooLongALineIsRefusedAndEndsTheConnection) {
  for (const char *end : {"", "\n"}) {
    int fd = connect();
    write(fd, std::string(2000, 'x') + end);
    EXPECT_EQ(Json::parse(read(fd))["error"]["name"], "EMSGSIZE");
    EXPECT_TRUE(isClosed(fd));
  }
}

TEST_F(Control, RequestsOverTheRateWaitAndAreAnsweredLater) {
  int fd = connect();
  std::string many;
  for (int i = 0; i < 25; ++i) many += "{}\n";
  write(fd, many);
  EXPECT_EQ(handled, 10);
  EXPECT_LE(server->deadlineNs(), clock.now_ns + kSecondNs);
  clock.advance(kSecondNs);
  server->tick();
  turn();
  EXPECT_EQ(handled, 20);
  clock.advance(kSecondNs);
  server->tick();
  turn();
  EXPECT_EQ(handled, 25);
}

TEST_F(Control, OneWhoNeverReadsStopsBeingServedAndIsCutOff) {
  limits.requests_per_second = 1'000'000;
  int fd = connect();
  std::string many;
  for (int i = 0; i < 200; ++i) many += "{\"big\":true}\n";
  write(fd, many);
  // What the socket buffers take, plus the bound.
  EXPECT_LT(handled, 60);
  EXPECT_EQ(server->connections(), 1u);
  clock.advance(limits.line_time_ns);
  server->tick();
  EXPECT_EQ(server->connections(), 0u);
}

TEST_F(Control, SlowReaderGetsEverythingInTheEnd) {
  limits.requests_per_second = 1'000'000;
  int fd = connect();
  std::string many;
  for (int i = 0; i < 60; ++i) many += "{\"big\":true}\n";
  write(fd, many);
  size_t got = 0;
  for (int i = 0; i < 100; ++i) {
    got += read(fd).size();
    turn();
  }
  EXPECT_EQ(got, 60u * 20'001u);
}

TEST_F(Control, UnfinishedLineAndSilenceAreBounded) {
  int dripping = connect();
  int silent = connect();
  write(dripping, "{");
  clock.advance(limits.line_time_ns);
  server->tick();
  EXPECT_TRUE(isClosed(dripping));
  EXPECT_FALSE(isClosed(silent));
  clock.advance(limits.idle_time_ns);
  server->tick();
  EXPECT_TRUE(isClosed(silent));
}

TEST_F(Control, DrippingBytesDoNotExtendTheTimeForALine) {
  int fd = connect();
  for (int i = 0; i < 12; ++i) {
    write(fd, " ");
    clock.advance(kSecondNs);
    server->tick();
  }
  EXPECT_TRUE(isClosed(fd));
}

TEST_F(Control, OneUserCannotTakeAllConnectionsFromRoot) {
  for (uid_t uid = 1000; uid < 1010; ++uid)
    for (int i = 0; i < 10; ++i) connect(uid);
  EXPECT_EQ(server->connections(), 5u);
  int root = connect(0);
  write(root, "{}\n");
  EXPECT_EQ(read(root), "{\"ok\":true}\n");
}

TEST_F(Control, RefusedConnectionIsToldWhy) {
  for (int i = 0; i < 3; ++i) connect(1000);
  int fd = connect(1000);
  EXPECT_EQ(Json::parse(read(fd))["error"]["name"], "EBUSY");
  EXPECT_TRUE(isClosed(fd));
}

// As many as there are places, and none asks anything: whoever comes is served all the same.
TEST_F(Control, SilentOnesGiveWayToWhoComes) {
  for (uid_t uid : {0, 0, 0, 0, 0, 0, 0, 0}) connect(uid);
  int early = connect(0);
  EXPECT_EQ(Json::parse(read(early))["error"]["name"], "EBUSY");  // these might be about to ask
  for (int i = 0; i < 20; ++i) {
    clock.advance(limits.quiet_time_ns);
    int fd = connect(i % 2 ? 0 : 1000);
    write(fd, "{}\n");
    EXPECT_EQ(read(fd), "{\"ok\":true}\n");
    EXPECT_LE(server->connections(), 8u);
  }
  // The oldest went first, and were told.
  EXPECT_EQ(Json::parse(read(clients[0]))["error"]["sentence"],
            "gave way to another connection: nothing was asked");
  EXPECT_TRUE(isClosed(clients[0]));
}

TEST_F(Control, AnUnfinishedLineGivesWayToo) {
  for (int i = 0; i < 8; ++i) write(connect(0), "{");
  clock.advance(limits.quiet_time_ns);
  int fd = connect(0);
  write(fd, "{}\n");
  EXPECT_EQ(read(fd), "{\"ok\":true}\n");
}

// Who listens, or has an answer to come, stays; of others only who is of the same kind goes.
TEST_F(Control, OnlyWhoIsOwedNothingGivesWay) {
  int listens = connect(1000);
  write(listens, "{\"listen\":true}\n");
  read(listens);
  int throttled = connect(1000);
  std::string many;
  for (int i = 0; i < 25; ++i) many += "{}\n";
  write(throttled, many);
  int root = connect(0);
  int silent = connect(1000);
  clock.advance(limits.quiet_time_ns);
  int fd = connect(1000);  // a fourth of three
  write(fd, "{}\n");
  EXPECT_EQ(read(fd), "{\"ok\":true}\n");
  EXPECT_TRUE(isClosed(silent));
  EXPECT_FALSE(isClosed(listens));
  EXPECT_FALSE(isClosed(throttled));
  EXPECT_FALSE(isClosed(root));
}

TEST_F(Control, ARequestThatFailsIsAnsweredAndEndsNothing) {
  int fd = connect();
  write(fd, "{\"throw\":true}\n{}\n");
  std::string answers = read(fd);
  EXPECT_EQ(Json::parse(answers.substr(0, answers.find('\n')))["error"]["sentence"],
            "the request is left undone: no words");
  EXPECT_EQ(answers.substr(answers.find('\n') + 1), "{\"ok\":true}\n");
  // Also when it had to wait for its turn, and no descriptor is ready.
  std::string many;
  for (int i = 0; i < 12; ++i) many += "{\"throw\":true}\n";
  write(fd, many);
  read(fd);
  clock.advance(kSecondNs);
  EXPECT_NO_THROW(server->tick());
  EXPECT_EQ(handled, 14);
  EXPECT_EQ(server->connections(), 1u);
}

TEST_F(Control, ListenersHearEventsAndSlowOnesAreDropped) {
  int quick = connect();
  int slow = connect();
  int other = connect();
  write(quick, "{\"listen\":true}\n");
  write(slow, "{\"listen\":true}\n");
  read(quick);
  std::string event(10'000, 'e');
  for (int i = 0; i < 100; ++i) {
    server->publish(event);
    turn(2);
    EXPECT_EQ(read(quick), event + "\n");
  }
  EXPECT_EQ(server->connections(), 2u);
  EXPECT_EQ(read(other), "");
  clock.advance(limits.idle_time_ns * 2);
  server->tick();
  EXPECT_FALSE(isClosed(quick));
}

TEST_F(Control, PeerThatVanishesLeavesNothingBehind) {
  int fd = connect();
  write(fd, "{\"listen\":true}\n");
  close(fd);
  clients.clear();
  turn();
  EXPECT_EQ(server->connections(), 0u);
  server->publish("{}");
}

TEST_F(Control, HalfClosedPeerStillGetsItsAnswer) {
  int fd = connect();
  (void)!send(fd, "{}\n", 3, 0);
  shutdown(fd, SHUT_WR);
  turn();
  EXPECT_EQ(read(fd), "{\"ok\":true}\n");
  EXPECT_EQ(server->connections(), 0u);
}

TEST_F(Control, SurvivesRandomBytesInRandomPieces) {
  QGPU_TRACE_SEED();
  std::mt19937_64 random(fakes::seed());
  limits.requests_per_second = 1'000'000;
  const std::string alphabet = "{}[]\":,\n\\ nulltrue0123456789.eE-\0\xff";
  for (int round = 0; round < 300; ++round) {
    int fd = connect();
    for (int piece = 0; piece < 5; ++piece) {
      std::string text;
      for (uint64_t i = random() % 400; i > 0; --i) text += alphabet[random() % alphabet.size()];
      (void)!send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      turn(3);
      read(fd);
    }
    close(fd);
    clients.pop_back();
    turn(3);
    ASSERT_EQ(server->connections(), 0u);
  }
}

TEST_F(Control, SocketIsForRootAndItsGroupAndAStaleOneIsReplaced) {
  fakes::TempFolder folder;
  std::string path = folder / "run/qgpud.sock";
  open();
  ASSERT_TRUE(server->listen(path, "no-such-group"));
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0660u);

  ControlServer second(loop, clock,
                       [](const Json &, const Peer &) { return ControlServer::Answer{}; });
  auto taken = second.listen(path, "");
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().err, EADDRINUSE);

  server.reset();
  // As a killed daemon leaves it.
  folder.write("run/qgpud.sock", "");
  ControlServer third(loop, clock, [](const Json &, const Peer &) {
    return ControlServer::Answer{R"({"ok":true})", false};
  });
  ASSERT_TRUE(third.listen(path, ""));
  const int fd = connectTo(path);
  (void)!send(fd, "{}\n", 3, 0);
  turn();
  EXPECT_EQ(read(fd), "{\"ok\":true}\n");
}

// Its lock was removed under it: the socket that it finds at its end is another's.
TEST_F(Control, ASocketThatAnotherHasTakenIsLeft) {
  fakes::TempFolder folder;
  const std::string path = folder / "qgpud.sock";
  open();
  ASSERT_TRUE(server->listen(path, ""));
  ASSERT_EQ(unlink((path + ".lock").c_str()), 0);
  ControlServer other(loop, clock,
                      [](const Json &, const Peer &) { return ControlServer::Answer{}; });
  ASSERT_TRUE(other.listen(path, ""));
  server.reset();
  EXPECT_EQ(access(path.c_str(), F_OK), 0);
}

// Tenants' processes may take them all: whoever connects then waits, and the loop does not spin.
TEST_F(Control, WithoutDescriptorsItWaitsForSome) {
  fakes::TempFolder folder;
  const std::string path = folder / "qgpud.sock";
  open();
  ASSERT_TRUE(server->listen(path, ""));
  const int fd = connectTo(path);
  rlimit former{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &former), 0);
  const int next = dup(fd);
  close(next);
  const rlimit none{static_cast<rlim_t>(next), former.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  turn();
  EXPECT_EQ(server->connections(), 0u);
  EXPECT_EQ(server->deadlineNs(), clock.now_ns + kSecondNs);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &former), 0);
  turn();
  EXPECT_EQ(server->connections(), 0u);  // it does not look before its time
  clock.advance(kSecondNs);
  server->tick();
  write(fd, "{}\n");
  EXPECT_EQ(read(fd), "{\"ok\":true}\n");
}

}  // namespace control_test
}  // namespace qgpu
