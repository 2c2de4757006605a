// SPDX-License-Identifier: GPL-2.0
// Who the account remembers of those it does not know, from records made by hand.
#include <gtest/gtest.h>

#include <memory>

#include "daemon/exec/account.hpp"

namespace qgpu::exec {
namespace exec_account_test {

constexpr uint64_t kMs = 1'000'000, kSecond = 1'000'000'000;

class AccountTest : public ::testing::Test {
 protected:
  AccountTest() {
    core_params params{};
    params.sample_ns = params.idle_look_ns = kMs;
    params.slice_min_ns = params.period_min_ns = kMs;
    params.slice_max_ns = params.tenure_ns = 10 * kMs;
    EXPECT_EQ(core_init(&core_, &params, 4, 1, now_ns), 0);
    account = std::make_unique<Account>(core_, CardParams{}, now_ns);
  }
  ~AccountTest() override { core_fini(&core_); }

  // It gets the engine and leaves it.
  void run(uint32_t pid, uint64_t ns = 20'000) {
    const Switch records[] = {{true, pid, 0, now_ns}, {false, pid, 0, now_ns + ns}};
    account->take(records);
    now_ns += 2 * ns;
  }

  uint64_t now_ns = kSecond;
  core core_{};
  std::unique_ptr<Account> account;
};

constexpr uint32_t kStranger = 7;

TEST_F(AccountTest, AStrangerIsRememberedWhateverTheNumberOfShortProcesses) {
  const uint64_t since_ns = now_ns;
  uint32_t fresh = 1000;
  for (int round = 0; round < 5; round++) {
    run(kStranger);
    for (int i = 0; i < 1000; i++) run(fresh++);
    EXPECT_EQ(account->strangerSinceNs(kStranger), since_ns) << round;
  }
}

TEST_F(AccountTest, ShortProcessesThatAreGoneKeepNobodyFromBeingRemembered) {
  for (uint32_t pid = 1000; pid < 2000; pid++) run(pid);
  now_ns += 11 * kSecond;
  const uint64_t since_ns = now_ns;
  run(kStranger);
  for (uint32_t pid = 2000; pid < 3000; pid++) run(pid);
  EXPECT_EQ(account->strangerSinceNs(kStranger), since_ns);
  EXPECT_TRUE(account->strangerRuns(kStranger, since_ns - 1));
}

TEST_F(AccountTest, WhoHasEndedIsForgottenAtOnce) {
  run(kStranger);
  account->forget(kStranger);
  EXPECT_EQ(account->strangerSinceNs(kStranger), 0u);
}

// Stopped in the middle of a kernel that cannot be cut: its visit ends when the kernel does.
TEST_F(AccountTest, WhoGoesOnAfterItWasStoppedCannotBeCut) {
  core_tsg tsg{};
  account->know(kStranger, &tsg);
  Visitor &visitor = *account->visitor(kStranger);
  for (const uint64_t tail_ns : {kMs / 2, 30 * kMs}) {
    const uint64_t start_ns = now_ns, stop_ns = start_ns + 10 * kMs, end_ns = stop_ns + tail_ns;
    const Switch began[] = {{true, kStranger, 0, start_ns}};
    account->take(began);
    visitor.stopped_ns = visitor.disturbed_ns = stop_ns;
    const Switch ended[] = {{false, kStranger, 0, end_ns}};
    account->take(ended);
    EXPECT_EQ(visitor.overlong_at_ns, tail_ns > kMs ? end_ns : 0);
    now_ns = end_ns + kMs;
  }
  account->forgive();
  EXPECT_EQ(visitor.overlong_at_ns, 0u);
  EXPECT_EQ(visitor.uncut_until_ns, 0u);
}

// Once may have been its setting up.
TEST_F(AccountTest, WhoCouldNotBeCutTwiceIsRememberedForLonger) {
  core_tsg tsg{};
  account->know(kStranger, &tsg);
  Visitor &visitor = *account->visitor(kStranger);
  struct Row {
    uint64_t tail_ns, known_ns, pause_ns;
  };
  for (const auto &[tail_ns, known_ns, pause_ns] :
       {Row{30 * kMs, 1000 * kMs, 5000 * kMs}, Row{30 * kMs, 10'000 * kMs, 15'000 * kMs},
        Row{400 * kMs, 4000 * kMs, 15'000 * kMs}, Row{5000 * kMs, 10'000 * kMs, 0}}) {
    const uint64_t stop_ns = now_ns + 10 * kMs, end_ns = stop_ns + tail_ns;
    const Switch began[] = {{true, kStranger, 0, now_ns}};
    account->take(began);
    visitor.stopped_ns = visitor.disturbed_ns = stop_ns;
    const Switch ended[] = {{false, kStranger, 0, end_ns}};
    account->take(ended);
    EXPECT_EQ(visitor.uncut_until_ns, end_ns + known_ns);
    now_ns = end_ns + pause_ns;
  }
}

// A visit of another time says nothing of what its visits are now.
TEST_F(AccountTest, ALongVisitIsKnownForSoManyAfterIt) {
  Visitor visitor;
  visitor.visits = visitor.long_visit_no = 100;
  visitor.long_visit_at_ns = 5000 * kMs;
  EXPECT_TRUE(visitor.knowsLongVisit(6000 * kMs));
  EXPECT_FALSE(visitor.knowsLongVisit(7001 * kMs));
  visitor.visits += 33;
  EXPECT_FALSE(visitor.knowsLongVisit(5001 * kMs));
}

}  // namespace exec_account_test
}  // namespace qgpu::exec
