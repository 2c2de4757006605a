// SPDX-License-Identifier: GPL-2.0
#include "verb.hpp"

#include <cerrno>
#include <cstdio>
#include <memory>
#include <vector>

namespace qgpu::ctl {

const char *const kExitCodesText =
    "0 done, 1 failed, 2 usage, 3 refused and nothing changed, 4 not permitted,\n"
    "5 qgpud does not answer, 6 no such tenant or card; of run: 125 the command was not started,\n"
    "126 it cannot be executed, 127 there is no such command";
const char *const kWhoIsStarvedText =
    "Who is starved, and why: `qgpuctl explain` has a line for each tenant, `qgpuctl explain "
    "TENANT`\nall about one, `qgpuctl top` shows it live.";

namespace {

void acceptSocket(CLI::App &verb, Context &context) {
  verb.add_option("--socket", context.socket, "qgpud's control socket")->capture_default_str();
  for (CLI::App *part : verb.get_subcommands({})) acceptSocket(*part, context);
}

int printHelp(CLI::App &app, const std::vector<std::string> &words) {
  CLI::App *at = &app;
  std::string name = "qgpuctl";
  for (const std::string &word : words) {
    const auto found =
        at->get_subcommands([&](const CLI::App *part) { return part->get_name() == word; });
    if (found.empty()) {
      std::fprintf(stderr, "qgpuctl: there is no \"%s\" here; see qgpuctl --help\n", word.c_str());
      return kExitUsage;
    }
    at = found.front();
    name += " " + word;
  }
  std::fputs(at->get_formatter()->make_help(at, name, CLI::AppFormatMode::Normal).c_str(), stdout);
  return kExitOk;
}

}  // namespace

int exitCodeOf(const Error &error) {
  switch (error.err) {
    case EPERM:
    case EACCES:
      return kExitNotPermitted;
    case ENOTCONN:
    case ECONNRESET:
    case ETIMEDOUT:
      return kExitUnreachable;
    case ENOENT:
    case ENODEV:
      return kExitNotFound;
    case EINVAL:
    case ERANGE:
    case ENOSPC:
    case EOPNOTSUPP:
    case EBUSY:
    case EEXIST:
    case ESTALE:
      return kExitRefused;
    default:
      return kExitFailed;
  }
}

int complain(const Error &error) {
  const char *next = error.err == ENOTCONN ? "; start it with: systemctl start qgpud" : "";
  std::fprintf(stderr, "qgpuctl: %s%s\n", error.text().c_str(), next);
  return exitCodeOf(error);
}

void addVerbs(CLI::App &app, Context &context) {
  for (auto *add :
       {addStatus, addTop, addExplain, addCounters, addTenant, addPolicy, addEvents, addLog,
        addTrace, addPlot, addDoctor, addRun, addCalibrate, addSurvey, addManual})
    add(app, context);
  acceptSocket(app, context);
}

void defineProgram(CLI::App &app, Context &context) {
  app.description("qgpuctl: shows and changes how this machine's GPUs are shared");
  app.require_subcommand(1);
  addVerbs(app, context);
  auto words = std::make_shared<std::vector<std::string>>();
  auto *help = app.add_subcommand("help", "this text, or that of a verb");
  help->add_option("VERB", *words, "of this verb: the words that lead to it");
  help->callback([&app, &context, words] { context.exit_code = printHelp(app, *words); });
  // Last: a verb takes over what stands here when it is added.
  app.footer(std::string(kWhoIsStarvedText) + "\n\nexit codes: " + kExitCodesText +
             "\n\n`qgpuctl VERB --help` has an example of each verb.");
}

}  // namespace qgpu::ctl
