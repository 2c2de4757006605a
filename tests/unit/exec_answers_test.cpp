// SPDX-License-Identifier: GPL-2.0
#include <gtest/gtest.h>

#include "daemon/exec/answers.hpp"

namespace qgpu::exec {
namespace exec_answers_test {

Belief after(Answers &answers, Belief before, const char *said) {
  for (; *said; said++) {
    answers.add(*said == '1');
    before = answers.belief(before);
  }
  return before;
}

TEST(Answers, FewOfThemChangeNothing) {
  Answers answers;
  EXPECT_EQ(after(answers, Belief::kPaced, "1111111111111111"), Belief::kPaced);
  Answers others;
  EXPECT_EQ(after(others, Belief::kSyncs, "000000"), Belief::kSyncs);
}

TEST(Answers, WhoNearlyAlwaysHasWorkSyncs) {
  Answers answers;
  answers.add(true, 44);
  EXPECT_EQ(after(answers, Belief::kPaced, "0001"), Belief::kSyncs);
  Answers too_few;
  too_few.add(true, 40);
  EXPECT_EQ(after(too_few, Belief::kPaced, "00000000"), Belief::kPaced);
}

TEST(Answers, SevenOfSixteenWithoutWorkAreEnough) {
  Answers answers;
  answers.add(true, 64);
  EXPECT_EQ(after(answers, Belief::kSyncs, "0101010101010"), Belief::kPaced);
  Answers less;
  less.add(true, 64);
  EXPECT_EQ(after(less, Belief::kSyncs, "0110110110110110"), Belief::kSyncs);
}

TEST(Answers, OfAnotherTimeAreForgotten) {
  Answers answers;
  answers.add(false, 64);
  answers.keepFresh();
  EXPECT_EQ(after(answers, Belief::kPaced, "1111111111111111111111111111111"), Belief::kPaced);
  answers.add(true, 33);
  EXPECT_EQ(answers.belief(Belief::kPaced), Belief::kSyncs);
}

TEST(Answers, DoubtIsWhatMoreOfThemMayChange) {
  Answers answers;
  EXPECT_FALSE(answers.inDoubt(Belief::kPaced));
  answers.add(true, 8);
  EXPECT_TRUE(answers.inDoubt(Belief::kPaced));
  EXPECT_FALSE(answers.inDoubt(Belief::kSyncs));
  answers.add(false, 3);
  EXPECT_TRUE(answers.inDoubt(Belief::kSyncs));
  EXPECT_FALSE(answers.inDoubt(Belief::kPaced));
}

}  // namespace exec_answers_test
}  // namespace qgpu::exec
