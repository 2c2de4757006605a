// SPDX-License-Identifier: GPL-2.0
#include "state.hpp"

#include <gtest/gtest.h>
#include <linux/qgpu.h>
#include <unistd.h>

#include <filesystem>

#include "fakes/seed.hpp"
#include "fakes/temp_folder.hpp"

namespace qgpu {
namespace state_test {

State sampleState() {
  State state;
  TenantEdit &edit = state.edits.of("a", "GPU-1");
  edit.weight = 7;
  edit.guarantee_tenths = 333;
  edit.ceiling_tenths = 400;
  edit.work_class = QGPU_CLASS_ONLINE;
  edit.wake_ns = 2'000'000;
  edit.hang_ns = 0;
  edit.basis = "tenant weight=5";
  state.edits.of("b", "").weight = 1;
  state.edits.cards.push_back({"GPU-1", QGPU_POLICY_FIXED_SHARE, "card match=all"});
  state.cycles["GPU-1"] = {5'000'000, true};
  return state;
}

TEST(State, WhatIsSavedIsLoaded) {
  fakes::TempFolder folder;
  StateFile file(folder / "state.json");
  ASSERT_TRUE(file.save(sampleState()));
  StateFile::Loaded loaded = file.load();
  EXPECT_EQ(loaded.complaint, "");
  EXPECT_EQ(loaded.state, sampleState());
  EXPECT_FALSE(std::filesystem::exists(folder / "state.json.new"));
}

TEST(State, WhatCouldNotBeLoadedIsNotSaved) {
  fakes::TempFolder folder;
  StateFile file(folder / "state.json");
  ASSERT_TRUE(file.save(sampleState()));
  State state = sampleState();
  state.edits.of("c", "").basis = std::string(5 << 20, 'x');
  auto saved = file.save(state);
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().err, EFBIG);
  EXPECT_EQ(file.load().state, sampleState());
}

TEST(State, AbsentFileIsAnEmptyStateWithoutComplaint) {
  fakes::TempFolder folder;
  StateFile::Loaded loaded = StateFile(folder / "state.json").load();
  EXPECT_EQ(loaded.complaint, "");
  EXPECT_EQ(loaded.state, State{});
}

TEST(State, EverySingleFlippedByteIsNoticedOrMeansTheSame) {
  QGPU_TRACE_SEED();
  std::mt19937_64 random(fakes::seed());
  const std::string good = writeState(sampleState());
  for (int round = 0; round < 3000; ++round) {
    std::string bad = good;
    bad[random() % bad.size()] ^= static_cast<char>(1 + random() % 255);
    auto state = readState(bad);
    EXPECT_TRUE(!state || *state == sampleState());
  }
}

TEST(State, EveryTruncationIsNoticed) {
  const std::string good = writeState(sampleState());
  for (size_t length = 0; length + 2 < good.size(); ++length)
    EXPECT_FALSE(readState(good.substr(0, length)).ok()) << length;
}

TEST(State, CorruptFileIsKeptAsideEachTimeUnderANewName) {
  fakes::TempFolder folder;
  StateFile file(folder / "state.json");
  for (int i = 1; i <= 2; ++i) {
    folder.write("state.json", "rubbish " + std::to_string(i));
    StateFile::Loaded loaded = file.load();
    EXPECT_EQ(loaded.state, State{});
    EXPECT_NE(loaded.complaint.find("state.json.bad-" + std::to_string(i)), std::string::npos);
    EXPECT_EQ(folder.read("state.json.bad-" + std::to_string(i)), "rubbish " + std::to_string(i));
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "state.json"));
}

TEST(State, NewerVersionIsRefusedByName) {
  auto state = readState(R"({"version":3,"checksum":"","body":{}})");
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().sentence, "is of version 3, this program knows versions 1 to 2");
}

// As the first version wrote it, which had neither ceilings nor classes nor times.
TEST(State, FormerVersionIsReadAndWrittenAnewInThePresentOne) {
  auto state = readState(
      R"({"version":1,"checksum":"bdc681095bd02c2a","body":{"cards":[],"cycles":{},"tenants":[)"
      R"({"basis":"x","guarantee_tenths":333,"tenant":"a","weight":7}]}})");
  ASSERT_TRUE(state) << state.error().sentence;
  EXPECT_EQ(state->edits.find("a", "")->weight, 7u);
  EXPECT_FALSE(state->edits.find("a", "")->ceiling_tenths);
  EXPECT_NE(writeState(*state).find("\"version\": 2"), std::string::npos);
}

TEST(State, SaveThatFailsLeavesTheFormerFile) {
  fakes::TempFolder folder;
  StateFile file(folder / "state.json");
  ASSERT_TRUE(file.save(sampleState()));
  // What stands in the way of the fresh file is not followed or overwritten.
  std::filesystem::create_directory(folder / "state.json.new");
  auto saved = file.save(State{});
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().item, folder / "state.json");
  EXPECT_EQ(file.load().state, sampleState());
}

TEST(State, EditsEndWhenTheirEntryChangesOrGoes) {
  auto config = [](const std::string &text) { return parseConfig(text, "f").ir; };
  ConfigIr former = config("[[card]]\nmatch = 0\n[tenant.a]\nweight = 5\n[tenant.b]\n");
  Edits edits;
  edits.of("a", "").basis = former.findTenant("a")->fingerprint();
  edits.of("b", "").basis = former.findTenant("b")->fingerprint();
  edits.cards.push_back({"GPU-0", QGPU_POLICY_BEST_EFFORT, former.cards[0].fingerprint()});

  Edits same = edits;
  EXPECT_TRUE(dropOutdated(same, former).empty());
  EXPECT_EQ(same, edits);

  Edits changed = edits;
  auto dropped = dropOutdated(changed, config("[[card]]\nmatch = 0\n[tenant.a]\nweight = 6\n"));
  ASSERT_EQ(dropped.size(), 2u);
  EXPECT_EQ(dropped[0], "run-time edit of tenant \"a\" ends: its entry in f changed");
  EXPECT_EQ(dropped[1], "run-time edit of tenant \"b\" ends: its entry in f is gone");
  EXPECT_EQ(changed.cards.size(), 1u);

  Edits repolicied = edits;
  dropOutdated(repolicied, config("[[card]]\nmatch = 0\npolicy = \"fixed-share\"\n"));
  EXPECT_TRUE(repolicied.cards.empty());
}

// The printer of its checksum calls itself for each level.
TEST(State, NestedDeeplyIsRefused) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  for (const std::string key : {"version", "body"}) {
    auto state = readState("{\"checksum\":\"x\",\"version\":2,\"" + key + "\":" + deep + "}");
    ASSERT_FALSE(state);
    EXPECT_EQ(state.error().err, EBADMSG);
  }
}

}  // namespace state_test
}  // namespace qgpu
