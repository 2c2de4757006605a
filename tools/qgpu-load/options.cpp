// SPDX-License-Identifier: GPL-2.0
// The command line of qgpu-load: units are microseconds and seconds here and nowhere else.
#include "options.hpp"

#include <CLI/CLI.hpp>
#include <map>

namespace qgpu {
namespace {

const std::map<std::string, Preemption> kPreemptions = {
    {"wfi", Preemption::kWfi}, {"cta", Preemption::kCta}, {"cilp", Preemption::kCilp}};

uint64_t toNs(double value, double unit_ns) { return static_cast<uint64_t>(value * unit_ns + 0.5); }

}  // namespace

uint64_t batchKernelNs(unsigned batch) { return 10'000 + uint64_t{20'000} * batch; }

uint64_t batchHostNs() { return 1'000'000; }

std::string preemptionName(Preemption preemption) {
  for (const auto &[name, value] : kPreemptions)
    if (value == preemption) return name;
  return "?";
}

std::optional<int> parseOptions(int argc, char **argv, Options &options) {
  CLI::App app{
      "Makes load on a simulated card as a tenant would, through the driver's device nodes, and\n"
      "prints what it got. Kernels are kept outstanding up to a depth; the doorbell is rung once\n"
      "per refill, at most 1,000 times a second, and the program sleeps in between."};
  double kernel_us = 1000, think_us = 0, seconds = 10, warmup = 0.3;
  unsigned batch = 0;

  app.add_option("--card", options.card, "card number")->check(CLI::Range(0u, 7u));
  auto *kernel = app.add_option("--kernel-us", kernel_us, "length of a kernel")
                     ->check(CLI::Range(0.001, 1e9))
                     ->capture_default_str();
  auto *think = app.add_option("--think-us", think_us,
                               "host time to prepare one kernel, after a place is free for it and\n"
                               "the kernel before it is prepared")
                    ->check(CLI::Range(0.0, 1e9))
                    ->capture_default_str();
  auto *batch_option =
      app.add_option("--batch", batch,
                     "items per kernel: kernel length = 10 us + 20 us per item, host time = 1 ms")
          ->check(CLI::Range(1u, 65536u))
          ->excludes(kernel)
          ->excludes(think);
  app.add_option("--depth", options.depth, "kernels outstanding per TSG")
      ->check(CLI::Range(1u, 4096u))
      ->capture_default_str();
  app.add_option("--seconds", seconds, "how long to measure")
      ->check(CLI::Range(0.001, 1e6))
      ->capture_default_str();
  app.add_option("--warmup", warmup, "seconds of load before that")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--preemption", options.preemption, "wfi, cta or cilp (default)")
      ->transform(CLI::CheckedTransformer(kPreemptions, CLI::ignore_case));
  app.add_option("--tsgs", options.tsgs, "TSGs with one channel each")
      ->check(CLI::Range(1u, 64u))
      ->capture_default_str();
  app.add_flag("--json", options.json, "print one JSON object");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) ? 2 : 0;
  }
  options.kernel_ns = toNs(kernel_us, 1e3);
  options.host_ns = toNs(think_us, 1e3);
  options.measured_ns = toNs(seconds, 1e9);
  options.warmup_ns = toNs(warmup, 1e9);
  if (*batch_option) {
    options.batch = batch;
    options.kernel_ns = batchKernelNs(batch);
    options.host_ns = batchHostNs();
  }
  return std::nullopt;
}

}  // namespace qgpu
