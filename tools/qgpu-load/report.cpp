// SPDX-License-Identifier: GPL-2.0
// Rates and percentiles from what was measured.
#include "report.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>

namespace qgpu {
namespace {

struct Summary {
  double seconds = 0;
  uint64_t kernels = 0, busy_ns = 0;
  double kernels_per_s = 0, work_per_s = 0;
};

Summary summarise(const Options &options, const Measured &measured) {
  Summary s;
  if (measured.end_ns > measured.begin_ns)
    s.seconds = static_cast<double>(measured.end_ns - measured.begin_ns) / 1e9;
  s.kernels = std::accumulate(measured.kernels.begin(), measured.kernels.end(), uint64_t{0});
  s.busy_ns = s.kernels * options.kernel_ns;
  if (s.seconds > 0) s.kernels_per_s = static_cast<double>(s.kernels) / s.seconds;
  s.work_per_s = s.kernels_per_s * options.batch.value_or(1);
  return s;
}

// The smallest value that at least this part of all values do not exceed; `sorted` is not empty.
double percentileUs(const std::vector<uint64_t> &sorted, double part) {
  const auto rank = static_cast<size_t>(std::ceil(part * static_cast<double>(sorted.size())));
  return static_cast<double>(sorted[std::max<size_t>(rank, 1) - 1]) / 1e3;
}

nlohmann::ordered_json latencyJson(const std::vector<uint64_t> &sorted) {
  return {{"p50", percentileUs(sorted, 0.5)},
          {"p90", percentileUs(sorted, 0.9)},
          {"p99", percentileUs(sorted, 0.99)},
          {"p99.9", percentileUs(sorted, 0.999)},
          {"max", percentileUs(sorted, 1)}};
}

nlohmann::ordered_json toJson(const Options &options, const Measured &measured,
                              const Summary &summary) {
  nlohmann::ordered_json out = {
      {"card", options.card},
      {"kernel_us", static_cast<double>(options.kernel_ns) / 1e3},
      {"think_us", static_cast<double>(options.host_ns) / 1e3},
      {"depth", options.depth},
      {"preemption", preemptionName(options.preemption)},
      {"tsgs", options.tsgs},
      {"begin_ns", measured.begin_ns},
      {"seconds", summary.seconds},
      {"kernels", summary.kernels},
      {"kernels_per_s", summary.kernels_per_s},
      {"work_per_s", summary.work_per_s},
      {"busy_ns", summary.busy_ns},
      {"rings", measured.rings},
      {"kernels_by_tsg", measured.kernels},
  };
  if (options.batch) out["batch"] = *options.batch;
  if (!measured.latencies_ns.empty()) out["latency_us"] = latencyJson(measured.latencies_ns);
  return out;
}

void toText(const Options &options, const Measured &measured, const Summary &summary,
            std::ostream &out) {
  out << std::fixed << std::setprecision(1);
  out << "work      " << summary.work_per_s << (options.batch ? " items/s" : " kernels/s") << '\n';
  out << "kernels   " << summary.kernels << " of " << static_cast<double>(options.kernel_ns) / 1e3
      << " us in " << std::setprecision(3) << summary.seconds << " s\n";
  out << "busy      " << static_cast<double>(summary.busy_ns) / 1e9 << " s\n";
  out << std::setprecision(1);
  if (measured.latencies_ns.empty()) return;
  out << "latency   p50 " << percentileUs(measured.latencies_ns, 0.5) << " us, p90 "
      << percentileUs(measured.latencies_ns, 0.9) << ", p99 "
      << percentileUs(measured.latencies_ns, 0.99) << ", p99.9 "
      << percentileUs(measured.latencies_ns, 0.999) << ", max "
      << percentileUs(measured.latencies_ns, 1) << '\n';
}

double cudaSeconds(const CudaMeasured &measured) {
  return measured.end_ns > measured.begin_ns
             ? static_cast<double>(measured.end_ns - measured.begin_ns) / 1e9
             : 0;
}

nlohmann::ordered_json cudaJson(const Options &options, const CudaMeasured &measured) {
  const double seconds = cudaSeconds(measured);
  nlohmann::ordered_json out = {
      {"card", measured.card},
      {"cuda", measured.cuda_version},
      {"kernel_us", static_cast<double>(options.kernel_ns) / 1e3},
      {"depth", options.depth},
      {"loops_per_us", measured.loops_per_us},
      {"begin_ns", measured.begin_ns},
      {"end_ns", measured.end_ns},
      {"seconds", seconds},
      {"kernels", measured.kernels},
      {"work_us", measured.work_us},
      {"share", seconds > 0 ? measured.work_us / seconds / 1e6 : 0},
  };
  if (measured.copied_bytes)
    out["copied_mb_per_s"] = static_cast<double>(measured.copied_bytes) / seconds / 1e6;
  if (measured.held_bytes) out["held_bytes"] = measured.held_bytes;
  if (!measured.latencies_ns.empty()) {
    out["latency_us"] = latencyJson(measured.latencies_ns);
    out["latencies"] = measured.latencies_ns.size();
  }
  auto &samples = out["samples"] = nlohmann::ordered_json::array();
  for (const CudaSample &s : measured.samples)
    samples.push_back(nlohmann::ordered_json::array({s.time_ns, s.work_us}));
  return out;
}

}  // namespace

void reportCuda(const Options &options, CudaMeasured &measured, std::ostream &out) {
  std::sort(measured.latencies_ns.begin(), measured.latencies_ns.end());
  if (options.json) {
    out << cudaJson(options, measured).dump() << '\n';
    return;
  }
  const double seconds = cudaSeconds(measured);
  out << std::fixed << std::setprecision(4);
  out << "share     " << (seconds > 0 ? measured.work_us / seconds / 1e6 : 0) << " of "
      << measured.card << '\n';
  out << std::setprecision(1);
  out << "kernels   " << measured.kernels << " of " << static_cast<double>(options.kernel_ns) / 1e3
      << " us in " << std::setprecision(3) << seconds << " s (" << measured.loops_per_us
      << " loops/us)\n";
  out << std::setprecision(1);
  if (measured.copied_bytes)
    out << "copied    " << static_cast<double>(measured.copied_bytes) / seconds / 1e6 << " MB/s\n";
  if (measured.latencies_ns.empty()) return;
  const auto &sorted = measured.latencies_ns;
  out << "latency   p50 " << percentileUs(sorted, 0.5) << " us, p90 " << percentileUs(sorted, 0.9)
      << ", p99 " << percentileUs(sorted, 0.99) << ", p99.9 " << percentileUs(sorted, 0.999)
      << ", max " << percentileUs(sorted, 1) << '\n';
}

void report(const Options &options, Measured &measured, std::ostream &out) {
  std::sort(measured.latencies_ns.begin(), measured.latencies_ns.end());
  const Summary summary = summarise(options, measured);
  if (options.json)
    out << toJson(options, measured, summary).dump(2) << '\n';
  else
    toText(options, measured, summary, out);
}

}  // namespace qgpu
