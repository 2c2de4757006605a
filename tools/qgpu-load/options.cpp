// SPDX-License-Identifier: GPL-2.0
// The command line of qgpu-load: units are microseconds and seconds here and nowhere else.
#include "options.hpp"

#include <CLI/CLI.hpp>
#include <map>
#include <memory>

namespace qgpu {
namespace {

const std::map<std::string, Preemption> kPreemptions = {
    {"wfi", Preemption::kWfi}, {"cta", Preemption::kCta}, {"cilp", Preemption::kCilp}};

const std::map<std::string, Shape> kShapes = {
    {"kernels", Shape::kKernels}, {"inference", Shape::kInference}, {"training", Shape::kTraining}};

const std::map<std::string, Spacing> kSpacings = {{"poisson", Spacing::kPoisson},
                                                  {"even", Spacing::kEven}};

uint64_t toNs(double value, double unit_ns) { return static_cast<uint64_t>(value * unit_ns + 0.5); }

// Numbers in the command line's units.
struct CudaUnits {
  std::shared_ptr<unsigned> copy_mb = std::make_shared<unsigned>(0);
  std::shared_ptr<unsigned> hog_mb = std::make_shared<unsigned>(0);
  std::shared_ptr<double> sample_ms = std::make_shared<double>(50);
};

CudaUnits addCudaOptions(CLI::App &app, Options &options) {
  CudaUnits units;
  auto *cuda = app.add_flag("--cuda", options.cuda, "a real card, through CUDA");
  app.add_option("--shape", options.shape,
                 "kernels (default), inference or training: steps of many kernels, together as\n"
                 "long as --kernel-us says")
      ->needs(cuda)
      ->transform(CLI::CheckedTransformer(kShapes, CLI::ignore_case));
  app.add_option("--arrivals", options.arrivals_per_s,
                 "kernels a second at random instants, each waited for")
      ->needs(cuda)
      ->check(CLI::Range(0.0, 1e6));
  app.add_option(
         "--spacing", options.spacing,
         "of arrivals: poisson (default), or even: half to one and a half of the mean apart")
      ->needs(cuda)
      ->transform(CLI::CheckedTransformer(kSpacings, CLI::ignore_case));
  app.add_option("--loops-per-us", options.loops_per_us,
                 "speed of the card as printed by a run on it alone; without it, measured")
      ->needs(cuda);
  app.add_option("--seed", options.seed, "of the arrivals")->needs(cuda);
  app.add_option("--copy-mb", *units.copy_mb, "copies of this size to the card instead of kernels")
      ->needs(cuda);
  app.add_option("--hog-mb", *units.hog_mb, "memory to hold on the card")->needs(cuda);
  app.add_option("--sample-ms", *units.sample_ms, "distance of the samples of progress in --json")
      ->needs(cuda)
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str();
  return units;
}

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
      "per refill, at most 1,000 times a second, and the program sleeps in between.\n"
      "With --cuda the same on a real card, with kernels that fill it; at depth 1 each is waited\n"
      "for."};
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
  const CudaUnits units = addCudaOptions(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) ? 2 : 0;
  }
  options.kernel_ns = toNs(kernel_us, 1e3);
  options.host_ns = toNs(think_us, 1e3);
  options.measured_ns = toNs(seconds, 1e9);
  options.warmup_ns = toNs(warmup, 1e9);
  options.copy_bytes = uint64_t{*units.copy_mb} << 20;
  options.hog_bytes = uint64_t{*units.hog_mb} << 20;
  options.sample_ns = toNs(*units.sample_ms, 1e6);
  if (*batch_option) {
    options.batch = batch;
    options.kernel_ns = batchKernelNs(batch);
    options.host_ns = batchHostNs();
  }
  return std::nullopt;
}

}  // namespace qgpu
