// SPDX-License-Identifier: GPL-2.0
// qgpud: command line, wiring, the loop. Nothing is torn down at the end: a dead daemon changes no
// share.
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/uio.h>
#define SD_JOURNAL_SUPPRESS_LOCATION  // it would be this file's for every line
#include <systemd/sd-daemon.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "card_set.hpp"
#include "cgroup.hpp"
#include "config.hpp"
#include "config_check.hpp"
#include "control.hpp"
#include "daemon.hpp"
#include "instance_lock.hpp"
#include "journal.hpp"
#include "kernel_card.hpp"
#include "loop.hpp"
#include "metrics_endpoint.hpp"
#include "names.hpp"
#include "policy.hpp"
#include "privilege.hpp"
#include "program.hpp"
#include "promise.hpp"
#include "rm_card.hpp"
#include "snapshot_json.hpp"
#include "stderr_sink.hpp"
#include "verbs.hpp"

namespace qgpu {
namespace {

enum ExitCode {
  kExitOk = 0,
  kExitFailed = 1,  // the system refused something that the daemon cannot do without
  kExitUsage = 2,
  kExitConfig = 3,   // the configuration is refused
  kExitRunning = 4,  // another qgpud is there already
};

void sendToJournal(const JournalFields &fields) {
  std::vector<iovec> parts;
  for (const std::string &field : fields)
    parts.push_back({const_cast<char *>(field.data()), field.size()});
  sd_journal_sendv(parts.data(), static_cast<int>(parts.size()));
}

void openLog(bool foreground, const std::string &level) {
  bool to_journal = !foreground && getenv("JOURNAL_STREAM") != nullptr;
  if (to_journal)
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("qgpud", journalSink(sendToJournal)));
  else
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("qgpud", stderrSink(STDERR_FILENO)));
  spdlog::set_pattern(to_journal ? "%v" : "%Y-%m-%d %H:%M:%S.%e %l: %v");
  spdlog::set_level(spdlog::level::from_str(level));
}

std::string nameOf(const DesiredCard &card) {
  if (!card.uuid.empty()) return card.uuid;
  return card.index == UINT32_MAX ? "all" : std::to_string(card.index);
}

std::string waitText(uint64_t wait_ns) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f ms", static_cast<double>(wait_ns) / 1e6);
  return wait_ns ? text : "-";
}

std::string pointsText(uint32_t ppm) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f pp", ppm / 1e4);
  return text;
}

std::string ceilingText(const TenantSettings &settings) {
  return settings.ceiling_ppm < QGPU_PPM ? percentText(settings.ceiling_ppm) : "-";
}

std::string classText(const TenantSettings &settings) {
  return settings.work_class == QGPU_CLASS_NORMAL ? "-" : className(settings.work_class);
}

using Rows = std::vector<std::vector<std::string>>;

// Columns as wide as needed, the names to the left, the figures to the right.
void printRows(const Rows &rows) {
  constexpr size_t kNames = 4;
  std::vector<size_t> widths(rows.front().size());
  for (const auto &row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  for (const auto &row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string fill(widths[i] - row[i].size(), ' ');
      line += (i ? "  " : "") + (i < kNames ? row[i] + fill : fill + row[i]);
    }
    std::printf("%s\n", line.c_str());
  }
}

// Of those that few ask for: only where somebody does.
void dropUnasked(Rows &rows, size_t first, size_t last) {
  for (size_t column = last; column-- > first;) {
    if (std::any_of(rows.begin() + 1, rows.end(),
                    [&](const auto &row) { return row[column] != "-"; }))
      continue;
    for (auto &row : rows) row.erase(row.begin() + static_cast<ptrdiff_t>(column));
  }
}

void addRows(Rows &rows, const DesiredCard &card, const ComputedPromises &promises) {
  const bool is_enforced = card.policy != QGPU_POLICY_BEST_EFFORT;
  for (size_t i = 0; i < promises.all.tenants.size(); ++i) {
    const TenantPromise &all = promises.all.tenants[i], &worst = promises.worst.tenants[i];
    auto tenant = std::find_if(card.tenants.begin(), card.tenants.end(),
                               [&](const DesiredTenant &t) { return t.name == all.name; });
    rows.push_back({nameOf(card), card.method == CardMethod::kRm ? "rm" : "module", all.name,
                    policyName(card.policy), std::to_string(tenant->settings.weight),
                    percentText(tenant->settings.guarantee_ppm), ceilingText(tenant->settings),
                    classText(tenant->settings), waitText(tenant->settings.wake_ns),
                    is_enforced ? percentText(all.share_ppm) : "-", waitText(worst.wait_ns),
                    is_enforced && !promises.beside_online ? pointsText(worst.off_ppm) : "-"});
  }
}

// What the figures of a card do not say themselves.
void printNotes(const DesiredCard &card, const ComputedPromises &promises) {
  const std::string name = nameOf(card);
  if (promises.all.tenants.empty()) return;
  if (card.policy == QGPU_POLICY_BEST_EFFORT) {
    std::printf("%s: nothing is enforced: the policy is best-effort\n", name.c_str());
    return;
  }
  if (!promises.beside_online || promises.worst.loss_ppm)
    std::printf("%s: switching costs %s with all busy, %s at the most\n", name.c_str(),
                percentText(promises.all.loss_ppm).c_str(),
                percentText(promises.worst.loss_ppm).c_str());
  if (promises.beside_online)
    std::printf(
        "%s: what the coming and going of online tenants costs is not computed; their longest wait "
        "holds while they are within their share; where \"-\" stands, nothing is promised beside "
        "them\n",
        name.c_str());
  const bool needs_trace =
      card.method == CardMethod::kRm &&
      std::any_of(card.tenants.begin(), card.tenants.end(), [](const DesiredTenant &tenant) {
        return tenant.settings.wake_ns || tenant.settings.work_class != QGPU_CLASS_NORMAL;
      });
  if (needs_trace)
    std::printf(
        "%s: classes and wake_within hold while the executor has the driver's context-switch "
        "trace; "
        "without it they are refused, and if it is lost nothing is enforced, which \"qgpuctl "
        "status\" says\n",
        name.c_str());
  for (const TenantPromise &tenant : promises.all.tenants)
    if (!tenant.share_ppm && tenant.name != "default")
      std::printf("%s: %s gets nothing while all others are busy; a guarantee would change that\n",
                  name.c_str(), tenant.name.c_str());
  if (!promises.every_pair)
    std::printf(
        "%s: too many different settings for every pair: the worst is of each tenant beside those "
        "of the largest shares\n",
        name.c_str());
}

void printPromises(const ConfigIr &config, const DesiredState &state) {
  constexpr size_t kCeiling = 6, kShare = 9;
  Rows rows = {{"card", "method", "tenant", "policy", "weight", "guarantee", "ceiling", "class",
                "wake within", "share, all busy", "longest wait", "off in 1 s"}};
  PromiseBook book;
  const auto promisesOf = [&](const DesiredCard &card) -> const ComputedPromises & {
    return book.of(card, switchNsOf(card.method, 0));
  };
  for (const DesiredCard &card : state.cards) addRows(rows, card, promisesOf(card));
  dropUnasked(rows, kCeiling, kShare);
  printRows(rows);
  for (const DesiredCard &card : state.cards) printNotes(card, promisesOf(card));
  if (config.cards.empty())
    std::printf("%s names no card: nothing would be enforced\n", config.file.c_str());
}

int check(const ConfigOutcome &outcome) {
  const auto problems = checkConfig(outcome.ir, outcome.problems, Edits{}, {});
  for (const ConfigProblem &problem : problems)
    std::fprintf(stderr, "%s\n", problem.text().c_str());
  if (!problems.empty()) return kExitConfig;
  const auto cards = placeholderInventory(outcome.ir);
  printPromises(outcome.ir, compute(outcome.ir, Edits{}, cards, CgroupIds{}).state);
  return kExitOk;
}

// One qgpud a machine: two would undo each other's plans, whatever their sockets and state files
// are. Who may not lock there has its state file for itself at least.
Result<InstanceLock> lockMachine(const std::string &state) {
  auto lock = InstanceLock::take("/run/qgpu/qgpud.lock", "another qgpud runs on this machine");
  const bool forbidden = !lock && (lock.error().err == EACCES || lock.error().err == ENOENT ||
                                   lock.error().err == EROFS);
  if (!forbidden) return lock;
  spdlog::warn("{}; whether another qgpud runs on this machine is not known", lock.error().text());
  return InstanceLock::take(state + ".lock", "another qgpud has this state file");
}

// The folder of the state file; the file itself is made at the first edit.
void makeStateFolder(const std::string &path) {
  size_t slash = path.rfind('/');
  if (slash != std::string::npos && slash > 0) mkdir(path.substr(0, slash).c_str(), 0755);
}

void reload(Daemon &daemon, const std::string &file) {
  sd_notify(0, "RELOADING=1");
  // However it ends: who waits for the reload would wait for ever.
  struct Ready {
    ~Ready() { sd_notify(0, "READY=1"); }
  } ready;
  std::vector<ConfigProblem> problems = daemon.reload(loadConfig(file));
  for (const ConfigProblem &problem : problems) spdlog::error("{}", problem.text());
  if (problems.empty())
    spdlog::info("{} is read anew and in force", file);
  else
    spdlog::error("{} is refused, the former configuration stays in force", file);
}

// Where the executors and the driver's files are; tests have others.
RmCard::Places rmPlaces() {
  RmCard::Places places;
  places.executors.cgroup_root = findCgroup2Mount();
  return places;
}

// Each process of a tenant under method rm is held by a descriptor, and how many there are is not
// ours to say.
void raiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::max(limit.rlim_cur, std::min<rlim_t>(limit.rlim_max, 65'536));
  setrlimit(RLIMIT_NOFILE, &limit);
}

// Null: off, or it cannot be had, for which no share is given up.
std::unique_ptr<MetricsEndpoint> listenForScrapes(const std::string &address, Loop &loop,
                                                  Clock &clock, Daemon &daemon) {
  if (address.empty()) return nullptr;
  auto endpoint = MetricsEndpoint::listen(address, loop, clock, [&daemon](ExpositionFormat format) {
    daemon.refresh();
    return exposition(expositionOf(daemon, QGPU_VERSION), format);
  });
  if (!endpoint) {
    spdlog::error("{}; there are no metrics until the next start", endpoint.error().text());
    return nullptr;
  }
  spdlog::info("metrics: http://{}/metrics", address);
  return std::move(*endpoint);
}

sigset_t handledSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, number);
  return signals;
}

int serve(const std::string &file, const ConfigIr &config) {
  makeStateFolder(config.state);
  const auto lock = lockMachine(config.state);
  if (!lock) {
    spdlog::critical("{}", lock.error().text());
    return lock.error().err == EBUSY ? kExitRunning : kExitFailed;
  }
  raiseDescriptorLimit();
  signal(SIGPIPE, SIG_IGN);
  const sigset_t signals = handledSignals();
  int signal_fd = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);

  MonotonicClock clock;
  Loop loop;
  auto module_card = KernelCard::open();
  if (!module_card) {
    spdlog::critical("{}", module_card.error().text());
    return kExitFailed;
  }
  const Daemon *asked = nullptr;  // whose configuration says which cards are rm's
  RmCard rm_card(rmPlaces(),
                 {[&](const CardInfo &info) { return asked->methodOf(info) == CardMethod::kRm; },
                  [&] { return asked->usesMethod(CardMethod::kRm); }},
                 clock);
  CardSet cards(**module_card, rm_card);
  StateFile state_file(config.state);
  CgroupTree cgroups(findCgroup2Mount());
  Daemon daemon(cards, cgroups, state_file, clock);
  asked = &daemon;
  ControlServer control(loop, clock, [&](const nlohmann::json &request, const Peer &peer) {
    return answerRequest(daemon, request, peer);
  });
  if (auto listening = control.listen(config.socket, "qgpu"); !listening) {
    spdlog::critical("{}", listening.error().text());
    return listening.error().err == EADDRINUSE ? kExitRunning : kExitFailed;
  }
  auto metrics = listenForScrapes(config.metrics, loop, clock, daemon);
  if (auto dropped = keepNetAdminOnly(); !dropped) {
    if (geteuid() == 0) {
      spdlog::critical("{}", dropped.error().text());
      return kExitFailed;
    }
    spdlog::warn("{}", dropped.error().text());
  }

  bool running = true;
  daemon.on_event = [&](const CardEvent &event) { control.publish(lineOf(toJson(event))); };
  daemon.on_lost = [&] { control.publish(R"({"event":"lost"})"); };
  loop.add(cards.eventFd(), EPOLLIN, [&](uint32_t) { daemon.onCardEvents(); });
  if (cgroups.fd() >= 0)
    loop.add(cgroups.fd(), EPOLLIN, [&](uint32_t) { daemon.onCgroupEvents(); });
  loop.add(signal_fd, EPOLLIN, [&](uint32_t) {
    signalfd_siginfo info;
    while (read(signal_fd, &info, sizeof(info)) == sizeof(info)) {
      if (info.ssi_signo == SIGHUP)
        reload(daemon, file);
      else
        running = false;
    }
  });

  daemon.start(config);
  spdlog::info("qgpud runs with {}: {} tenant(s), control socket {}", file, config.tenants.size(),
               config.socket);
  sd_notify(0, "READY=1");
  while (running) {
    bool is_done = loop.attempt("what is due on the cards", [&] { daemon.tick(); });
    is_done &= loop.attempt("what is due on the control socket", [&] { control.tick(); });
    if (metrics) is_done &= loop.attempt("what is due for scrapes", [&] { metrics->tick(); });
    uint64_t due_ns = std::min(daemon.deadlineNs(), control.deadlineNs());
    if (metrics) due_ns = std::min(due_ns, metrics->deadlineNs());
    // What nobody read of the log may be told by now.
    spdlog::default_logger()->flush();
    // What failed is due still, and gets no better by trying at once.
    loop.armTimer(is_done ? due_ns : std::max(due_ns, clock.nowNs() + kSecondNs));
    loop.wait();
  }
  sd_notify(0, "STOPPING=1");
  spdlog::info("qgpud ends; the cards keep their plans");
  close(signal_fd);
  return kExitOk;
}

int writeManPage(const std::string &file, const CLI::App &app) {
  std::ofstream page(file);
  page << programManPage(app);
  page.close();
  if (page) return kExitOk;
  std::fprintf(stderr, "qgpud: %s cannot be written\n", file.c_str());
  return kExitFailed;
}

int run(int argc, char **argv) {
  CLI::App app;
  ProgramOptions options;
  defineProgram(app, options);
  app.set_version_flag("--version", "qgpud " QGPU_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    std::fprintf(stderr, "qgpud: %s; another configuration is -c FILE, see qgpud --help\n",
                 error.what());
    return kExitUsage;
  }
  if (!options.man_page.empty()) return writeManPage(options.man_page, app);

  // Told to read its file anew while it reads it for the first time, it does so afterwards.
  const sigset_t signals = handledSignals();
  if (!options.check_only) sigprocmask(SIG_BLOCK, &signals, nullptr);
  const ConfigOutcome outcome = loadConfig(options.file);
  if (options.check_only) return check(outcome);
  openLog(options.foreground, outcome.ir.log_level);
  const auto problems = checkConfig(outcome.ir, outcome.problems, Edits{}, {});
  for (const ConfigProblem &problem : problems) spdlog::critical("{}", problem.text());
  if (!problems.empty()) return kExitConfig;
  return serve(options.file, outcome.ir);
}

}  // namespace
}  // namespace qgpu

int main(int argc, char **argv) {
  try {
    return qgpu::run(argc, argv);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "qgpud: %s\n", error.what());
    return qgpu::kExitFailed;
  }
}
