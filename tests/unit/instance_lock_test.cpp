// SPDX-License-Identifier: GPL-2.0
// Who holds a lock file, told from another process; and the name of a socket that is no longer
// ours.
#include "instance_lock.hpp"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>

#include "fakes/temp_folder.hpp"
#include "socket_file.hpp"

namespace qgpu {
namespace instance_lock_test {

// A process that holds the lock; with a child of its own that inherits it, if it is told so.
class Holder {
 public:
  enum class Heir { kNone, kOne };
  Holder(const std::string &path, Heir heir) {
    int pipe[2];
    if (::pipe(pipe) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      auto lock = InstanceLock::take(path, "another one runs");
      pid_t child = heir == Heir::kOne ? fork() : -1;
      if (child == 0) prctl(PR_SET_PDEATHSIG, 0);
      if (child != 0) (void)!write(pipe[1], &child, lock ? sizeof(child) : 0);
      close(pipe[1]);
      for (;;) pause();
    }
    close(pipe[1]);
    held_ = read(pipe[0], &heir_, sizeof(heir_)) == sizeof(heir_);
    close(pipe[0]);
  }
  ~Holder() {
    end();
    endHeir();
  }
  Holder(const Holder &) = delete;
  Holder &operator=(const Holder &) = delete;

  bool held() const { return held_; }
  pid_t pid() const { return pid_; }
  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  void endHeir() {
    if (heir_ > 0) kill(heir_, SIGKILL);
    heir_ = 0;
  }

 private:
  pid_t pid_ = 0, heir_ = 0;
  bool held_ = false;
};

TEST(InstanceLock, SecondIsRefusedWithTheFileAndTheProcess) {
  fakes::TempFolder folder;
  const std::string path = folder / "run/x.lock";
  Holder holder(path, Holder::Heir::kNone);
  ASSERT_TRUE(holder.held());
  auto second = InstanceLock::take(path, "another one runs");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().text(),
            "EBUSY: another one runs, process " + std::to_string(holder.pid()) + " (" + path + ")");
}

TEST(InstanceLock, AKilledHolderIsInNobodysWay) {
  fakes::TempFolder folder;
  const std::string path = folder / "x.lock";
  Holder holder(path, Holder::Heir::kNone);
  ASSERT_TRUE(holder.held());
  holder.end();
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_TRUE(InstanceLock::take(path, "another one runs"));
}

TEST(InstanceLock, WhatAKilledHolderStartedKeepsItUntilItIsGone) {
  fakes::TempFolder folder;
  const std::string path = folder / "x.lock";
  Holder holder(path, Holder::Heir::kOne);
  ASSERT_TRUE(holder.held());
  EXPECT_EQ(InstanceLock::take(path, "").error().err, EBUSY);
  holder.end();
  EXPECT_EQ(InstanceLock::take(path, "").error().err, EAGAIN);
  holder.endHeir();
  // It is nobody's child here that could be waited for: SIGKILL is on its way.
  Result<InstanceLock> lock = InstanceLock::take(path, "");
  while (!lock && lock.error().err == EAGAIN) lock = InstanceLock::take(path, "");
  EXPECT_TRUE(lock);
}

TEST(InstanceLock, IsFreeWhenItsHolderHasLetItGo) {
  fakes::TempFolder folder;
  const std::string path = folder / "x.lock";
  {
    auto lock = InstanceLock::take(path, "");
    ASSERT_TRUE(lock);
    EXPECT_FALSE(InstanceLock::take(path, ""));
  }
  EXPECT_TRUE(InstanceLock::take(path, ""));
}

TEST(InstanceLock, ALinkInItsPlaceIsNotFollowed) {
  fakes::TempFolder folder;
  std::filesystem::create_symlink(folder.write("other", "text"), folder / "x.lock");
  auto lock = InstanceLock::take(folder / "x.lock", "");
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().err, ELOOP);
  EXPECT_EQ(folder.read("other"), "text");
}

int bindAt(const std::string &path) {
  unlink(path.c_str());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr *>(&address), sizeof(address)), 0);
  return fd;
}

TEST(SocketFile, RemovesItsOwnNameAndNoOther) {
  fakes::TempFolder folder;
  const std::string path = folder / "s";
  const int first = bindAt(path);
  SocketFile file(path);
  const int second = bindAt(path);
  file.remove();
  EXPECT_TRUE(std::filesystem::exists(path));
  { SocketFile own(path); }
  EXPECT_FALSE(std::filesystem::exists(path));
  close(first);
  close(second);
}

}  // namespace instance_lock_test
}  // namespace qgpu
