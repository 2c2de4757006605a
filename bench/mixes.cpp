// SPDX-License-Identifier: GPL-2.0
//
// mixes.cpp - worst share error of random mixes of tenants over 25 s, and the longest wait
//
// 2 ... 10 tenants that always want the card: queued, launch-and-sync, uncuttable, two TSGs, fixed
// shares (tests/scenario/mixes.hpp), on the chip model under burst-share, judged by its own record.
//
// Arguments: --seeds N (1000), --first SEED (1), --no-fixed, --longest MS (kernels that cannot be
// cut: 50), --over PP (list mixes with a worse error: 0.35), --wait MS (and with a longer wait and
// nothing uncuttable: 100).
#include "scenario/mixes.hpp"

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "quantile.hpp"

namespace {

using namespace qgpu;
using namespace qgpu::scenario;

struct Options {
  uint64_t seeds = 1000, first = 1;
  MixOptions mix;
  double over_pp = 0.35, wait_ms = 100;
};

struct Entry {
  uint64_t seed = 0;
  Mix mix;
  MixResult result;
};

Options parse(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; i++) {
    const auto is = [&](const char *name) { return !std::strcmp(argv[i], name); };
    if (is("--no-fixed")) {
      options.mix.fixed = false;
      continue;
    }
    if (i + 1 == argc) throw std::invalid_argument(argv[i]);
    const char *name = argv[i], *value = argv[++i];
    const auto named = [&](const char *n) { return !std::strcmp(name, n); };
    if (named("--seeds"))
      options.seeds = std::stoull(value);
    else if (named("--first"))
      options.first = std::stoull(value);
    else if (named("--longest"))
      options.mix.longest_uncuttable_ns = std::stoull(value) * kMilli;
    else if (named("--over"))
      options.over_pp = std::stod(value);
    else if (named("--wait"))
      options.wait_ms = std::stod(value);
    else
      throw std::invalid_argument(name);
  }
  return options;
}

std::vector<Entry> runAll(const Options &options) {
  std::vector<Entry> entries(options.seeds);
  std::atomic<uint64_t> next{0};
  const auto work = [&] {
    for (uint64_t i; (i = next++) < entries.size();) {
      Entry &entry = entries[i];
      entry.seed = options.first + i;
      entry.mix = drawMix(entry.seed, options.mix);
      entry.result = runMix(entry.mix, entry.seed);
    }
  };
  std::thread other(work);
  work();
  other.join();
  return entries;
}

double waitMs(const Entry &entry) { return static_cast<double>(entry.result.wait_ns) / 1e6; }

void print(const char *why, const Entry &entry) {
  std::printf("%-5s seed %" PRIu64
              ": %+.3f pp of tenant %zu (%+.3f unseen), delivered %.1f %%, wait %.1f ms: %s\n",
              why, entry.seed, entry.result.error_pp, entry.result.member, entry.result.ledger_pp,
              entry.result.delivered, waitMs(entry), textOf(entry.mix).c_str());
}

}  // namespace

int main(int argc, char **argv) try {
  const Options options = parse(argc, argv);
  const std::vector<Entry> entries = runAll(options);
  std::vector<double> errors;
  size_t over = 0, long_waits = 0;
  double wait_ms = 0;
  const Entry *worst = nullptr, *longest = nullptr;
  for (const Entry &entry : entries) {
    const double error = std::abs(entry.result.error_pp);
    errors.push_back(error);
    if (!worst || error > std::abs(worst->result.error_pp)) worst = &entry;
    if (error > options.over_pp) {
      over++;
      print("error", entry);
    }
    if (entry.result.tails_ns) continue;
    if (waitMs(entry) > wait_ms) {
      wait_ms = waitMs(entry);
      longest = &entry;
    }
    if (waitMs(entry) > options.wait_ms) {
      long_waits++;
      print("wait", entry);
    }
  }
  if (!worst) return 2;
  std::printf("%zu mixes over 25 s: P50 %.3f P90 %.3f P99 %.3f pp; %zu beyond %.2f pp\n",
              entries.size(), bench::quantile(errors, 0.5), bench::quantile(errors, 0.9),
              bench::quantile(errors, 0.99), over, options.over_pp);
  print("worst", *worst);
  std::printf("longest wait without uncuttable work: %.1f ms; %zu beyond %.0f ms\n", wait_ms,
              long_waits, options.wait_ms);
  if (longest) print("wait", *longest);
  std::printf("mixes: worst=%.3f pp\n", std::abs(worst->result.error_pp));
  return over || long_waits;
} catch (const std::exception &error) {
  std::fprintf(stderr, "mixes: %s\n", error.what());
  return 2;
}
