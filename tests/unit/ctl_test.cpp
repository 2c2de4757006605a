// SPDX-License-Identifier: GPL-2.0
// The verbs as a person types them, against a daemon in a thread of its own over a fake card.
#include <gtest/gtest.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "connection.hpp"
#include "control.hpp"
#include "daemon.hpp"
#include "exposition.hpp"
#include "fakes/fake_clock.hpp"
#include "fakes/fake_kernel.hpp"
#include "fakes/temp_folder.hpp"
#include "run.hpp"
#include "screen.hpp"
#include "snapshot_json.hpp"
#include "verb.hpp"
#include "verbs.hpp"

namespace qgpu::ctl {
namespace ctl_test {

class Ctl : public ::testing::Test {
 protected:
  Ctl() {
    kernel.addCard("GPU-0");
    former_log = spdlog::default_logger();
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>()));
    stop_fd = eventfd(0, EFD_NONBLOCK);
  }

  ~Ctl() override {
    stop();
    close(stop_fd);
    spdlog::set_default_logger(former_log);
  }

  void serve(const std::string &config) {
    daemon.start(parseConfig(config, "f").ir);
    ASSERT_TRUE(server.listen(socket, ""));
    loop.add(stop_fd, EPOLLIN, [this](uint32_t) { running = false; });
    thread = std::thread([this] {
      while (running) loop.wait();
    });
  }

  void stop() {
    if (!thread.joinable()) return;
    uint64_t one = 1;
    (void)!write(stop_fd, &one, sizeof(one));
    thread.join();
  }

  // Exit code; stdout and stderr go to out and err.
  int run(std::vector<std::string> words) {
    CLI::App app;
    Context context;
    context.socket = socket;
    app.require_subcommand(1);
    addVerbs(app, context);
    std::reverse(words.begin(), words.end());
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    int code;
    try {
      app.parse(words);
      code = context.exit_code;
    } catch (const CLI::ParseError &) {
      code = kExitUsage;
    }
    out = ::testing::internal::GetCapturedStdout();
    err = ::testing::internal::GetCapturedStderr();
    return code;
  }

  std::shared_ptr<spdlog::logger> former_log;
  fakes::TempFolder folder;
  fakes::TempFolder tree;
  fakes::FakeKernel kernel;
  fakes::FakeCard card{kernel};
  fakes::FakeClock clock;
  CgroupTree cgroups{tree.path()};
  StateFile state_file{folder / "state.json"};
  Loop loop;
  Daemon daemon{card, cgroups, state_file, clock};
  std::function<void(const Json &, ControlServer::Answer &)> after_answer =
      [](const Json &, ControlServer::Answer &) {};
  ControlServer server{loop, clock, [this](const Json &request, const Peer &peer) {
                         auto answer = answerRequest(daemon, request, peer);
                         after_answer(request, answer);
                         return answer;
                       }};
  std::string socket = folder / "qgpud.sock";
  int stop_fd;
  std::atomic<bool> running = true;
  std::thread thread;
  std::string out;
  std::string err;
};

constexpr const char *kTwoToOne =
    "[[card]]\nmatch = \"all\"\n[tenant.a]\nweight = 200\n[tenant.b]\nweight = 100\n"
    "guarantee = 12.5\n";

TEST_F(Ctl, CountersAreThoseOfTheStatusAndOfTheMetricsToTheUnit) {
  Sample sample;
  sample.since_ns = 1;
  sample.time_ns = 9'000'000'010;
  sample.idle_ns = 2'000'000'003;
  kernel.samples.push_back(sample);
  serve(kTwoToOne);
  sample.tenant_id = kernel.findTenant(0, "a")->id;
  sample.run_ns = 5'123'456'789;
  kernel.samples.push_back(sample);
  clock.advance(kSecondNs);
  ASSERT_EQ(run({"status", "--json"}), kExitOk) << err;
  const Json card = Json::parse(out)["cards"][0];
  ASSERT_EQ(run({"counters", "--json"}), kExitOk) << err;
  const Json counted = Json::parse(out)["cards"][0];
  EXPECT_EQ(counted["counters"], card["counters"]);
  EXPECT_EQ(counted["counters"]["idle_ns"], 2'000'000'003u);
  EXPECT_EQ(counted["tenants"]["a"]["run_ns"], 5'123'456'789u);
  ASSERT_EQ(run({"counters"}), kExitOk) << err;
  EXPECT_NE(out.find("5123456789"), std::string::npos) << out;
  EXPECT_NE(out.find("unaccounted"), std::string::npos) << out;
  stop();
  const std::string metrics =
      exposition(expositionOf(daemon, "1"), ExpositionFormat::kPrometheusText);
  EXPECT_NE(metrics.find("qgpu_tenant_run_seconds_total{gpu=\"0\",uuid=\"GPU-0\",tenant=\"a\","
                         "cgroup=\"/qgpu/a\"} 5.123456789\n"),
            std::string::npos)
      << metrics;
}

TEST_F(Ctl, TopIsPlainTextWhereThereIsNoTerminal) {
  serve(kTwoToOne);
  EXPECT_EQ(run({"top"}), kExitOk) << err;
  EXPECT_NE(out.find("card 0  Fake T4  burst-share"), std::string::npos) << out;
  EXPECT_EQ(out.find('\033'), std::string::npos);
}

TEST_F(Ctl, StatusShowsCardsAndTenantsInTenthsOfAPercent) {
  kernel.card(0).info.cycle_ns = 40'000'000;
  serve(kTwoToOne);
  EXPECT_EQ(run({"status"}), kExitOk) << err;
  EXPECT_NE(out.find("card 0  GPU-0  Fake T4 (simulated)"), std::string::npos) << out;
  EXPECT_NE(out.find("policy burst-share, method images, ok, generation 2, cycle 40.0 ms"),
            std::string::npos)
      << out;
  EXPECT_NE(out.find("12.5 %"), std::string::npos) << out;
}

TEST_F(Ctl, StatusShowsRareSettingsOnlyWhereATenantHasThem) {
  serve(
      "[[card]]\nmatch = 0\n[tenant.web]\nclass = \"online\"\nwake_within = \"2ms\"\n"
      "[tenant.lab]\nceiling = 30\n");
  EXPECT_EQ(run({"status"}), kExitOk) << err;
  EXPECT_NE(out.find("tenant   weight  guarantee  ceiling   class  wake within  entitled"),
            std::string::npos)
      << out;
  EXPECT_NE(out.find("web         100      0.0 %        -  online       2.0 ms"), std::string::npos)
      << out;
  EXPECT_NE(out.find("lab         100      0.0 %   30.0 %       -            -"), std::string::npos)
      << out;
  EXPECT_EQ(out.find("hang timeout"), std::string::npos) << out;
  EXPECT_EQ(run({"tenant", "show", "web"}), kExitOk);
  EXPECT_NE(out.find("ceiling 100.0 %, class online, wake within 2.0 ms\n"), std::string::npos)
      << out;
}

TEST_F(Ctl, StatusOfPlainTenantsHasNoColumnsOfRareSettings) {
  serve(kTwoToOne);
  EXPECT_EQ(run({"status"}), kExitOk);
  for (const char *title : {"ceiling", "class", "wake within", "hang timeout"})
    EXPECT_EQ(out.find(title), std::string::npos) << out;
}

TEST_F(Ctl, StatusJsonIsForPrograms) {
  serve(kTwoToOne);
  EXPECT_EQ(run({"status", "--json"}), kExitOk);
  Json status = Json::parse(out);
  EXPECT_EQ(status["source"], "qgpud");
  EXPECT_EQ(status["cards"][0]["tenants"].size(), 3u);
}

TEST_F(Ctl, ExplainIsForPeopleAndPrograms) {
  serve(kTwoToOne);
  EXPECT_EQ(run({"explain", "a", "--card", "0"}), kExitOk);
  EXPECT_NE(out.find("tenant a\ncard 0  GPU-0"), std::string::npos) << out;
  EXPECT_NE(out.find("why: "), std::string::npos) << out;
  EXPECT_EQ(run({"explain", "a", "--json"}), kExitOk);
  EXPECT_EQ(Json::parse(out)["cards"][0]["why"]["reason"], "no-cgroup");
}

TEST_F(Ctl, WhoIsNoTenantIsRefusedWithThoseThereAre) {
  serve(kTwoToOne);
  for (const std::vector<std::string> &words :
       {std::vector<std::string>{"log", "--tenant", "x"}, {"tenant", "show", "x"}}) {
    EXPECT_EQ(run(words), kExitNotFound);
    EXPECT_EQ(err, "qgpuctl: ENOENT: no such tenant; there are: a, b, default (x)\n");
  }
}

TEST_F(Ctl, PlotWithoutPythonIsOneLine) {
  serve(kTwoToOne);
  const std::string absent = folder / "python";
  EXPECT_EQ(run({"plot", "--out", folder / "x.png", "--python", absent}), kExitFailed);
  EXPECT_EQ(err,
            "qgpuctl: EIO: has no matplotlib or is not there; install the Debian package "
            "python3-matplotlib (" +
                absent + ")\n");
}

// It reads nothing, and ends before it is told what to draw.
TEST_F(Ctl, PlotOutlivesWhoDraws) {
  serve(kTwoToOne);
  const std::string python = folder / "python";
  std::ofstream(python) << "#!/bin/sh\nexec <&-\n[ \"$1\" = -c ]\n";
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  // More than a pipe holds.
  EXPECT_EQ(run({"plot", "--out", folder / "x.png", "--python", python, "--seconds", "2",
                 "--interval", "0.1"}),
            kExitFailed);
  EXPECT_EQ(err,
            "qgpuctl: EIO: was not drawn: python3 (Debian package python3-matplotlib) failed (" +
                (folder / "x.png") + ")\n");
}

TEST_F(Ctl, ExplainRefusesWhatDoesNotExist) {
  serve(kTwoToOne);
  EXPECT_EQ(run({"explain", "x"}), kExitNotFound);
  EXPECT_EQ(err, "qgpuctl: ENOENT: no such tenant; there are: a, b, default (x)\n");
  EXPECT_EQ(run({"explain", "a", "--card", "9"}), kExitNotFound);
  EXPECT_EQ(err, "qgpuctl: ENODEV: no such card (9)\n");
  EXPECT_EQ(run({"explain"}), kExitOk);
  EXPECT_NE(out.find("  a "), std::string::npos) << out;
  EXPECT_NE(out.find("has a context on this card"), std::string::npos) << out;
  EXPECT_EQ(run({"explain", "--card", "9"}), kExitNotFound);
  EXPECT_EQ(run({"explain", "--json"}), kExitUsage);
}

TEST_F(Ctl, ACardThatIsNotThereIsLoggedWithItsLine) {
  std::ostringstream log;
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
  serve("[[card]]\nmatch = 0\n[[card]]\nmatch = \"GPU-9\"\n[tenant.a.card.GPU-8]\nweight = 5\n");
  stop();
  EXPECT_NE(log.str().find("f:3: card.match: no card is here now that \"GPU-9\" matches"),
            std::string::npos)
      << log.str();
  EXPECT_NE(log.str().find("f:5: tenant.a.card: no card is here now that \"GPU-8\" matches"),
            std::string::npos)
      << log.str();
  EXPECT_EQ(log.str().find("\"0\""), std::string::npos) << log.str();
}

TEST_F(Ctl, SetAppliesMarksAndResets) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may change anything";
  serve(kTwoToOne);
  EXPECT_EQ(run({"tenant", "set", "a", "--weight", "50", "--dry-run"}), kExitOk) << err;
  EXPECT_NE(out.find("GPU-0: would be"), std::string::npos) << out;
  // A card that is only asked has planned nothing: neither 0 % nor what is in force now.
  EXPECT_NE(out.find("computed by the card when it is set"), std::string::npos) << out;
  EXPECT_EQ(out.find("0.0 %", out.find("entitled")), out.find("0.0 %")) << out;
  EXPECT_EQ(kernel.findTenant(0, "a")->asked.weight, 200u);
  EXPECT_EQ(run({"tenant", "set", "a", "--weight", "50", "--guarantee", "0.1"}), kExitOk) << err;
  EXPECT_EQ(kernel.findTenant(0, "a")->asked.weight, 50u);
  EXPECT_EQ(kernel.findTenant(0, "a")->asked.guarantee_ppm, 1000u);
  EXPECT_EQ(run({"tenant", "list"}), kExitOk);
  EXPECT_NE(out.find("a*"), std::string::npos) << out;
  EXPECT_EQ(run({"tenant", "show", "a"}), kExitOk);
  EXPECT_NE(out.find("its settings were changed at run time"), std::string::npos) << out;
  EXPECT_EQ(run({"explain", "a"}), kExitOk);
  EXPECT_NE(out.find("\n  its settings were changed at run time\n"), std::string::npos) << out;
  EXPECT_EQ(run({"tenant", "reset", "a"}), kExitOk);
  EXPECT_EQ(kernel.findTenant(0, "a")->asked.weight, 200u);
}

TEST_F(Ctl, SetTakesEverySettingLiveAndSaysWhatCameOfIt) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may change anything";
  serve(kTwoToOne);
  EXPECT_EQ(run({"tenant", "set", "a", "--ceiling", "30", "--class", "online", "--wake-within",
                 "500us", "--hang-timeout", "50ms"}),
            kExitOk)
      << err;
  auto asked = [&] { return kernel.findTenant(0, "a")->asked; };
  EXPECT_EQ(asked().ceiling_ppm, 300'000u);
  EXPECT_EQ(asked().work_class, uint32_t{QGPU_CLASS_ONLINE});
  EXPECT_EQ(asked().wake_ns, 500'000u);
  EXPECT_EQ(asked().hang_ns, 50'000'000u);
  for (const char *shown : {"ceiling", "30.0 %", "online", "500.0 us", "50.0 ms"})
    EXPECT_NE(out.find(shown), std::string::npos) << out;
  EXPECT_EQ(run({"tenant", "set", "a", "--wake-within", "none", "--hang-timeout", "off",
                 "--ceiling", "100", "--class", "normal"}),
            kExitOk)
      << err;
  EXPECT_EQ(asked().wake_ns, 0u);
  EXPECT_EQ(asked().hang_ns, 0u);
  EXPECT_EQ(asked().ceiling_ppm, uint32_t{QGPU_PPM});
  EXPECT_EQ(run({"tenant", "set", "a", "--class", "offline", "--card", "0"}), kExitOk) << err;
  EXPECT_EQ(asked().work_class, uint32_t{QGPU_CLASS_OFFLINE});
}

TEST_F(Ctl, SetRefusesWhatCannotBeKept) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may change anything";
  serve(kTwoToOne);
  size_t plans = kernel.plans.size();
  EXPECT_EQ(run({"tenant", "set", "a", "--class", "online", "--wake-within", "399us"}),
            kExitRefused);
  EXPECT_NE(err.find("ENOSPC: \"399us\" cannot be kept on card GPU-0"), std::string::npos) << err;
  EXPECT_NE(err.find("must be \"400us\" at least (tenant.a.wake_within)"), std::string::npos)
      << err;
  EXPECT_EQ(run({"tenant", "set", "b", "--ceiling", "12.4"}), kExitRefused);
  EXPECT_NE(err.find("EINVAL: the ceiling 12.4 % is below the guarantee 12.5 %"), std::string::npos)
      << err;
  EXPECT_EQ(run({"tenant", "set", "a", "--ceiling", "0"}), kExitRefused);
  EXPECT_NE(err.find("ERANGE: is 0: such a tenant could never run (ceiling)"), std::string::npos)
      << err;
  EXPECT_EQ(run({"tenant", "set", "a", "--class", "batch"}), kExitRefused);
  EXPECT_NE(err.find("EINVAL: is \"batch\", must be normal, online or offline (class)"),
            std::string::npos)
      << err;
  EXPECT_EQ(run({"tenant", "set", "a", "--hang-timeout", "2h"}), kExitRefused);
  EXPECT_EQ(run({"tenant", "set", "a", "--wake-within", "11s"}), kExitRefused);
  EXPECT_NE(err.find("ERANGE"), std::string::npos) << err;
  EXPECT_EQ(kernel.plans.size(), plans);
}

TEST_F(Ctl, PolicySwitchesLive) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may change anything";
  serve(kTwoToOne);
  EXPECT_EQ(run({"policy", "0", "best-effort"}), kExitOk) << err;
  EXPECT_EQ(kernel.card(0).info.policy, uint32_t{QGPU_POLICY_BEST_EFFORT});
  EXPECT_EQ(run({"status"}), kExitOk);
  EXPECT_NE(out.find("policy best-effort* (set at run time)"), std::string::npos) << out;
}

TEST_F(Ctl, ExitCodesTellWhatWentWrong) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may change anything";
  serve(kTwoToOne);
  EXPECT_EQ(run({"tenant", "set", "x", "--weight", "5"}), kExitNotFound);
  EXPECT_EQ(run({"tenant", "show", "x"}), kExitNotFound);
  EXPECT_EQ(run({"tenant", "set", "a", "--weight", "0"}), kExitRefused);
  EXPECT_NE(err.find("ERANGE: must be 1 to 10000 (weight)"), std::string::npos) << err;
  EXPECT_EQ(run({"tenant", "set", "a", "--guarantee", "90"}), kExitRefused);
  EXPECT_NE(err.find("102.5 % together"), std::string::npos) << err;
  EXPECT_EQ(run({"tenant", "set", "a", "--guarantee", "0.05"}), kExitRefused);
  for (const char *option : {"--guarantee", "--ceiling"}) {
    EXPECT_EQ(run({"tenant", "set", "a", option, "1e-9"}), kExitRefused);
    EXPECT_NE(err.find("ERANGE: is less than 0.1 percent and not 0"), std::string::npos) << err;
  }
  EXPECT_EQ(run({"policy", "9", "best-effort"}), kExitNotFound);
  EXPECT_EQ(run({"tenant", "set", "a", "--weight", "many"}), kExitUsage);
  EXPECT_EQ(run({"frobnicate"}), kExitUsage);
}

// Method rm keeps its log in the executor: qgpud asks it, part by part.
TEST_F(Ctl, TheLogOfAnExecutorsCardComesByTheDaemon) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may see who computes when";
  kernel.card(0).info.method = QGPU_METHOD_RM;
  card.log_part = 2;
  for (uint64_t serial = 5; serial < 12; ++serial)
    kernel.log.push_back({0,
                          {serial, 1000 * serial, 1000 * serial + 900, QGPU_SEEN_TENANT, 1,
                           QGPU_END_SLICE, QGPU_WINDOW_ROTATION, std::nullopt}});
  serve("[[card]]\nmatch = \"all\"\n[tenant.a]\n");
  EXPECT_EQ(run({"log", "--card", "0", "--json"}), kExitOk) << err;
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 7);
  EXPECT_NE(out.find("\"serial\":11"), std::string::npos) << out;
  EXPECT_NE(out.find("\"tenant\":\"default\""), std::string::npos) << out;
  EXPECT_EQ(run({"log", "--tenant", "a"}), kExitOk) << err;
  EXPECT_EQ(out, "");
  EXPECT_EQ(err, "qgpuctl: a was on no engine in the time that is remembered\n");
  EXPECT_EQ(run({"trace", "--out", folder / "trace.json"}), kExitOk) << err;
  EXPECT_NE(out.find("7 records"), std::string::npos) << out;
  kernel.failNext("log", {EOPNOTSUPP, "there is no log", "GPU-0"});
  EXPECT_EQ(run({"log", "--card", "GPU-0"}), kExitRefused);
  EXPECT_NE(err.find("there is no log"), std::string::npos) << err;
  EXPECT_EQ(run({"log", "--card", "1"}), kExitNotFound);
}

TEST_F(Ctl, WithoutADaemonChangesAreUnreachable) {
  EXPECT_EQ(run({"tenant", "set", "a", "--weight", "5"}), kExitUnreachable);
  EXPECT_NE(err.find("qgpud does not answer"), std::string::npos) << err;
  EXPECT_EQ(run({"run", "--tenant", "a", "--", "true"}), kExitNotStarted);
}

TEST_F(Ctl, WithoutADaemonTheKernelIsReadDirectly) {
  netlink::Client client(std::make_unique<fakes::FakeWire>(kernel));
  auto status = statusFromKernel(client);
  ASSERT_TRUE(status);
  EXPECT_EQ((*status)["source"], "kernel");
  EXPECT_NE(statusText(*status).find("card 0  GPU-0"), std::string::npos);
}

TEST_F(Ctl, WithoutACardWhatIsConfiguredIsShown) {
  kernel.loaded = false;
  serve(kTwoToOne);
  EXPECT_EQ(run({"status"}), kExitOk) << err;
  EXPECT_NE(out.find("the module qgpu is not loaded"), std::string::npos) << out;
  const std::string table =
      "configured, and on no card yet:\n  tenant  weight  guarantee   cgroup\n"
      "  a          200      0.0 %  /qgpu/a\n  b          100     12.5 %  /qgpu/b\n";
  EXPECT_NE(out.find(table), std::string::npos) << out;
  EXPECT_EQ(run({"tenant", "list"}), kExitOk) << err;
  EXPECT_EQ(out, table);
}

// A change that names no card waits for one; one that names a card has none to be checked for.
TEST_F(Ctl, WithoutACardAChangeIsStoredUnlessItNamesOne) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may change anything";
  kernel.loaded = false;
  serve(kTwoToOne);
  EXPECT_EQ(run({"tenant", "set", "a", "--weight", "7", "--dry-run"}), kExitOk);
  EXPECT_NE(out.find("checked, not in force yet: "), std::string::npos) << out;
  EXPECT_EQ(run({"tenant", "set", "a", "--weight", "7"}), kExitOk);
  EXPECT_NE(out.find("stored, not in force yet: "), std::string::npos) << out;
  EXPECT_EQ(run({"status"}), kExitOk);
  EXPECT_NE(out.find("  a*           7      0.0 %"), std::string::npos) << out;
  EXPECT_EQ(run({"tenant", "set", "a", "--weight", "7", "--card", "0"}), kExitNotFound);
  EXPECT_NE(err.find("is not loaded"), std::string::npos) << err;
  EXPECT_EQ(run({"policy", "0", "best-effort"}), kExitNotFound);
  EXPECT_NE(err.find("is not loaded"), std::string::npos) << err;
  EXPECT_EQ(run({"tenant", "reset", "a"}), kExitOk);
  EXPECT_NE(out.find("stored, not in force yet: "), std::string::npos) << out;
}

TEST_F(Ctl, SocketIsTakenBeforeAndBehindEveryVerb) {
  serve(kTwoToOne);
  const std::string real = std::exchange(socket, folder / "absent");
  EXPECT_EQ(run({"--socket", real, "status"}), kExitOk) << err;
  EXPECT_EQ(run({"status", "--socket", real}), kExitOk) << err;
  EXPECT_EQ(run({"tenant", "list", "--socket", real}), kExitOk) << err;
  EXPECT_EQ(run({"tenant", "--socket", real, "show", "a"}), kExitOk) << err;
  EXPECT_EQ(run({"explain", "--socket=" + real, "a"}), kExitOk) << err;
  EXPECT_EQ(run({"policy", "9", "best-effort", "--socket", real}),
            geteuid() == 0 ? kExitNotFound : kExitNotPermitted);
  EXPECT_EQ(run({"run", "--socket", real, "--tenant", "x", "--", "true", "--socket", "none"}),
            kExitNotStarted);
  EXPECT_NE(err.find("no such tenant"), std::string::npos) << err;
}

TEST_F(Ctl, RunFailsClosedWhenNothingEnforces) {
  kernel.loaded = false;
  serve(kTwoToOne);
  EXPECT_EQ(run({"run", "--tenant", "a", "--", "true"}), kExitNotStarted);
  EXPECT_NE(err.find("not loaded"), std::string::npos) << err;
  EXPECT_NE(err.find("not started"), std::string::npos) << err;
  EXPECT_EQ(run({"run", "--tenant", "x", "--", "true"}), kExitNotStarted);
}

TEST_F(Ctl, JoiningMakesTheCgroupHasItConfirmedAndWritesTheProcess) {
  serve(kTwoToOne);
  auto connection = Connection::open(socket);
  ASSERT_TRUE(connection);
  // A plain folder has no cgroup.procs: everything up to the last step is done.
  auto joined = joinTenant(*connection, "a");
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().item, tree.path() + "/qgpu/a/cgroup.procs");
  EXPECT_EQ(kernel.findTenant(0, "a")->asked.cgroups,
            std::vector<uint64_t>{cgroups.idOf("/qgpu/a")});
  tree.write("qgpu/a/cgroup.procs", "");
  ASSERT_TRUE(joinTenant(*connection, "a"));
  EXPECT_EQ(tree.read("qgpu/a/cgroup.procs"), "0");
}

// The caller's cgroup mount may be another one, as in a container that was given the socket.
TEST_F(Ctl, RunDoesNotJoinAnotherCgroupOfTheSamePath) {
  tree.makeFolder("qgpu/a");
  fakes::TempFolder seen;
  seen.makeFolder("qgpu/a");
  seen.write("qgpu/a/cgroup.procs", "");
  after_answer = [&](const Json &request, ControlServer::Answer &answer) {
    if (request["verb"] != "place") return;
    Json place = Json::parse(answer.line);
    place["root"] = seen.path();
    answer.line = place.dump();
  };
  serve(kTwoToOne);
  EXPECT_EQ(run({"run", "--tenant", "a", "--", "/no/such/command"}), kExitNotStarted);
  EXPECT_NE(err.find("another cgroup"), std::string::npos) << err;
  EXPECT_EQ(seen.read("qgpu/a/cgroup.procs"), "");
}

// Removed and made anew once it was confirmed: nobody knows the new one yet.
TEST_F(Ctl, RunDoesNotJoinACgroupMadeAfterTheConfirmation) {
  after_answer = [&](const Json &request, ControlServer::Answer &) {
    if (request["verb"] != "ensure") return;
    std::filesystem::rename(tree.path() + "/qgpu/a", tree.path() + "/old");
    tree.makeFolder("qgpu/a");
    tree.write("qgpu/a/cgroup.procs", "");
  };
  serve(kTwoToOne);
  EXPECT_EQ(run({"run", "--tenant", "a", "--", "/no/such/command"}), kExitNotStarted);
  EXPECT_EQ(tree.read("qgpu/a/cgroup.procs"), "");
}

TEST_F(Ctl, RunPassesTheCommandsOwnOptionsOn) {
  CLI::App app;
  Context context;
  context.socket = folder / "absent";
  addRun(app, context);
  std::vector<std::string> words = {"run", "--tenant", "a", "--", "ls", "-l", "--all", "--"};
  std::reverse(words.begin(), words.end());
  ::testing::internal::CaptureStderr();
  EXPECT_NO_THROW(app.parse(words));
  ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(context.exit_code, kExitNotStarted);
}

// The other end of a connection, held by a test.
class Wire : public ::testing::Test {
 protected:
  Wire() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0); }
  ~Wire() override { close(ends[1]); }
  void says(const std::string &line) {
    EXPECT_EQ(write(ends[1], line.data(), line.size()), static_cast<ssize_t>(line.size()));
  }
  int ends[2];
};

TEST_F(Wire, SilenceEndsInTimeWithASentence) {
  Connection connection(ends[0], Patience(20));
  auto answer = connection.ask({{"verb", "status"}});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().text(), "ETIMEDOUT: qgpud did not answer within 0.02 s");
  EXPECT_EQ(exitCodeOf(answer.error()), kExitUnreachable);
}

TEST_F(Wire, DrippingBytesDoNotExtendTheTime) {
  Connection connection(ends[0], Patience(50));
  std::atomic<bool> done = false;
  std::thread drip([&] {
    while (!done) {
      (void)!send(ends[1], " ", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
      std::this_thread::yield();
    }
  });
  EXPECT_EQ(connection.next().error().err, ETIMEDOUT);
  done = true;
  drip.join();
}

TEST_F(Wire, AnAnswerThatIsNoneIsToldAndNotParsedDeep) {
  Connection connection(ends[0]);
  for (const std::string &line :
       {"{\"a\":" + std::string(5'000'000, '[') + "}\n", std::string("rubbish\n"),
        std::string("[1]\n"), std::string("{\"ok\":7}\n"),
        std::string("{\"ok\":false,\"error\":{\"errno\":\"x\"}}\n")}) {
    std::thread writer([&] { says(line); });
    auto answer = connection.next();
    writer.join();
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().text(), "EBADMSG: qgpud's answer cannot be understood");
  }
  says("{\"ok\":false,\"error\":{\"errno\":28,\"sentence\":\"s\",\"item\":\"i\"}}\n");
  EXPECT_EQ(connection.next().error().text(), "ENOSPC: s (i)");
}

// A daemon that is stopped: its socket takes connections until its queue is full, and no more.
TEST_F(Ctl, AStoppedDaemonIsGivenUpAndAChangeSaysThatItMayHaveBeenMade) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr *>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(fd, 0), 0);
  auto changed = changeByDaemon(socket, {{"verb", "tenant-reset"}, {"tenant", "a"}}, Patience(20));
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().text(),
            "ETIMEDOUT: qgpud did not answer within 0.02 s; whether the change is made is not "
            "known, qgpuctl status will say");
  auto waits = Connection::open(socket, Patience(20));
  auto refused = Connection::open(socket, Patience(20));
  ASSERT_FALSE(waits && refused);
  const Error &error = waits ? refused.error() : waits.error();
  EXPECT_EQ(error.text(), "ETIMEDOUT: qgpud took no connection for 0.02 s (" + socket + ")");
  EXPECT_TRUE(isUnreachable(error));
  close(fd);
}

TEST(Screen, NumbersAreForPeople) {
  EXPECT_EQ(percent(666'667), "66.7 %");
  EXPECT_EQ(percent(1000), "0.1 %");
  EXPECT_EQ(duration(0), "-");
  EXPECT_EQ(duration(512'000), "512.0 us");
  EXPECT_EQ(duration(26'700'000), "26.7 ms");
  EXPECT_EQ(duration(1'500'000'000), "1.5 s");
}

TEST(Screen, TableAlignsFirstColumnLeftAndTheRestRight) {
  Table table({"name", "n"});
  table.add({"a", "100"});
  EXPECT_EQ(table.text("  "), "  name    n\n  a     100\n");
}

TEST(Screen, HangNamesItsTenant) {
  CardEvent event;
  event.kind = QGPU_EVENT_HANG;
  event.time_ns = 1'500'000'000;
  event.tenant_id = 7;
  event.tenant_name = "batch";
  EXPECT_EQ(eventText(toJson(event)), "    1.500000  card 0  hang  tenant batch");
}

TEST(Screen, EventsAreOneLine) {
  EXPECT_EQ(eventText({{"event", "plan"}, {"card", 0}, {"time_ns", 1500000000}, {"generation", 3}}),
            "    1.500000  card 0  plan  generation 3");
}

}  // namespace ctl_test
}  // namespace qgpu::ctl
