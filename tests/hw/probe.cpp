// SPDX-License-Identifier: GPL-2.0
// hw_probe: each control of the executor, by itself, on processes that the caller started, with
// what the driver said and how long it took. A control that fails is reported and the next one is
// tried. Leaves slices as found and nobody stopped.
//
//   hw_probe [--minor N] SECTION PID...
//   sections: objects slices trace gate owngate idle busy late start
#include <sys/syscall.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <thread>

#include "daemon/exec/process.hpp"
#include "daemon/exec/rm_abi.hpp"
#include "daemon/exec/trace.hpp"

namespace {

using namespace qgpu;
using namespace qgpu::exec;

void sleepMs(double ms) {
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms));
}

struct Bench {
  DeviceIo io;
  std::unique_ptr<RmClient> own;
  std::unique_ptr<Controls> controls;
  std::vector<std::unique_ptr<Process>> processes;

  Process &at(size_t i) { return *processes.at(i); }
  const Tsg *compute(size_t i) {
    for (const Tsg &tsg : at(i).tsgs())
      if (tsg.compute()) return &tsg;
    return nullptr;
  }
};

void say(const char *what, const Result<void> &done, uint64_t took_ns) {
  std::printf("  %-28s %s (%.0f us)\n", what, done ? "ok" : done.error().sentence.c_str(),
              static_cast<double>(took_ns) / 1e3);
}

template <class F>
void timed(const char *what, F call) {
  const uint64_t begin = monotonicNs();
  const Result<void> done = call();
  say(what, done, monotonicNs() - begin);
}

bool open(Bench &b, unsigned minor) {
  std::ifstream file("/proc/driver/nvidia/version");
  std::stringstream text;
  text << file.rdbuf();
  const auto version = parseDriverVersion(text.str());
  if (!version) return std::puts(version.error().sentence.c_str()), false;
  const auto profile = driverProfile(*version, DriverChoice::kNearest);
  std::printf("driver %s, profile %s\n", version->text().c_str(), profile->name.c_str());
  const uint64_t begin = monotonicNs();
  auto own = RmClient::open(b.io, *profile, minor);
  if (!own) return std::puts(own.error().text().c_str()), false;
  b.own = std::move(*own);
  b.controls = std::make_unique<Controls>(*b.own);
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  std::printf(
      "own client %x, gpu id %x, doorbell %s, made in %.1f ms, timer - wall clock %.3f ms\n",
      b.own->client(), b.own->gpuId(), b.own->canRing() ? "yes" : "no",
      static_cast<double>(monotonicNs() - begin) / 1e6,
      (static_cast<double>(b.own->timeNs()) -
       (static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec))) /
          1e6);
  return true;
}

void find(Bench &b, int pid, double patience_ms) {
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (pidfd < 0) return std::perror("pidfd_open"), void();
  auto process = std::make_unique<Process>(*b.own, pid, pidfd, rm::kClientBase, monotonicNs());
  const uint64_t begin = monotonicNs();
  unsigned steps = 0;
  double worst_ms = 0;
  while (process->state() == Process::State::kLooking &&
         static_cast<double>(monotonicNs() - begin) < patience_ms * 1e6) {
    const uint64_t step = monotonicNs();
    process->step(step);
    worst_ms = std::max(worst_ms, static_cast<double>(monotonicNs() - step) / 1e6);
    steps++;
    sleepMs(10);
  }
  std::printf("pid %d: state %d %s after %.1f ms, %u steps, worst %.1f ms, %" PRIu64
              " probes, client %x subdevice %x\n",
              pid, static_cast<int>(process->state()), process->why().c_str(),
              static_cast<double>(monotonicNs() - begin) / 1e6, steps, worst_ms, process->probes(),
              process->foreign().client, process->foreign().subdevice);
  for (const Tsg &tsg : process->tsgs())
    std::printf("  tsg %x id %u runlist %x channels %zu first %x token %x\n", tsg.handle, tsg.id,
                tsg.runlist(), tsg.channels.size(), tsg.channels[0].handle, tsg.channels[0].token);
  b.processes.push_back(std::move(process));
}

void slices(Bench &b) {
  for (size_t i = 0; i < b.processes.size(); i++)
    for (const Tsg &tsg : b.at(i).tsgs()) {
      const Foreign of = b.at(i).foreign();
      const auto found = b.controls->timesliceUs(of, tsg);
      if (!found) {
        std::printf("  get: %s\n", found.error().sentence.c_str());
        continue;
      }
      std::printf("  tsg %x slice %" PRIu64 " us\n", tsg.handle, *found);
      if (!tsg.compute()) continue;
      timed("set 4321 us", [&] { return b.controls->setTimeslice(of, tsg, 4321); });
      const auto now = b.controls->timesliceUs(of, tsg);
      std::printf("  reads back %" PRIu64 "\n", now ? *now : 0);
      timed("set as found", [&] { return b.controls->setTimeslice(of, tsg, *found); });
      timed("preempt", [&] { return b.controls->preempt(of, tsg); });
    }
}

struct Tracer {
  std::unique_ptr<Trace> trace;
  std::vector<Switch> records;
  std::map<uint32_t, double> held_us;
  std::map<uint32_t, unsigned> visits;
  uint64_t started_ns = 0;
  uint32_t holder = 0;

  explicit Tracer(RmClient &own) {
    auto made = Trace::open(own);
    if (!made)
      std::printf("  trace: %s\n", made.error().text().c_str());
    else
      trace = std::move(*made);
  }
  void run(double ms, double flush_ms, bool print) {
    if (!trace) return;
    const uint64_t begin = monotonicNs();
    uint64_t flush_ns = 0;
    unsigned flushes = 0;
    while (static_cast<double>(monotonicNs() - begin) < ms * 1e6) {
      sleepMs(flush_ms);
      const RmOutcome out = trace->flush();
      if (!out.ok()) std::printf("  %s\n", out.text("flush").c_str());
      flush_ns += out.took_ns;
      flushes++;
      take(print);
    }
    std::printf("  %.0f ms, flush %.0f us mean, lost %" PRIu64 "\n", ms,
                static_cast<double>(flush_ns) / 1e3 / std::max(1u, flushes), trace->lost());
  }
  void take(bool print) {
    records.clear();
    trace->read(records);
    for (const Switch &s : records) {
      if (print)
        std::printf("  %s pid %u context %x at %" PRIu64 ".%03" PRIu64 " us\n",
                    s.start ? "START" : "END  ", s.pid, s.context, s.time_ns / 1000 % 100000000,
                    s.time_ns % 1000);
      if (s.start) {
        started_ns = s.time_ns;
        holder = s.pid;
      } else if (started_ns) {
        held_us[s.pid] += static_cast<double>(s.time_ns - started_ns) / 1e3;
        visits[s.pid]++;
      }
    }
  }
  void report(double ms) {
    for (const auto &[pid, us] : held_us)
      std::printf("  pid %u: %u visits, held %.4f, less 120 us a visit %.4f\n", pid, visits[pid],
                  us / ms / 1e3, (us - 120.0 * visits[pid]) / ms / 1e3);
  }
};

void gate(Bench &b) {
  Tracer tracer(*b.own);
  const Tsg *tsg = b.compute(0);
  if (!tsg) return;
  for (int i = 0; i < 3; i++) {
    timed("disable", [&] { return b.controls->disable(channelsOf(b.at(0).foreign(), *tsg)); });
    sleepMs(50);
    timed("enable and ring",
          [&] { return b.controls->enable(channelsOf(b.at(0).foreign(), *tsg)); });
    sleepMs(50);
  }
  tracer.run(5, 5, true);
}

// Does the control work from a client that owns neither the channels nor the listed client?
void ownGate(Bench &b) {
  Tracer tracer(*b.own);
  rm::DisableChannels params{};
  for (size_t i = 0; i < b.processes.size(); i++)
    if (const Tsg *tsg = b.compute(i))
      for (const Channel &channel : tsg->channels) {
        params.clients[params.count] = b.at(i).foreign().client;
        params.channels[params.count++] = channel.handle;
      }
  for (const uint8_t disable : {1, 0}) {
    params.disable = disable;
    const RmOutcome out =
        b.own->control(b.own->subdevice(), rm::kCtrlFifoDisableChannels, &params, sizeof(params));
    std::printf("  %s %u channels of %zu processes from the own client: %s (%.0f us)\n",
                disable ? "disable" : "enable", params.count, b.processes.size(),
                out.ok() ? "ok" : out.text("").c_str(), static_cast<double>(out.took_ns) / 1e3);
    sleepMs(disable ? 40 : 1);
  }
  for (size_t i = 0; i < b.processes.size(); i++)
    if (const Tsg *tsg = b.compute(i))
      timed("enable again",
            [&] { return b.controls->enable(channelsOf(b.at(i).foreign(), *tsg)); });
  sleepMs(20);
  tracer.run(5, 5, true);
}

// What does a lone tenant's PREEMPT show, when it works and when it does not?
void preempts(Bench &b, int count, double every_ms, bool print) {
  Tracer tracer(*b.own);
  const Tsg *tsg = b.compute(0);
  if (!tsg || !tracer.trace) return;
  double us = 0;
  for (int i = 0; i < count; i++) {
    const uint64_t begin = monotonicNs();
    const auto done = b.controls->preempt(b.at(0).foreign(), *tsg);
    us += static_cast<double>(monotonicNs() - begin) / 1e3;
    if (!done) std::printf("  %s\n", done.error().sentence.c_str());
    sleepMs(every_ms);
    if (print) std::printf("  preempt %d\n", i);
    tracer.trace->flush();
    tracer.take(print);
  }
  tracer.run(20, 10, print);
  tracer.report(count * every_ms);
  std::printf("  %d preempts, %.0f us mean\n", count, us / count);
}

// How late are records, and by how far is their time off the card's? A working tenant is taken off,
// and what the flushes after that bring is compared with the instants before and after the control.
void late(Bench &b, int count) {
  const Tsg *tsg = b.compute(0);
  auto made = Trace::open(*b.own);
  if (!tsg || !made) return;
  Trace &trace = **made;
  constexpr double kAfterMs[] = {0, 0.1, 0.2, 0.5, 1, 2, 5};
  std::vector<Switch> records;
  const auto us = [](uint64_t at, uint64_t from) {
    return static_cast<double>(static_cast<int64_t>(at - from)) / 1e3;
  };
  for (int i = 0; i < count; i++) {
    sleepMs(5);
    trace.flush();
    trace.read(records);
    records.clear();
    const uint64_t begin = b.own->timeNs();
    const auto done = b.controls->preempt(b.at(0).foreign(), *tsg);
    std::printf("  preempt %s, back after %.1f us\n", done ? "ok" : done.error().sentence.c_str(),
                us(b.own->timeNs(), begin));
    for (const double ms : kAfterMs) {
      if (ms > 0) sleepMs(ms);
      const uint64_t flushed = b.own->timeNs();
      trace.flush();
      records.clear();
      trace.read(records);
      for (const Switch &s : records)
        std::printf("    %s pid %u at %.1f us, by the flush of %.1f us\n",
                    s.start ? "START" : "END  ", s.pid, us(s.time_ns, begin), us(flushed, begin));
    }
  }
}

}  // namespace

int main(int argc, char **argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  unsigned minor = 0;
  int at = 1;
  if (argc > 2 && !std::strcmp(argv[1], "--minor"))
    minor = static_cast<unsigned>(std::atoi(argv[2])), at = 3;
  if (argc <= at) return std::puts("usage: hw_probe [--minor N] SECTION PID..."), 2;
  const std::string section = argv[at++];
  Bench b;
  std::printf("== %s\n", section.c_str());
  if (!open(b, minor)) return 1;
  for (; at < argc; at++) find(b, std::atoi(argv[at]), section == "start" ? 8000 : 2000);
  if (section == "slices") slices(b);
  if (section == "trace") {
    Tracer tracer(*b.own);
    tracer.run(1000, 10, false);
    tracer.report(1000);
  }
  if (section == "gate") gate(b);
  if (section == "owngate") ownGate(b);
  if (section == "idle") preempts(b, 4, 30, true);
  if (section == "late") late(b, 8);
  if (section == "busy") preempts(b, 100, 20, false);
  return 0;
}
