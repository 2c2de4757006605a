// SPDX-License-Identifier: GPL-2.0
// On a plain folder: directories, inode numbers and inotify are the same there.
#include "cgroup.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <filesystem>

#include "fakes/temp_folder.hpp"

namespace qgpu {
namespace cgroup_test {

std::vector<TenantEntry> tenantsOf(const std::string &text) {
  ConfigOutcome outcome = parseConfig(text, "f");
  EXPECT_TRUE(outcome.problems.empty()) << outcome.problems[0].text();
  return outcome.ir.tenants;
}

bool hasNews(const CgroupTree &tree) {
  pollfd wait{tree.fd(), POLLIN, 0};
  return poll(&wait, 1, 0) == 1;
}

TEST(Cgroup, FindsTheMountAlsoOnAHybridSystemAndWithBlanks) {
  EXPECT_EQ(findCgroup2Mount("31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
                             "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
                             "41 31 0:38 / /sys/fs/cgroup/unified rw shared:4 - cgroup2 cg rw\n"),
            "/sys/fs/cgroup/unified");
  EXPECT_EQ(findCgroup2Mount("41 31 0:38 / /a\\040b rw - cgroup2 cg rw\n"), "/a b");
  EXPECT_EQ(findCgroup2Mount("rubbish\n\n - cgroup2"), "");
}

TEST(Cgroup, ResolvesExactPathsAndPatternsToInodeNumbers) {
  fakes::TempFolder folder;
  folder.makeFolder("qgpu/a");
  folder.makeFolder("kube/pod1/x");
  folder.makeFolder("kube/pod2/x");
  folder.makeFolder("kube/pod3/y");
  folder.write("kube/podfile", "");
  CgroupTree tree(folder.path());
  auto resolved = tree.resolve(
      tenantsOf("[tenant.a]\n[tenant.b]\ncgroup = [\"/kube/pod?/x\", \"/absent/b\"]\n"));
  EXPECT_EQ(resolved.ids["a"], std::vector<uint64_t>{tree.idOf("/qgpu/a")});
  std::vector<uint64_t> pods = {tree.idOf("/kube/pod1/x"), tree.idOf("/kube/pod2/x")};
  std::sort(pods.begin(), pods.end());
  EXPECT_EQ(resolved.ids["b"], pods);
  EXPECT_TRUE(resolved.complaints.empty());
}

TEST(Cgroup, ComplaintsArePrintableWhateverNameSomebodyChose) {
  fakes::TempFolder folder;
  folder.makeFolder("k/a\x1b[2J\xc2\x9b\x7f\xff\xc3");
  CgroupTree tree(folder.path());
  auto resolved =
      tree.resolve(tenantsOf("[tenant.a]\ncgroup = \"/k/*\"\n[tenant.b]\ncgroup = \"/k/a*\"\n"));
  ASSERT_EQ(resolved.complaints.size(), 1u);
  EXPECT_NE(resolved.complaints[0].find("cgroup /k/a?[2J????? matches"), std::string::npos)
      << resolved.complaints[0];
}

TEST(Cgroup, ExactPathWinsOverPatternAndTheFirstPatternOverTheSecond) {
  fakes::TempFolder folder;
  folder.makeFolder("k/one");
  folder.makeFolder("k/two");
  CgroupTree tree(folder.path());
  auto resolved =
      tree.resolve(tenantsOf("[tenant.a]\ncgroup = \"/k/*\"\n[tenant.b]\ncgroup = \"/k/two\"\n"
                             "[tenant.c]\ncgroup = \"/k/o*\"\n"));
  EXPECT_EQ(resolved.ids["a"], std::vector<uint64_t>{tree.idOf("/k/one")});
  EXPECT_EQ(resolved.ids["b"], std::vector<uint64_t>{tree.idOf("/k/two")});
  EXPECT_TRUE(resolved.ids["c"].empty());
  EXPECT_EQ(resolved.complaints.size(), 2u);
}

TEST(Cgroup, MoreThanTheCardTakesIsSaid) {
  fakes::TempFolder folder;
  for (int i = 0; i < 70; ++i) folder.makeFolder("k/" + std::to_string(i));
  CgroupTree tree(folder.path());
  auto resolved = tree.resolve(tenantsOf("[tenant.a]\ncgroup = \"/k/*\"\n"));
  EXPECT_EQ(resolved.ids["a"].size(), 64u);
  ASSERT_EQ(resolved.complaints.size(), 1u);
}

TEST(Cgroup, NewsComeForEveryStepOfAPathThatIsNotThereYet) {
  fakes::TempFolder folder;
  CgroupTree tree(folder.path());
  auto tenants = tenantsOf("[tenant.a]\ncgroup = [\"/x/y/z\", \"/k/*/a\"]\n");
  tree.resolve(tenants);
  for (const char *step : {"x", "x/y", "x/y/z", "k", "k/pod", "k/pod/a"}) {
    EXPECT_FALSE(hasNews(tree)) << step;
    folder.makeFolder(step);
    EXPECT_TRUE(hasNews(tree)) << step;
    tree.drain();
    tree.resolve(tenants);
  }
  auto resolved = tree.resolve(tenants);
  EXPECT_EQ(resolved.ids["a"].size(), 2u);
  std::filesystem::remove(folder / "k/pod/a");
  EXPECT_TRUE(hasNews(tree));
}

TEST(Cgroup, RemadeDirectoryHasItsNewIdAndIsWatchedAnew) {
  fakes::TempFolder folder;
  folder.makeFolder("k/pod/a");
  CgroupTree tree(folder.path());
  auto tenants = tenantsOf("[tenant.a]\ncgroup = \"/k/*/a\"\n");
  tree.resolve(tenants);
  std::filesystem::remove_all(folder / "k/pod");
  folder.makeFolder("k/other");
  folder.makeFolder("k/pod");
  tree.drain();
  tree.resolve(tenants);
  folder.makeFolder("k/pod/a");
  EXPECT_TRUE(hasNews(tree));
  EXPECT_EQ(tree.resolve(tenants).ids["a"], std::vector<uint64_t>{tree.idOf("/k/pod/a")});
}

TEST(Cgroup, WithoutAMountNothingMatches) {
  CgroupTree tree("");
  EXPECT_TRUE(tree.resolve(tenantsOf("[tenant.a]\ncgroup = \"/tmp\"\n")).ids["a"].empty());
  EXPECT_EQ(tree.idOf("/tmp"), 0u);
}

}  // namespace cgroup_test
}  // namespace qgpu
