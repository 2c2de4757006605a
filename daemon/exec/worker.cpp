// SPDX-License-Identifier: GPL-2.0
#include "worker.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>

#include "calibration_server.hpp"
#include "executor.hpp"
#include "rm_io.hpp"
#include "server.hpp"

namespace qgpu::exec {
namespace {

volatile std::sig_atomic_t g_stop = 0;

void onSignal(int) { g_stop = 1; }

// Signals arrive only inside of ppoll, so none is missed between a look at the flag and the wait.
sigset_t catchSignals() {
  struct sigaction action {};
  action.sa_handler = onSignal;
  sigset_t blocked, during;
  sigemptyset(&blocked);
  for (const int signal : {SIGTERM, SIGINT}) {
    sigaction(signal, &action, nullptr);
    sigaddset(&blocked, signal);
  }
  std::signal(SIGPIPE, SIG_IGN);
  sigprocmask(SIG_BLOCK, &blocked, &during);
  sigdelset(&during, SIGTERM);
  sigdelset(&during, SIGINT);
  return during;
}

Result<std::unique_ptr<Executor>> openExecutor(RmIo &io, const Pulse &pulse,
                                               const WorkerOptions &options) {
  const auto version = driverVersion();
  if (!version) return version.error();
  const auto profile = driverProfile(*version, options.choice);
  if (!profile) return profile.error();
  const auto cards = driverCards();
  if (!cards) return cards.error();
  const auto card = findCard(*cards, options.card);
  if (!card) return card.error();
  auto own = RmClient::open(io, *profile, card->minor);
  if (!own) return own.error();
  ExecutorOptions out;
  out.uuid = card->uuid;
  out.name = card->name;
  out.driver = version->text();
  out.run_dir = options.run_dir;
  out.state_dir = options.state_dir;
  out.worker_restarts = options.restarts;
  out.seed = monotonicNs();
  out.pulse = &pulse;
  return Executor::create(std::move(*own), out);
}

int refuse(const Error &error) {
  std::fprintf(stderr, "qgpu-exec: %s\n", error.text().c_str());
  return kWorkerRefused;
}

}  // namespace

int runWorker(const WorkerOptions &options, int listen_fd, int pulse_fd) {
  const sigset_t during = catchSignals();
  // Wake up when asked to.
  prctl(PR_SET_TIMERSLACK, 1);
  const auto pulse = Pulse::attach(pulse_fd);
  if (!pulse) return refuse(pulse.error());
  DeviceIo io(pulse->get());
  auto executor = openExecutor(io, **pulse, options);
  if (!executor) return refuse(executor.error());
  {
    Server server(listen_fd, **executor);
    CalibrationServer calibration(calibrateSocketPath(options.run_dir, (*executor)->hello().uuid),
                                  **executor);
    while (!g_stop) {
      (*pulse)->beat();
      const uint64_t wait_ns = (*executor)->turn();
      server.sendEvents();
      calibration.sendResult();
      auto polls = server.polls();
      for (const pollfd &more : calibration.polls()) polls.push_back(more);
      const timespec wait = {.tv_sec = static_cast<time_t>(wait_ns / 1'000'000'000),
                             .tv_nsec = static_cast<long>(wait_ns % 1'000'000'000)};
      if (ppoll(polls.data(), polls.size(), &wait, &during) <= 0) continue;
      server.handle(polls);
      calibration.handle(polls);
    }
  }
  (*executor)->stop();
  return kWorkerStopped;
}

}  // namespace qgpu::exec
