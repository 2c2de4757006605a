// SPDX-License-Identifier: GPL-2.0
#include "guard.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "../instance_lock.hpp"
#include "../socket_file.hpp"
#include "gates.hpp"
#include "packet_socket.hpp"
#include "pulse.hpp"
#include "put_back.hpp"
#include "server.hpp"
#include "store.hpp"

namespace qgpu::exec {
namespace {

// A worker that dies sooner than this after its start is started again later.
constexpr uint64_t kYoungNs = 2'000'000'000;
constexpr unsigned kLaterMs = 1000;
constexpr unsigned kLookMs = 1000;
// A control may take as long as the driver's own time-out.
constexpr int kStopSeconds = 35;
// Of all executors, whatever their run folders.
constexpr const char *kLockFolder = "/run/qgpu";

struct GuardedCard {
  DeviceIo io;
  DriverCard card;
  std::unique_ptr<RmClient> own;
  std::unique_ptr<Controls> controls;
};

Result<void> open(GuardedCard &out, const WorkerOptions &options, const std::string &which) {
  const auto version = driverVersion();
  if (!version) return version.error();
  const auto profile = driverProfile(*version, options.choice);
  if (!profile) return profile.error();
  const auto cards = driverCards();
  if (!cards) return cards.error();
  const auto card = findCard(*cards, which);
  if (!card) return card.error();
  out.card = *card;
  auto own = RmClient::open(out.io, *profile, card->minor);
  if (!own) return own.error();
  out.own = std::move(*own);
  out.controls = std::make_unique<Controls>(*out.own);
  return {};
}

int complain(const Error &error, int status = kWorkerRefused) {
  std::fprintf(stderr, "qgpu-exec: %s\n", error.text().c_str());
  return status;
}

// Returns false when some of them may still be stopped.
bool openGates(GuardedCard &card, const std::string &run_dir) {
  const auto entries = readGates(gatesPath(run_dir, card.card.uuid));
  if (!entries) {
    complain(entries.error());
    return false;
  }
  if (entries->empty()) return true;
  const auto done = releaseGates(*card.controls, *entries);
  if (!done) {
    complain(done.error());
    return false;
  }
  std::fprintf(stderr, "qgpu-exec: %zu TSGs run again\n", *done);
  return true;
}

// One signal, or 0 after so long.
int nextSignal(const sigset_t &signals, unsigned ms) {
  const timespec wait = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1'000'000};
  return std::max(sigtimedwait(&signals, nullptr, &wait), 0);
}

// One guard a card, whatever their run folders are; two would undo each other's slices and gates.
// Who may not lock there is alone in its run folder at least.
Result<InstanceLock> tryLock(const WorkerOptions &options, const std::string &uuid) {
  const std::string name = "/exec-" + uuid + ".lock";
  const std::string another = "another qgpu-exec has this card";
  auto lock = InstanceLock::take(kLockFolder + name, another);
  const bool forbidden = !lock && (lock.error().err == EACCES || lock.error().err == ENOENT ||
                                   lock.error().err == EROFS);
  if (!forbidden || options.run_dir == kLockFolder) return lock;
  return InstanceLock::take(options.run_dir + name, another);
}

// The worker of a killed guard has the lock until it has put back what it changed. ECANCELED: told
// to stop while waiting for that.
Result<InstanceLock> lockCard(const WorkerOptions &options, const std::string &uuid,
                              const sigset_t &signals) {
  for (int i = 0;; i++) {
    auto lock = tryLock(options, uuid);
    if (lock || lock.error().err != EAGAIN || i == kStopSeconds * 10) return lock;
    const int signal = nextSignal(signals, 100);
    if (signal == SIGTERM || signal == SIGINT)
      return Error{ECANCELED, "stopped before it had the card", uuid};
  }
}

// What a service manager is told: a second one is no use, after a killed one it tries again.
int statusOf(const Error &error) {
  switch (error.err) {
    case ECANCELED:
      return kWorkerStopped;
    case EBUSY:
      return kGuardSecond;
    case EAGAIN:
      return 1;
    default:
      return kWorkerRefused;
  }
}

// What a worker inherits.
struct Inherited {
  int listen_fd, lock_fd;
  int pulse_fd = -1;  // each has one of its own
};

pid_t startWorker(const WorkerOptions &options, Inherited inherited, const sigset_t &signals) {
  const std::string fd = std::to_string(inherited.listen_fd),
                    pulse = std::to_string(inherited.pulse_fd),
                    restarts = std::to_string(options.restarts);
  std::vector<const char *> args = {"qgpu-exec",
                                    "--worker",
                                    fd.c_str(),
                                    "--pulse",
                                    pulse.c_str(),
                                    "--card",
                                    options.card.c_str(),
                                    "--run-dir",
                                    options.run_dir.c_str(),
                                    "--state-dir",
                                    options.state_dir.c_str(),
                                    "--restarts",
                                    restarts.c_str()};
  if (options.choice == DriverChoice::kNearest) args.push_back("--force-driver");
  args.push_back(nullptr);
  const pid_t guard = getpid();
  const pid_t pid = fork();
  if (pid) return pid;
  // Without its guard it stops in order.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != guard) _exit(1);
  for (const int kept : {inherited.listen_fd, inherited.lock_fd, inherited.pulse_fd})
    fcntl(kept, F_SETFD, 0);
  sigprocmask(SIG_UNBLOCK, &signals, nullptr);
  execv("/proc/self/exe", const_cast<char **>(args.data()));
  _exit(1);
}

struct Running {
  pid_t pid = 0;
  std::unique_ptr<Pulse> pulse;
  PulseWatch watch;
  bool told = false, let_run = false;  // since it fell silent
};

Result<Running> begin(const WorkerOptions &options, Inherited inherited, const sigset_t &signals) {
  auto pulse = Pulse::create();
  if (!pulse) return pulse.error();
  inherited.pulse_fd = (*pulse)->fd();
  Running out;
  out.pid = startWorker(options, inherited, signals);
  if (out.pid < 0) return Error{errno, "cannot start the worker", {}};
  out.pulse = std::move(*pulse);
  return out;
}

// Once a second. Nobody stays stopped by a worker that hangs; one that goes on stops them anew.
void lookAfter(Running &worker, GuardedCard &card, const std::string &run_dir) {
  const auto verdict = worker.watch.look(worker.pulse->beats());
  if (verdict == PulseWatch::Verdict::kHung) kill(worker.pid, SIGKILL);
  if (verdict == PulseWatch::Verdict::kAlive) worker.let_run = worker.told = false;
  if (verdict == PulseWatch::Verdict::kAlive || worker.let_run) return;
  if (!worker.told)
    std::fprintf(stderr, "qgpu-exec: the worker hangs, nobody is to stay stopped\n");
  worker.told = true;
  worker.let_run = openGates(card, run_dir);
  worker.pulse->noteRelease();
}

// Waits until it has stopped in order, or stops it otherwise.
void stopWorker(Running &worker, GuardedCard &card, const std::string &run_dir,
                const sigset_t &signals) {
  kill(worker.pid, SIGTERM);
  for (int i = 1; i <= kStopSeconds * 10; i++) {
    if (waitpid(worker.pid, nullptr, WNOHANG) == worker.pid) return;
    nextSignal(signals, 100);
    if (i % 10 == 0) lookAfter(worker, card, run_dir);
  }
  kill(worker.pid, SIGKILL);
  waitpid(worker.pid, nullptr, 0);
}

int keepRunning(GuardedCard &card, WorkerOptions options, Inherited inherited,
                const sigset_t &signals) {
  for (;; options.restarts++) {
    const uint64_t begin_ns = monotonicNs();
    auto worker = begin(options, inherited, signals);
    if (!worker) return complain(worker.error());
    int status = 0;
    while (waitpid(worker->pid, &status, WNOHANG) != worker->pid) {
      const int signal = nextSignal(signals, kLookMs);
      if (!signal) lookAfter(*worker, card, options.run_dir);
      if (signal != SIGTERM && signal != SIGINT) continue;
      stopWorker(*worker, card, options.run_dir, signals);
      openGates(card, options.run_dir);
      return kWorkerStopped;
    }
    openGates(card, options.run_dir);
    if (WIFEXITED(status) &&
        (WEXITSTATUS(status) == kWorkerStopped || WEXITSTATUS(status) == kWorkerRefused))
      return WEXITSTATUS(status);
    std::fprintf(stderr, "qgpu-exec: the worker died (status 0x%x), starting another\n",
                 static_cast<unsigned>(status));
    if (monotonicNs() < begin_ns + kYoungNs) {
      const int signal = nextSignal(signals, kLaterMs);
      if (signal == SIGTERM || signal == SIGINT) return kWorkerStopped;
    }
  }
}

}  // namespace

int runGuard(const WorkerOptions &options) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  GuardedCard card;
  if (const auto done = open(card, options, options.card); !done) return complain(done.error());
  mkdir(options.run_dir.c_str(), 0755);
  const auto lock = lockCard(options, card.card.uuid, signals);
  if (!lock) return complain(lock.error(), statusOf(lock.error()));
  const std::string path = socketPath(options.run_dir, card.card.uuid);
  const auto listen_fd = listenAt(path);
  if (!listen_fd) return complain(listen_fd.error());
  SocketFile file(path);
  openGates(card, options.run_dir);
  WorkerOptions of_card = options;
  of_card.card = card.card.uuid;
  return keepRunning(card, of_card, {*listen_fd, lock->fd()}, signals);
}

int runRelease(const WorkerOptions &options) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT}) sigaddset(&signals, signal);
  const auto cards = driverCards();
  if (!cards) return complain(cards.error());
  int status = 0;
  for (const DriverCard &one : *cards) {
    if (!options.card.empty() && options.card != one.uuid &&
        options.card != std::to_string(one.minor))
      continue;
    GuardedCard card;
    if (const auto done = open(card, options, one.uuid); !done) {
      status = complain(done.error());
      continue;
    }
    // A worker that outlives its guard and does not end keeps nobody stopped either.
    const auto lock = lockCard(options, one.uuid, signals);
    if (!lock) complain(lock.error());
    if (!lock && (lock.error().err == EBUSY || lock.error().err == ECANCELED)) {
      status = lock.error().err == EBUSY ? kGuardSecond : 1;
      continue;
    }
    // The record stays until it is done: it is all that says who is stopped.
    const bool open = openGates(card, options.run_dir);
    Store store(storePath(options.run_dir, one.uuid));
    putBack(*card.own, *card.controls, store.load());
    store.remove();
    if (open)
      unlink(gatesPath(options.run_dir, one.uuid).c_str());
    else
      status = 1;
  }
  return status;
}

}  // namespace qgpu::exec
