// SPDX-License-Identifier: GPL-2.0
// What every verb has in common: where the daemon is, and how an outcome becomes an exit code. Each
// verb is one file that adds its subcommand to the application.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "result.hpp"

namespace qgpu::ctl {

// docs/qgpuctl.md has the table for people.
enum ExitCode {
  kExitOk = 0,
  kExitFailed = 1,
  kExitUsage = 2,
  kExitRefused = 3,  // understood and refused; nothing changed
  kExitNotPermitted = 4,
  kExitUnreachable = 5,  // neither daemon nor driver answers, or the daemon a change needs does not
  kExitNotFound = 6,     // no such tenant or card
  kExitNotStarted = 125,  // run: the shares could not be enforced, the command was not started
  kExitNotExecutable = 126,
  kExitNoCommand = 127,
};

// For people: the table above, and where to look first.
extern const char *const kExitCodesText;
extern const char *const kWhoIsStarvedText;

struct Context {
  std::string socket = "/run/qgpu/qgpud.sock";
  int exit_code = kExitOk;  // set by the verb that ran
};

int exitCodeOf(const Error &error);
// Says it on stderr and gives the code.
int complain(const Error &error);

void addStatus(CLI::App &app, Context &context);
void addCounters(CLI::App &app, Context &context);
void addExplain(CLI::App &app, Context &context);
void addTenant(CLI::App &app, Context &context);
void addPolicy(CLI::App &app, Context &context);
void addTop(CLI::App &app, Context &context);
void addLog(CLI::App &app, Context &context);
void addTrace(CLI::App &app, Context &context);
void addEvents(CLI::App &app, Context &context);
void addPlot(CLI::App &app, Context &context);
void addDoctor(CLI::App &app, Context &context);
void addManual(CLI::App &app, Context &context);
void addRun(CLI::App &app, Context &context);
void addCalibrate(CLI::App &app, Context &context);
void addSurvey(CLI::App &app, Context &context);

// All of them, and --socket before and behind each.
void addVerbs(CLI::App &app, Context &context);
// The whole program but its version.
void defineProgram(CLI::App &app, Context &context);

}  // namespace qgpu::ctl
