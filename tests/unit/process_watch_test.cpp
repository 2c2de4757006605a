// SPDX-License-Identifier: GPL-2.0
// Whose processes are whose, over a plain folder as the cgroup tree and real children as processes.
#include "process_watch.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "clock.hpp"
#include "fakes/temp_folder.hpp"

namespace qgpu {
namespace process_watch_test {

class ProcessWatchTest : public ::testing::Test {
 protected:
  ~ProcessWatchTest() override {
    for (pid_t pid : children) end(pid);
  }

  pid_t child() {
    pid_t pid = fork();
    if (pid == 0) {
      pause();
      _exit(0);
    }
    children.push_back(pid);
    return pid;
  }
  static void end(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  // As the kernel shows it, on both sides.
  void put(pid_t pid, const std::string &folder) {
    const std::string name = std::to_string(pid);
    proc.makeFolder(name);
    proc.write(name + "/cgroup", "0::/" + folder + "\n");
  }
  void list(const std::string &folder, const std::vector<pid_t> &pids) {
    std::string text;
    for (pid_t pid : pids) text += std::to_string(pid) + "\n";
    tree.write(folder + "/cgroup.procs", text);
  }
  uint64_t idOf(const std::string &folder) {
    struct stat status {};
    EXPECT_EQ(stat((tree / folder).c_str(), &status), 0);
    return status.st_ino;
  }
  std::vector<ProcessWatch::Change> look() { return watch.look(now_ns += 100 * kMillisecondNs); }

  fakes::TempFolder tree, proc;
  ProcessWatch watch{tree.path(), proc.path()};
  std::vector<pid_t> children;
  uint64_t now_ns = kSecondNs;
};

TEST_F(ProcessWatchTest, AProcessIsToldOnceWithItsPidfd) {
  tree.makeFolder("a");
  watch.setTenants({{idOf("a"), 20}});
  EXPECT_TRUE(look().empty());
  pid_t pid = child();
  put(pid, "a");
  list("a", {pid});
  auto changes = look();
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].pid, pid);
  EXPECT_EQ(changes[0].tenant_id, 20u);
  EXPECT_GE(changes[0].pidfd, 0);
  EXPECT_FALSE(changes[0].gone);
  EXPECT_TRUE(look().empty());
  EXPECT_EQ(watch.all().size(), 1u);
}

TEST_F(ProcessWatchTest, TheNearestTenantAboveOwnsIt) {
  tree.makeFolder("a/inner/deep");
  tree.makeFolder("a/b");
  watch.setTenants({{idOf("a"), 20}, {idOf("a/b"), 30}});
  pid_t first = child(), second = child();
  put(first, "a/inner/deep");
  put(second, "a/b");
  list("a/inner/deep", {first});
  list("a/b", {second});
  auto changes = look();
  ASSERT_EQ(changes.size(), 2u);
  for (const auto &change : changes) EXPECT_EQ(change.tenant_id, change.pid == first ? 20u : 30u);
}

TEST_F(ProcessWatchTest, AFolderThatComesIsSeenAtTheNextLook) {
  tree.makeFolder("a");
  watch.setTenants({{idOf("a"), 20}});
  EXPECT_TRUE(look().empty());
  tree.makeFolder("a/later");
  pid_t pid = child();
  put(pid, "a/later");
  list("a/later", {pid});
  // Where a folder's link count does not tell (overlayfs), the look every five seconds does.
  now_ns += 5 * kSecondNs;
  EXPECT_EQ(look().size(), 1u);
}

TEST_F(ProcessWatchTest, MovedAndGoneAreTold) {
  tree.makeFolder("a");
  tree.makeFolder("b");
  watch.setTenants({{idOf("a"), 20}, {idOf("b"), 30}});
  pid_t pid = child();
  put(pid, "a");
  list("a", {pid});
  ASSERT_EQ(look().size(), 1u);
  put(pid, "b");
  list("a", {});
  list("b", {pid});
  auto changes = look();
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].tenant_id, 30u);
  EXPECT_GE(changes[0].pidfd, 0);
  list("b", {});
  changes = look();
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_TRUE(changes[0].gone);
  EXPECT_EQ(watch.size(), 0u);
}

TEST_F(ProcessWatchTest, OneThatEndedIsNobodysBusiness) {
  tree.makeFolder("a");
  watch.setTenants({{idOf("a"), 20}});
  pid_t pid = child();
  put(pid, "a");
  list("a", {pid});
  ASSERT_EQ(look().size(), 1u);
  end(pid);
  list("a", {});
  EXPECT_TRUE(look().empty());
  EXPECT_EQ(watch.size(), 0u);
}

// The listing is older than the pidfd: the pid may be somebody else's by then.
TEST_F(ProcessWatchTest, APidThatIsElsewhereNowIsNotTaken) {
  tree.makeFolder("a");
  watch.setTenants({{idOf("a"), 20}});
  pid_t pid = child();
  put(pid, "elsewhere");
  list("a", {pid, 0, pid});
  EXPECT_TRUE(look().empty());
  EXPECT_EQ(watch.size(), 0u);
}

TEST_F(ProcessWatchTest, NonsenseInTheListingIsNotRead) {
  tree.makeFolder("a");
  watch.setTenants({{idOf("a"), 20}});
  tree.write("a/cgroup.procs", "x\n99999999999999999999\n-4\n");
  EXPECT_TRUE(look().empty());
}

}  // namespace process_watch_test
}  // namespace qgpu
