// SPDX-License-Identifier: GPL-2.0
// qgpuctl plot: records counters, and the log where it may be read, and has plot.py draw them.
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include "connection.hpp"
#include "screen.hpp"
#include "snapshot_json.hpp"
#include "timeline.hpp"
#include "verb.hpp"

namespace qgpu::ctl {

namespace {

struct PlotOptions {
  std::string out;
  double seconds = 30;
  double interval_s = 0.5;
  std::string script = QGPU_PLOT_SCRIPT;
  std::string python = "/usr/bin/python3";
};

// The log of the module's cards; empty where it may not be read or is none.
class LogTap {
 public:
  LogTap() {
    if (auto wire = netlink::openWire(netlink::WireKind::kRequests))
      client_.emplace(std::move(*wire));
  }

  void take(Json &log, const Json &status) {
    if (!client_) return;
    auto reading = client_->log();
    if (!reading) {
      client_.reset();
      return;
    }
    const TenantNames names(status);
    for (const netlink::LogOfCard &entry : collector_.add(*reading))
      log.push_back(logJson(entry, names));
  }

 private:
  std::optional<netlink::Client> client_;
  LogCollector collector_;
};

Result<Json> record(const std::string &socket, const PlotOptions &options) {
  using Steady = std::chrono::steady_clock;
  const auto until = Steady::now() + std::chrono::duration<double>(options.seconds);
  Json recording = {{"samples", Json::array()}, {"log", Json::array()}};
  LogTap tap;
  for (;;) {
    auto status = askDaemon(socket, {{"verb", "status"}});
    if (!status) return status.error();
    recording["samples"].push_back(countersOf(*status));
    tap.take(recording["log"], *status);
    if (Steady::now() >= until) return recording;
    poll(nullptr, 0, static_cast<int>(options.interval_s * 1000));
  }
}

// Asked before there is anything to wait for.
Result<void> checkPython(const PlotOptions &options) {
  const std::string command =
      shellQuoted(options.python) + " -c 'import matplotlib' </dev/null >/dev/null 2>&1";
  if (std::system(command.c_str()) == 0) return {};
  return Error{EIO,
               "has no matplotlib or is not there; install the Debian package " +
                   std::string("python3-matplotlib"),
               options.python};
}

Result<void> draw(const Json &recording, const PlotOptions &options) {
  const std::string command = "exec " + shellQuoted(options.python) + " " +
                              shellQuoted(options.script) + " " + shellQuoted(options.out);
  FILE *pipe = popen(command.c_str(), "we");
  if (!pipe) return Error{errno, "cannot be started", options.python};
  const std::string text = lineOf(recording);
  // Who draws may end before it has read everything: its exit status tells.
  const auto former = signal(SIGPIPE, SIG_IGN);
  fwrite(text.data(), 1, text.size(), pipe);
  const int status = pclose(pipe);
  signal(SIGPIPE, former);
  if (status == 0) return {};
  return Error{EIO, "was not drawn: python3 (Debian package python3-matplotlib) failed",
               options.out};
}

int plot(const std::string &socket, const PlotOptions &options) {
  if (auto able = checkPython(options); !able) return complain(able.error());
  auto recording = record(socket, options);
  if (!recording) return complain(recording.error());
  if (auto drawn = draw(*recording, options); !drawn) return complain(drawn.error());
  std::printf("%s\n", options.out.c_str());
  return kExitOk;
}

}  // namespace

void addPlot(CLI::App &app, Context &context) {
  auto *verb = app.add_subcommand("plot", "shares and waits of the next seconds as a picture");
  auto options = std::make_shared<PlotOptions>();
  verb->add_option("--out", options->out, "FILE.png or FILE.svg")->required();
  verb->add_option("--seconds", options->seconds, "for how long")
      ->check(CLI::Range(1.0, 86400.0))
      ->capture_default_str();
  verb->add_option("--interval", options->interval_s, "seconds between two samples")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  verb->add_option("--script", options->script, "what draws")->group("");
  verb->add_option("--python", options->python, "what runs it")->group("");
  verb->footer("example: qgpuctl plot --out shares.png --seconds 60\nneeds python3-matplotlib");
  verb->callback([&context, options] { context.exit_code = plot(context.socket, *options); });
}

}  // namespace qgpu::ctl
