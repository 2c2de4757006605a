// SPDX-License-Identifier: GPL-2.0
//
// policies.cpp - our rule beside what else there is, one table of workloads, in virtual time
//
// Every workload under every policy (policies/*.cpp, one each) on the chip model, judged by the
// chip's own record (judge.hpp). Columns: worst share error of any tenant over every window of
// 100 ms, 1 s and 10 s (and up to 3 % longer), in percentage points against the entitled shares of
// those who have work;
// loss = run time that was missing for those who had work; wait from a wake to running (P50, P99,
// longest), of all who sleep in that workload; starved = longest time with work and not running.
//
// Arguments: --points FILE (one JSON object a line), --trace FILE and --speed-up X (arrivals),
// --seed N, --only TEXT (workloads whose name has it).
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "judge.hpp"
#include "policies/machine.hpp"
#include "policies/policy.hpp"
#include "policies/programs.hpp"
#include "quantile.hpp"

#ifndef QGPU_BENCH_DATA
#error "where the excerpt of arrival times lies"
#endif

namespace {

using namespace qgpu;
using namespace qgpu::bench;

struct Options {
  std::string trace = QGPU_BENCH_DATA "/azure-llm-2023-code-excerpt.csv";
  std::string points, only;
  double speed_up = 1;
  uint64_t seed = 1;
};

struct NamedPolicy {
  const char *name;
  std::unique_ptr<Policy> (*make)();
};

const NamedPolicy kPolicies[] = {
    {"qgpu", makeOurRule},
    {"round robin 2048", [] { return makeRoundRobin(2048); }},
    {"round robin 1024", [] { return makeRoundRobin(1024); }},
    {"weighted slices", makeWeightedSlices},
    {"GRID equal strict", [] { return makeGrid(GridShare::kEqual, GridOrder::kStrict); }},
    {"GRID equal least", [] { return makeGrid(GridShare::kEqual, GridOrder::kLeastTime); }},
    {"GRID fixed strict", [] { return makeGrid(GridShare::kFixed, GridOrder::kStrict); }},
    {"GRID fixed least", [] { return makeGrid(GridShare::kFixed, GridOrder::kLeastTime); }},
    {"token bucket", makeTokenBucket},
    {"stride, kernels", makeStride},
    {"slice swap", makeSliceSwap},
};

struct Result {
  std::optional<std::string> refused;
  double error_pp[3] = {};
  double loss_percent = 0;
  double wait_p50_ms = 0, wait_p99_ms = 0, wait_max_ms = 0;
  size_t wakes = 0;
  double starved_ms = 0;
};

constexpr uint64_t kWindows[] = {100 * kMilli, kSecond, 10 * kSecond};
// Each up to 3 % longer too, so that no rotation is flattered by fitting in exactly.
constexpr int kStretches = 4;
constexpr const char *kWindowNames[] = {"100ms", "1s", "10s"};

Entitled entitledBy(Promise promise) {
  switch (promise) {
    case Promise::kWeights:
      return Entitled::kByWeight;
    case Promise::kOnline:
      return Entitled::kOnline;
    case Promise::kFixed:
    case Promise::kEqual:
      return Entitled::kFixed;
  }
  throw std::logic_error("promise");
}

// What tenants with work could have had together.
double deliverableNs(const std::vector<Claimant> &claimants, Entitled how, uint64_t from,
                     uint64_t to) {
  double ns = 0;
  if (how == Entitled::kFixed) {
    for (const Claimant &c : claimants)
      ns += c.asked * static_cast<double>(lengthWithin(c.awake, from, to));
    return ns;
  }
  Spans all;
  for (const Claimant &c : claimants) all.insert(all.end(), c.awake.begin(), c.awake.end());
  std::sort(all.begin(), all.end(),
            [](const Span &a, const Span &b) { return a.from_ns < b.from_ns; });
  return static_cast<double>(lengthWithin(closeGaps(all, 0), from, to));
}

Result judge(Machine &machine, uint64_t from, uint64_t to) {
  const Entitled how = entitledBy(machine.workload().promise);
  const scenario::Record record = machine.world().record();
  const std::vector<Spans> ran = machine.ran();
  const std::vector<uint64_t> edges = edgesOf(ran);
  std::vector<Claimant> claimants;
  for (auto &tenant : machine.tenants())
    claimants.push_back(
        {tenant->share(), tenant->online(), closeGaps(tenant->work(to), kHostGapNs)});
  const std::vector<Steps> steps = entitlements(claimants, how);

  Result result;
  std::vector<double> all_waits;
  for (auto &tenant : machine.tenants()) {
    const size_t i = tenant->index();
    const Case party(record, i, edges, steps[i], how, from, to);
    for (size_t w = 0; w < std::size(kWindows); w++)
      for (int k = 0; k <= kStretches; k++)
        result.error_pp[w] =
            std::max(result.error_pp[w],
                     party.worstErrorPp(kWindows[w] + kWindows[w] * 3 / 100 * k / kStretches));
    const auto own = waits(ran[i], tenant->wakes(), from, to);
    all_waits.insert(all_waits.end(), own.begin(), own.end());
    result.starved_ms =
        std::max(result.starved_ms,
                 static_cast<double>(starvationNs(record, i, tenant->work(to), from, to)) / 1e6);
  }
  const double delivered = static_cast<double>(record.delivered(from, to));
  result.loss_percent =
      std::max(0.0, 100 * (1 - delivered / deliverableNs(claimants, how, from, to)));
  result.wakes = all_waits.size();
  result.wait_p50_ms = quantile(all_waits, 0.5) / 1e6;
  result.wait_p99_ms = quantile(all_waits, 0.99) / 1e6;
  result.wait_max_ms = quantile(all_waits, 1) / 1e6;
  return result;
}

Result run(const Workload &workload, Policy &policy, uint64_t seed) {
  Result result;
  result.refused = policy.refuses(workload);
  if (result.refused) return result;
  Machine machine(workload, policy, seed);
  policy.begin(machine);
  for (auto &tenant : machine.tenants()) tenant->start();
  const uint64_t from = machine.nowNs() + workload.settle_ns;
  policy.runTo(machine, from);
  policy.runTo(machine, from + workload.watch_ns);
  if (!machine.card().protocolErrors().empty())
    throw std::runtime_error(machine.card().protocolErrors().front());
  return judge(machine, from, from + workload.watch_ns);
}

/* ---- the workloads ---- */

constexpr uint64_t kSettleNs = 3 * kSecond, kWatchNs = 12 * kSecond;

Workload workload(const std::string &name, Promise promise, std::vector<TenantAsk> tenants,
                  bool saturating_cuttable = false) {
  return {name, promise, std::move(tenants), kSettleNs, kWatchNs, saturating_cuttable};
}

TenantAsk ask(double share, MakeProgram program) { return {share, false, std::move(program)}; }
TenantAsk online(double share, MakeProgram program) { return {share, true, std::move(program)}; }

std::vector<Workload> workloads(const Options &options) {
  const fakes::Kernel ms{.duration_ns = kMilli};
  const auto trace = std::make_shared<const std::vector<Request>>(readTrace(options.trace));
  const MakeProgram server = serve(trace, {.speed_up = options.speed_up});
  const MakeProgram training = queued({.duration_ns = 2 * kMilli});
  std::vector<Workload> all;

  for (const int ratio : {1, 2, 9})
    for (const auto &[kernel_name, kernel_ns] :
         {std::pair{"10 us", 10 * kMicro}, {"1 ms", kMilli}, {"50 ms", 50 * kMilli}}) {
      const double share = static_cast<double>(ratio) / (ratio + 1);
      const MakeProgram program = queued({.duration_ns = kernel_ns});
      all.push_back(workload(std::to_string(ratio) + ":1, kernels of " + kernel_name,
                             Promise::kWeights, {ask(share, program), ask(1 - share, program)},
                             true));
    }
  const auto equal = [&](size_t n) {
    return std::vector<TenantAsk>(n, ask(1.0 / static_cast<double>(n), queued(ms)));
  };
  all.push_back(workload("8 equal", Promise::kWeights, equal(8), true));
  all.push_back(workload("64 equal", Promise::kWeights, equal(64), true));

  all.push_back(workload("30 % fixed, alone", Promise::kFixed, {ask(0.3, queued(ms))}));
  std::vector<TenantAsk> company = {ask(0.3, queued(ms))};
  for (int i = 0; i < 7; i++) company.push_back(ask(0.09, queued(ms)));
  all.push_back(workload("30 % fixed, 7 of 9 %", Promise::kFixed, company));
  all.push_back(
      workload("equal share, 2 of 4 busy", Promise::kEqual,
               {ask(0.25, queued(ms)), ask(0.25, queued(ms)), ask(0.25, {}), ask(0.25, {})}));

  all.push_back(workload("inference 1:1 training", Promise::kWeights,
                         {ask(0.5, server), ask(0.5, training)}));
  all.push_back(workload("inference online, training", Promise::kOnline,
                         {online(0.9, server), ask(0.1, training)}));
  all.push_back(workload("inference online, 7 others", Promise::kOnline,
                         {online(0.9, server), ask(0.1 / 7, training), ask(0.1 / 7, training),
                          ask(0.1 / 7, training), ask(0.1 / 7, training), ask(0.1 / 7, training),
                          ask(0.1 / 7, training), ask(0.1 / 7, training)}));
  all.push_back(workload("launch-and-wait 30:70 queue", Promise::kWeights,
                         {ask(0.3, launchAndWait(ms, 50 * kMicro)), ask(0.7, queued(ms))}));
  all.push_back(workload(
      "bursts 1:1 queue", Promise::kWeights,
      {ask(0.5, bursts({.duration_ns = 200 * kMicro}, 100, 200 * kMilli)), ask(0.5, queued(ms))}));

  for (const auto &[kernel_name, kernel_ns] :
       {std::pair{"50 ms", 50 * kMilli}, {"500 ms", 500 * kMilli}}) {
    Workload w =
        workload(std::string("uncuttable ") + kernel_name + " 1:1 queue", Promise::kWeights,
                 {ask(0.5, queued({.duration_ns = kernel_ns, .preemption = CHIP_WFI})),
                  ask(0.5, queued(ms))});
    w.watch_ns = 40 * kSecond;
    all.push_back(w);
  }
  return all;
}

/* ---- output ---- */

void printRow(const char *policy, const Result &r) {
  if (r.refused) {
    std::printf("  %-18s %s\n", policy, r.refused->c_str());
    return;
  }
  std::printf("  %-18s %8.2f %8.2f %8.2f  %7.2f  ", policy, r.error_pp[0], r.error_pp[1],
              r.error_pp[2], r.loss_percent);
  if (r.wakes)
    std::printf("%8.2f %8.2f %8.2f", r.wait_p50_ms, r.wait_p99_ms, r.wait_max_ms);
  else
    std::printf("%8s %8s %8s", "-", "-", "-");
  std::printf("  %9.2f\n", r.starved_ms);
}

void writePoint(std::FILE *out, const Workload &workload, const char *policy, const Result &r) {
  std::fprintf(out, "{\"workload\": \"%s\", \"policy\": \"%s\"", workload.name.c_str(), policy);
  if (r.refused) {
    std::fprintf(out, ", \"refused\": \"%s\"}\n", r.refused->c_str());
    return;
  }
  for (size_t w = 0; w < std::size(kWindows); w++)
    std::fprintf(out, ", \"error_%s_pp\": %.4f", kWindowNames[w], r.error_pp[w]);
  std::fprintf(out, ", \"loss_percent\": %.3f, \"starved_ms\": %.3f", r.loss_percent, r.starved_ms);
  if (r.wakes)
    std::fprintf(out, ", \"wait_p50_ms\": %.3f, \"wait_p99_ms\": %.3f, \"wait_max_ms\": %.3f",
                 r.wait_p50_ms, r.wait_p99_ms, r.wait_max_ms);
  std::fprintf(out, "}\n");
}

Options parse(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc) throw std::runtime_error(name + ": a value is missing");
    const char *value = argv[i + 1];
    if (name == "--trace")
      options.trace = value;
    else if (name == "--points")
      options.points = value;
    else if (name == "--only")
      options.only = value;
    else if (name == "--speed-up")
      options.speed_up = std::atof(value);
    else if (name == "--seed")
      options.seed = std::strtoull(value, nullptr, 0);
    else
      throw std::runtime_error(name + ": unknown");
  }
  if (!(options.speed_up > 0)) throw std::runtime_error("--speed-up: above 0");
  return options;
}

int runAll(const Options &options) {
  std::FILE *points = nullptr;
  if (!options.points.empty() && !(points = std::fopen(options.points.c_str(), "w")))
    throw std::runtime_error(options.points + ": cannot be written");
  std::printf("seed %" PRIu64 ", arrivals x %g\n", options.seed, options.speed_up);
  std::printf("%-20s %26s  %7s  %26s  %9s\n", "", "worst share error, pp", "loss", "wait, ms",
              "starved");
  std::printf("%-20s %8s %8s %8s  %7s  %8s %8s %8s  %9s\n", "", "100 ms", "1 s", "10 s", "%", "P50",
              "P99", "max", "ms");
  double worst = 0;
  for (const Workload &workload : workloads(options)) {
    if (workload.name.find(options.only) == std::string::npos) continue;
    std::printf("%s\n", workload.name.c_str());
    for (const NamedPolicy &named : kPolicies) {
      const auto policy = named.make();
      const Result result = run(workload, *policy, options.seed);
      printRow(named.name, result);
      if (points) writePoint(points, workload, named.name, result);
      if (&named == kPolicies && workload.saturating_cuttable)
        worst = std::max(worst, result.error_pp[1]);
    }
    std::fflush(stdout);
  }
  if (points) std::fclose(points);
  std::printf("policies: worst=%.3f pp\n", worst);
  return 0;
}

}  // namespace

int main(int argc, char **argv) {
  try {
    return runAll(parse(argc, argv));
  } catch (const std::exception &e) {
    std::fprintf(stderr, "policies: %s\n", e.what());
    return 2;
  }
}
