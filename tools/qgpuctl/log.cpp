// SPDX-License-Identifier: GPL-2.0
// qgpuctl log, qgpuctl trace: who was on the engines.
#include <poll.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <memory>

#include "log_reader.hpp"
#include "snapshot_json.hpp"
#include "timeline.hpp"
#include "verb.hpp"

namespace qgpu::ctl {

namespace {

// A ring of 4096 records lasts for longer, unless visits are shorter than 50 us on average.
constexpr int kPollMs = 200;

struct LogOptions {
  std::string card;
  std::string tenant;
  bool follow = false;
  bool json = false;
};

bool isOf(const netlink::LogOfCard &entry, const LogOptions &options, const TenantNames &names) {
  return options.tenant.empty() ||
         (entry.record.tenant_id && names.of(entry, *entry.record.tenant_id) == options.tenant);
}

void append(std::vector<netlink::LogOfCard> &out, const std::vector<netlink::LogOfCard> &more) {
  out.insert(out.end(), more.begin(), more.end());
}

int printLog(const std::string &socket, const LogOptions &options) {
  auto reader = LogReader::open({.socket = socket}, options.card, options.tenant);
  if (!reader) return complain(reader.error());
  // What is not there at the beginning is a mistake of who asks.
  auto entries = reader->next();
  size_t printed = 0;
  for (uint64_t lost = 0;; entries = reader->follow()) {
    if (!entries) return complain(entries.error());
    // Who follows is told when it is over.
    if (!options.follow) append(*entries, reader->ongoing());
    for (const auto &entry : *entries) {
      if (!isOf(entry, options, reader->names())) continue;
      printed++;
      std::printf("%s\n", options.json ? lineOf(logJson(entry, reader->names())).c_str()
                                       : logText(entry, reader->names()).c_str());
    }
    if (reader->lost() > lost)
      std::fprintf(stderr, "qgpuctl: %llu records were overwritten before they were read\n",
                   static_cast<unsigned long long>(reader->lost() - lost));
    lost = reader->lost();
    std::fflush(stdout);
    if (!options.follow && !printed && !options.json)
      std::fprintf(stderr, "qgpuctl: %s was on no engine in the time that is remembered\n",
                   options.tenant.empty() ? "nobody" : options.tenant.c_str());
    if (!options.follow) return kExitOk;
    poll(nullptr, 0, kPollMs);
  }
}

struct TraceOptions {
  std::string out;
  std::string card;
  double seconds = 0;
};

int writeTrace(const std::string &socket, const TraceOptions &options) {
  auto reader = LogReader::open({.socket = socket}, options.card);
  if (!reader) return complain(reader.error());
  // Opened first: what cannot be written need not be waited for.
  std::ofstream file(options.out);
  if (!file) return complain({errno, "cannot be written", options.out});
  std::vector<netlink::LogOfCard> all;
  const auto until = std::chrono::steady_clock::now() +
                     std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                         std::chrono::duration<double>(options.seconds));
  auto entries = reader->next();
  for (bool is_last = options.seconds == 0;; entries = reader->follow()) {
    if (!entries) return complain(entries.error());
    append(all, *entries);
    if (is_last) break;
    poll(nullptr, 0, kPollMs);
    is_last = std::chrono::steady_clock::now() >= until;
  }
  append(all, reader->ongoing());
  file << lineOf(traceJson(all, reader->names(), reader->lost())) << "\n";
  file.close();
  if (!file) return complain({EIO, "cannot be written", options.out});
  std::printf("%zu records in %s, %llu lost; open it with ui.perfetto.dev or chrome://tracing\n",
              all.size(), options.out.c_str(), static_cast<unsigned long long>(reader->lost()));
  return kExitOk;
}

}  // namespace

void addLog(CLI::App &app, Context &context) {
  auto *verb =
      app.add_subcommand("log", "who was on the engines, from when to when, why no longer");
  auto options = std::make_shared<LogOptions>();
  verb->add_option("--card", options->card, "this card only: uuid or index");
  verb->add_option("--tenant", options->tenant, "this tenant only");
  verb->add_flag("--follow", options->follow, "go on until interrupted");
  verb->add_flag("--json", options->json, "one JSON object a line");
  verb->footer("example: qgpuctl log --card 0 --tenant web");
  verb->callback([&context, options] { context.exit_code = printLog(context.socket, *options); });
}

void addTrace(CLI::App &app, Context &context) {
  auto *verb = app.add_subcommand("trace", "the same as a file for Perfetto or chrome://tracing");
  auto options = std::make_shared<TraceOptions>();
  verb->add_option("--out", options->out, "file to write")->required();
  verb->add_option("--card", options->card, "this card only: uuid or index");
  verb->add_option("--seconds", options->seconds, "so long from now on; 0 = what is remembered")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  verb->footer("example: qgpuctl trace --out qgpu.json --seconds 5");
  verb->callback([&context, options] { context.exit_code = writeTrace(context.socket, *options); });
}

}  // namespace qgpu::ctl
