// SPDX-License-Identifier: GPL-2.0
// qgpuctl: the verbs, one file each, and what an error is as an exit code.
#include <cstdio>
#include <string_view>

#include "verb.hpp"

namespace {

using namespace qgpu::ctl;

// One sentence, and where the help is; without any verb the help itself.
int complainOfUsage(const CLI::App &app, const CLI::ParseError &error) {
  // CLI11 says of a misspelt verb only that a subcommand is required.
  const bool lacks_verb =
      std::string_view(error.what()).find("ubcommand") != std::string_view::npos;
  const auto unknown = app.remaining(true);
  const auto verbs = app.get_subcommands();
  const std::string name = verbs.empty() ? "" : verbs.front()->get_name() + ": ";
  if (lacks_verb && !unknown.empty())
    std::fprintf(stderr, "qgpuctl: there is no \"%s\" here; see qgpuctl --help\n",
                 unknown.front().c_str());
  else if (lacks_verb)
    std::fputs(app.help().c_str(), stderr);
  else
    std::fprintf(stderr, "qgpuctl: %s%s; see qgpuctl %s--help\n", name.c_str(), error.what(),
                 verbs.empty() ? "" : (verbs.front()->get_name() + " ").c_str());
  return kExitUsage;
}

}  // namespace

int main(int argc, char **argv) {
  CLI::App app;
  Context context;
  app.set_version_flag("--version", "qgpuctl " QGPU_VERSION);
  defineProgram(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return error.get_exit_code() == 0 ? app.exit(error) : complainOfUsage(app, error);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "qgpuctl: %s\n", error.what());
    return kExitFailed;
  }
  return context.exit_code;
}
