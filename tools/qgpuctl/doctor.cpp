// SPDX-License-Identifier: GPL-2.0
// qgpuctl doctor: gathers facts, and with --prove has two tenants make load and compares what they
// got.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <memory>

#include "connection.hpp"
#include "diagnosis.hpp"
#include "run.hpp"
#include "verb.hpp"

namespace qgpu::ctl {

namespace {

constexpr int kSettleMs = 2000;

struct DoctorOptions {
  std::vector<std::string> prove;
  std::string card;
  double seconds = 5;
  std::string load;  // what makes load; empty: qgpu-load, with --cuda on a real card
  bool json = false;
};

// A command in a tenant's cgroup, ended with this.
class Probe {
 public:
  Probe(const std::string &socket, const std::string &tenant, const std::string &command) {
    pid_ = fork();
    if (pid_ != 0) return;
    setpgid(0, 0);
    auto connection = Connection::open(socket, kChangePatience);
    if (!connection || !joinTenant(*connection, tenant)) _exit(kExitNotStarted);
    if (!freopen("/dev/null", "w", stdout)) _exit(kExitFailed);
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(kExitNoCommand);
  }
  ~Probe() {
    if (pid_ <= 0) return;
    kill(-pid_, SIGKILL);
    kill(pid_, SIGKILL);
    if (!is_reaped_) waitpid(pid_, nullptr, 0);
  }
  Probe(const Probe &) = delete;
  Probe &operator=(const Probe &) = delete;

  bool isRunning() {
    if (pid_ > 0 && !is_reaped_ && waitpid(pid_, nullptr, WNOHANG) != 0) is_reaped_ = true;
    return pid_ > 0 && !is_reaped_;
  }

 private:
  pid_t pid_ = -1;
  bool is_reaped_ = false;
};

// One tenant on the card that is proven, as the daemon has it.
struct Reading {
  uint64_t run_ns = 0, error_ns = 0;
  uint32_t share_ppm = 0;
  bool is_awake = false;
};

Result<Reading> readTenant(const Json &card, const std::string &name) {
  for (const Json &tenant : card.at("tenants")) {
    if (tenant.at("name") != name) continue;
    const Json counters = tenant.value("counters", Json::object());
    return Reading{counters.value("run_ns", uint64_t{0}), counters.value("run_err_ns", uint64_t{0}),
                   tenant.at("effective").value("share_ppm", 0u), tenant.value("awake", false)};
  }
  return Error{ENOENT, "no such tenant on this card", name};
}

Result<Json> readCard(const std::string &socket, const std::string &card) {
  auto status = askDaemon(socket, {{"verb", "status"}});
  if (!status) return status.error();
  for (const Json &json : status->at("cards"))
    if (card.empty() || card == json.at("uuid") || card == std::to_string(json.value("index", 0u)))
      return json;
  return Error{ENODEV, "no such card", card};
}

// Load on that card and no other.
std::string probeCommand(const Json &card, const DoctorOptions &options) {
  const std::string load =
      card.value("simulated", false)
          ? "exec qgpu-load --card " + std::to_string(card.value("index", 0u))
          : "export CUDA_VISIBLE_DEVICES=" + card.value("uuid", std::string()) +
                "; exec qgpu-load --cuda";
  return load + " --seconds " +
         std::to_string(static_cast<int>(options.seconds) + kSettleMs / 1000 + 30);
}

Result<Proof> prove(const std::string &socket, const DoctorOptions &options) {
  const std::string &first = options.prove.at(0), &second = options.prove.at(1);
  auto card = readCard(socket, options.card);
  if (!card) return card.error();
  const std::string command = options.load.empty() ? probeCommand(*card, options) : options.load;
  Probe one(socket, first, command), other(socket, second, command);
  poll(nullptr, 0, kSettleMs);
  auto before = readCard(socket, options.card);
  poll(nullptr, 0, static_cast<int>(options.seconds * 1000));
  auto after = readCard(socket, options.card);
  if (!before) return before.error();
  if (!after) return after.error();
  Reading readings[2][2];
  for (int i = 0; i < 2; ++i) {
    auto begin = readTenant(*before, options.prove[i]), end = readTenant(*after, options.prove[i]);
    if (!begin) return begin.error();
    if (!end) return end.error();
    readings[i][0] = *begin;
    readings[i][1] = *end;
  }
  if (!one.isRunning() || !other.isRunning())
    return Error{ECHILD,
                 "a probe ended before its time: it may not join its tenant, or makes no load here",
                 command};
  Proof proof{first, second};
  proof.first_run_ns = readings[0][1].run_ns - readings[0][0].run_ns;
  proof.second_run_ns = readings[1][1].run_ns - readings[1][0].run_ns;
  proof.error_ns = readings[0][1].error_ns - readings[0][0].error_ns + readings[1][1].error_ns -
                   readings[1][0].error_ns;
  proof.first_share_ppm = readings[0][1].share_ppm;
  proof.second_share_ppm = readings[1][1].share_ppm;
  return proof;
}

int examine(const std::string &socket, const DoctorOptions &options) {
  MachineFacts facts = gatherFacts("");
  auto status = askDaemon(socket, {{"verb", "status"}});
  if (status)
    facts.status = *status;
  else
    facts.daemon_error = status.error();
  if (auto wire = netlink::openWire(netlink::WireKind::kRequests)) {
    netlink::Client client(std::move(*wire));
    if (auto family = client.resolve()) facts.family_version = family->version;
  }
  std::vector<Finding> findings = findingsOf(facts);
  if (!options.prove.empty()) {
    auto proof = prove(socket, options);
    findings.push_back(proof ? findingOf(*proof)
                             : Finding{Severity::kBad, "enforcement", proof.error().text(),
                                       "name two tenants of the configuration that may run here"});
  } else {
    findings.push_back({Severity::kHint, "enforcement", "not proven: no two tenants were named",
                        "qgpuctl doctor --prove TENANT TENANT, which makes load for some seconds"});
  }
  const std::string text =
      options.json ? findingsJson(findings).dump(2) + "\n" : findingsText(findings);
  std::fputs(text.c_str(), stdout);
  return isHealthy(findings) ? kExitOk : kExitFailed;
}

}  // namespace

void addDoctor(CLI::App &app, Context &context) {
  auto *verb =
      app.add_subcommand("doctor", "is everything there that shares need, and do they hold");
  auto options = std::make_shared<DoctorOptions>();
  verb->add_option("--prove", options->prove, "two tenants that make load and are compared")
      ->expected(2)
      ->type_name("TENANT TENANT");
  verb->add_option("--card", options->card,
                   "the card that is loaded: uuid or index; else the first");
  verb->add_option("--seconds", options->seconds, "for how long they are compared")
      ->check(CLI::Range(1.0, 600.0))
      ->capture_default_str();
  verb->add_option("--load", options->load, "a command line that makes load, instead of qgpu-load");
  verb->add_flag("--json", options->json, "the findings, for programs");
  verb->footer("example: qgpuctl doctor --prove web batch\nexit code: 0 healthy, 1 not");
  verb->callback([&context, options] { context.exit_code = examine(context.socket, *options); });
}

}  // namespace qgpu::ctl
