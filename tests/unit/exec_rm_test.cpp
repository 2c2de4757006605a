// SPDX-License-Identifier: GPL-2.0
// The layers below the executor: driver profiles, the own client, discovery, controls, the gates
// file, the store, each against a fake driver or plain text.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "daemon/exec/cards.hpp"
#include "daemon/exec/gates.hpp"
#include "daemon/exec/process.hpp"
#include "daemon/exec/put_back.hpp"
#include "daemon/exec/store.hpp"
#include "daemon/exec/trace.hpp"
#include "fakes/child.hpp"
#include "fakes/fake_rm.hpp"
#include "fakes/temp_folder.hpp"

namespace qgpu::exec {
namespace exec_rm_test {

DriverProfile profileOf(DriverVersion version) {
  return *driverProfile(version, DriverChoice::kExact);
}

TEST(DriverProfile, ReadsTheVersionOutOfTheDriversOwnText) {
  const auto version = parseDriverVersion(
      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\n");
  ASSERT_TRUE(version);
  EXPECT_EQ(version->text(), "580.159.04");
  EXPECT_FALSE(parseDriverVersion("GCC 12.2.0, no driver"));
  EXPECT_FALSE(parseDriverVersion(""));
}

TEST(DriverProfile, LayoutsChangeWithTheirReleases) {
  EXPECT_FALSE(profileOf({515, 43, 4}).alloc_has_size);
  EXPECT_FALSE(profileOf({525, 105, 17}).alloc_has_size);
  EXPECT_TRUE(profileOf({535, 43, 2}).alloc_has_size);
  EXPECT_EQ(profileOf({535, 129, 3}).memory_params_bytes, 120u);
  EXPECT_EQ(profileOf({545, 23, 6}).memory_params_bytes, 128u);
  EXPECT_EQ(profileOf({595, 45, 4}).memory_params_bytes, 128u);
}

TEST(DriverProfile, UnknownVersionsAreRefusedUnlessForced) {
  for (const DriverVersion version : {DriverVersion{470, 256, 2}, DriverVersion{610, 43, 2}}) {
    const auto refused = driverProfile(version, DriverChoice::kExact);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().err, ENOTSUP);
    EXPECT_NE(refused.error().sentence.find(version.text()), std::string::npos);
    EXPECT_TRUE(driverProfile(version, DriverChoice::kNearest));
  }
}

TEST(RmClient, OpensWithBothPlacesOfTheStatus) {
  for (const DriverVersion version : {DriverVersion{525, 53, 0}, DriverVersion{580, 159, 4}}) {
    fakes::FakeRm io;
    io.alloc_status_at = version.branch < 535 ? 24 : 28;
    auto own = RmClient::open(io, profileOf(version), 0);
    ASSERT_TRUE(own) << own.error().text();
    EXPECT_TRUE((*own)->canRing());
    EXPECT_EQ((*own)->timeNs(), io.nowNs());
  }
}

TEST(RmClient, WorksWithoutADoorbellPage) {
  fakes::FakeRm io;
  io.usermode_class = 0;
  const auto own = RmClient::open(io, profileOf({580, 159, 4}), 0);
  ASSERT_TRUE(own);
  EXPECT_FALSE((*own)->canRing());
}

TEST(RmClient, SaysWhichCardIsNotThere) {
  fakes::FakeRm io;
  const auto own = RmClient::open(io, profileOf({580, 159, 4}), 3);
  ASSERT_FALSE(own);
  EXPECT_EQ(own.error().err, ENODEV);
  EXPECT_TRUE(io.open_fds.empty());
}

struct ProcessBed {
  fakes::FakeRm io;
  std::unique_ptr<RmClient> own;
  fakes::Child child;

  ProcessBed() { own = std::move(*RmClient::open(io, profileOf({580, 159, 4}), 0)); }
  std::unique_ptr<Process> named() {
    return std::make_unique<Process>(*own, child.pid(), child.pidfd(), rm::kClientBase, 0);
  }
};

TEST(Process, FindsClientTsgsAndChannels) {
  ProcessBed bed;
  bed.io.addProcess(bed.child.pid());
  const auto process = bed.named();
  // What matters at once, everything soon after.
  EXPECT_TRUE(process->step(0));
  ASSERT_EQ(process->state(), Process::State::kControlled);
  ASSERT_EQ(process->tsgs().size(), 1u);
  EXPECT_TRUE(process->tsgs()[0].compute());
  EXPECT_EQ(process->tsgs()[0].channels.size(), 8u);
  EXPECT_NE(process->foreign().subdevice, 0u);
  const Tsg first = process->tsgs()[0];
  while (process->nextStepNs() < 1'000'000) process->step(process->nextStepNs());
  ASSERT_EQ(process->tsgs().size(), 2u);
  EXPECT_EQ(process->tsgs()[0], first);
  EXPECT_FALSE(process->tsgs()[1].compute());
}

TEST(Process, IsLookedForUntilItUsesTheCard) {
  ProcessBed bed;
  const auto process = bed.named();
  EXPECT_FALSE(process->step(0));
  EXPECT_EQ(process->state(), Process::State::kLooking);
  EXPECT_FALSE(process->step(process->nextStepNs() - 1));
  bed.io.addProcess(bed.child.pid());
  EXPECT_TRUE(process->step(process->nextStepNs()));
  EXPECT_EQ(process->state(), Process::State::kControlled);
}

TEST(Process, GuessesNoHandleTwice) {
  ProcessBed bed;
  // A control node without a client on it: all guesses are wrong.
  fakes::Child other;
  bed.io.addProcess(other.pid());
  bed.io.addProcess(bed.child.pid()).client = 0;
  const auto process = bed.named();
  process->step(0);
  const uint64_t first = bed.io.wrong_clients;
  EXPECT_GT(first, 0u);
  process->step(process->nextStepNs());
  process->step(process->nextStepNs());
  // Only the handles that have been given out since.
  EXPECT_LE(bed.io.wrong_clients, first + 4);
}

TEST(Process, ItsDescriptorIsClosedWhenItEnds) {
  ProcessBed bed;
  bed.io.addProcess(bed.child.pid());
  const auto process = bed.named();
  const size_t before = bed.io.open_fds.size();
  process->step(0);
  EXPECT_EQ(bed.io.open_fds.size(), before + 1);
  bed.child.end();
  EXPECT_FALSE(process->stillThere());
  EXPECT_EQ(process->state(), Process::State::kEnded);
  EXPECT_EQ(bed.io.open_fds.size(), before);
}

TEST(Process, OneThatClosedTheDriverIsLookedForAnew) {
  ProcessBed bed;
  bed.io.addProcess(bed.child.pid());
  const auto process = bed.named();
  process->step(0);
  bed.io.endProcess(bed.child.pid());  // it lives, its files do not
  EXPECT_FALSE(process->stillThere());
  EXPECT_EQ(process->state(), Process::State::kLooking);
  EXPECT_TRUE(process->tsgs().empty());
}

TEST(Process, BlindWithASentenceWhenDuplicatesAreNotPermitted) {
  ProcessBed bed;
  bed.io.addProcess(bed.child.pid());
  bed.io.permit_duplicates = false;
  const auto process = bed.named();
  EXPECT_TRUE(process->step(0));
  EXPECT_EQ(process->state(), Process::State::kBlind);
  EXPECT_FALSE(process->why().empty());
}

TEST(Controls, SlicesReadBackAndRefusalsAreCounted) {
  ProcessBed bed;
  bed.io.addProcess(bed.child.pid());
  const auto process = bed.named();
  process->step(0);
  Controls controls(*bed.own);
  const Foreign of = process->foreign();
  const Tsg &tsg = process->tsgs()[0];
  ASSERT_TRUE(controls.setTimeslice(of, tsg, 4321));
  EXPECT_EQ(*controls.timesliceUs(of, tsg), 4321u);
  bed.io.refuse[rm::kCtrlTsgSetTimeslice] = rm::kInsufficientPermissions;
  const auto refused = controls.setTimeslice(of, tsg, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().err, EACCES);
  EXPECT_NE(refused.error().sentence.find("SET_TIMESLICE"), std::string::npos);
  EXPECT_EQ(controls.counts().issued, 3u);
  EXPECT_EQ(controls.counts().refused, 1u);
  EXPECT_EQ(controls.lastStatus(), rm::kInsufficientPermissions);
}

TEST(Controls, EnableRingsOneChannelOfEachClient) {
  ProcessBed bed;
  fakes::Child other;
  bed.io.addProcess(bed.child.pid());
  bed.io.addProcess(other.pid());
  std::vector<GatedChannel> channels;
  for (const pid_t pid : {bed.child.pid(), other.pid()}) {
    const int pidfd = pid == other.pid() ? other.pidfd() : bed.child.pidfd();
    Process process(*bed.own, pid, pidfd, rm::kClientBase, 0);
    process.step(0);
    const auto more = channelsOf(process.foreign(), process.tsgs()[0]);
    channels.insert(channels.end(), more.begin(), more.end());
  }
  Controls controls(*bed.own);
  ASSERT_TRUE(controls.disable(channels));
  EXPECT_FALSE(bed.io.tsg(other.pid()).enabled);
  EXPECT_EQ(bed.io.calls[rm::kCtrlFifoDisableChannels], 1u);
  ASSERT_TRUE(controls.enable(channels));
  EXPECT_TRUE(bed.io.tsg(bed.child.pid()).enabled);
}

TEST(Trace, RecordsOfTwoTenantsAlternate) {
  ProcessBed bed;
  fakes::Child other;
  bed.io.addProcess(bed.child.pid()).work.kind = fakes::FakeWork::kQueued;
  bed.io.addProcess(other.pid()).work.kind = fakes::FakeWork::kQueued;
  auto trace = Trace::open(*bed.own);
  ASSERT_TRUE(trace) << trace.error().text();
  bed.io.advance(100'000'000);
  ASSERT_TRUE((*trace)->flush().ok());
  std::vector<Switch> records;
  (*trace)->read(records);
  ASSERT_GT(records.size(), 60u);
  for (size_t i = 1; i < records.size(); i++) {
    EXPECT_NE(records[i].start, records[i - 1].start);
    EXPECT_GE(records[i].time_ns, records[i - 1].time_ns);
  }
  EXPECT_EQ((*trace)->lost(), 0u);
  records.clear();
  (*trace)->read(records);
  EXPECT_TRUE(records.empty());
}

std::vector<GateEntry> twoEntries() {
  return {{{12, 345}, {{0xc1d00001, 0x5c00001c, 7}, {0xc1d00001, 0x5c00001d, 8}}},
          {{99, 1}, {{0xc1d00042, 0x5c00001c, 9}}}};
}

TEST(GatesFile, ComesBackAsItWas) {
  EXPECT_EQ(parseGates(formatGates(twoEntries())), twoEntries());
  fakes::TempFolder folder;
  const std::string path = folder / "x.gates";
  ASSERT_TRUE(writeGates(path, twoEntries()));
  const auto back = readGates(path);
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, twoEntries());
  const auto none = readGates(folder / "none");
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->empty());
}

TEST(GatesFile, LinesThatAreCutOffAreLeftOut) {
  const std::string text = formatGates(twoEntries());
  for (size_t n = 0; n < text.size(); n++)
    for (const GateEntry &entry : parseGates(text.substr(0, n)))
      EXPECT_TRUE(entry == twoEntries()[0] || entry == twoEntries()[1]) << n;
  EXPECT_TRUE(parseGates("12 345 zz 1:2 .\n-1 2 3 4:5 .\n12 3 4 .\n12 3 4 1:x .\n").empty());
}

TEST(GatesFile, ReleaseLetsTheLivingRunThoughOthersAreGone) {
  ProcessBed bed;
  fakes::Child gone;
  bed.io.addProcess(bed.child.pid());
  bed.io.addProcess(gone.pid());
  Controls controls(*bed.own);
  std::vector<GateEntry> entries;
  for (fakes::Child *child : {&gone, &bed.child}) {
    Process process(*bed.own, child->pid(), child->pidfd(), rm::kClientBase, 0);
    process.step(0);
    const auto channels = channelsOf(process.foreign(), process.tsgs()[0]);
    ASSERT_TRUE(controls.disable(channels));
    entries.push_back({*processId(child->pid()), channels});
  }
  // Its client is gone, though its pid still answers.
  bed.io.endProcess(gone.pid());
  (void)releaseGates(controls, entries);
  EXPECT_TRUE(bed.io.tsg(bed.child.pid()).enabled);
  // Another process with the pid of one that has ended is not touched.
  gone.end();
  entries[1].process.start_ticks++;
  const auto none = releaseGates(controls, entries);
  ASSERT_TRUE(none);
  EXPECT_EQ(*none, 0u);
}

TEST(Store, ComesBackAndIgnoresWhatIsMalformed) {
  Stored stored;
  Plan plan{};
  plan.head.generation = 5;
  plan.tenants.resize(2);
  plan.tenants[1].id = 1;
  stored.plan = plan;
  stored.processes = {{{12, 345}, 1}};
  stored.slices = {{{12, 345}, 0x5c000015, 2048}};
  const Stored back = parseStored("nonsense\nplan 00ff\n" + formatStored(stored) + "slice 1\n");
  ASSERT_TRUE(back.plan);
  EXPECT_EQ(back.plan->head.generation, 5u);
  EXPECT_EQ(back.processes.size(), 1u);
  EXPECT_EQ(back.foundUs({12, 345}, 0x5c000015), 2048u);
  EXPECT_EQ(back.foundUs({12, 346}, 0x5c000015), 0u);
}

// Also where the driver has given out so many handles that a look takes several pieces.
TEST(PutBack, FindsProcessesHoweverManyHandlesTheDriverHasGivenOut) {
  for (const int handles : {0, 1000, 5000}) {
    ProcessBed bed;
    bed.io.addProcess(bed.child.pid());
    for (int i = 0; i < handles; i++) bed.io.addProcess(1);
    bed.io.endProcess(1);
    fakes::FakeTsg &tsg = bed.io.tsg(bed.child.pid());
    tsg.slice_us = 77;
    tsg.enabled = false;
    Controls controls(*bed.own);
    const ProcessId id = *processId(bed.child.pid());
    putBack(*bed.own, controls, {{}, {{id, 1}}, {{id, tsg.handle, 2048}}});
    EXPECT_TRUE(tsg.enabled) << handles;
    EXPECT_EQ(tsg.slice_us, 2048u) << handles;
  }
}

TEST(ProcessId, NamesAProcessForEver) {
  fakes::Child child;
  const auto id = processId(child.pid());
  ASSERT_TRUE(id);
  const auto pidfd = openProcess(*id);
  ASSERT_TRUE(pidfd);
  EXPECT_EQ(*pidOf(*pidfd), child.pid());
  ProcessId other = *id;
  other.start_ticks++;
  EXPECT_EQ(openProcess(other).error().err, ESRCH);
  child.end();
  EXPECT_FALSE(pidOf(*pidfd));
  EXPECT_FALSE(openProcess(*id));
  close(*pidfd);
}

TEST(ProcessName, IsPrintableWhateverTheProcessChose) {
  fakes::TempFolder folder;
  for (const char *pid : {"7", "8", "9"}) folder.makeFolder(pid);
  folder.write("7/comm", "\xff\x1b\n");
  folder.write("8/comm", "a b~\x7f\xc3\xa4\n");
  folder.write("9/comm", "\n");
  EXPECT_EQ(processName(7, folder.path()), "\?\?");
  EXPECT_EQ(processName(8, folder.path()), "a b~\?\?\?");
  EXPECT_EQ(processName(9, folder.path()), "");
  EXPECT_EQ(processName(10, folder.path()), "?");
}

TEST(Cards, AreReadFromTheDriversFolder) {
  fakes::TempFolder folder;
  folder.makeFolder("gpus/0000:00:06.0");
  folder.makeFolder("gpus/0000:00:07.0");
  folder.write("gpus/0000:00:06.0/information",
               "Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-aa\nDevice Minor: \t 0\n");
  folder.write("gpus/0000:00:07.0/information",
               "Model: \t\t Tesla T4\nGPU UUID: \t GPU-bb\nDevice Minor: \t 1\n");
  folder.makeFolder("capabilities/gpu1/mig/gi0");
  folder.write("version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Release\n");
  ASSERT_TRUE(driverVersion(folder.path()));
  const auto cards = driverCards(folder.path());
  ASSERT_TRUE(cards);
  ASSERT_EQ(cards->size(), 2u);
  EXPECT_EQ(findCard(*cards, "GPU-aa")->name, "NVIDIA H200");
  EXPECT_EQ(findCard(*cards, "0")->uuid, "GPU-aa");
  EXPECT_EQ(findCard(*cards, "1").error().err, EOPNOTSUPP);
  EXPECT_EQ(findCard(*cards, "7").error().err, ENOENT);
  EXPECT_EQ(driverVersion(folder / "none").error().err, ENODEV);
}

}  // namespace exec_rm_test
}  // namespace qgpu::exec
