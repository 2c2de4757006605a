// SPDX-License-Identifier: GPL-2.0
// qgpuctl: the verbs, one file each, and what an error is as an exit code.
#include <cstdio>
#include <string_view>

#include "verb.hpp"

int main(int argc, char **argv) {
  using namespace qgpu::ctl;
  CLI::App app;
  Context context;
  app.set_version_flag("--version", "qgpuctl " QGPU_VERSION);
  defineProgram(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::RequiredError &error) {
    // CLI11 says of a misspelt verb only that a subcommand is required.
    const bool is_verb = std::string_view(error.what()).find("ubcommand") != std::string_view::npos;
    if (const auto unknown = app.remaining(true); is_verb && !unknown.empty()) {
      std::fprintf(stderr, "qgpuctl: there is no \"%s\" here; see qgpuctl --help\n",
                   unknown.front().c_str());
      return kExitUsage;
    }
    if (const auto verbs = app.get_subcommands(); !is_verb && !verbs.empty()) {
      const std::string name = verbs.front()->get_name();
      std::fprintf(stderr, "qgpuctl: %s: %s; see qgpuctl %s --help\n", name.c_str(), error.what(),
                   name.c_str());
      return kExitUsage;
    }
    app.exit(error);
    return kExitUsage;
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "qgpuctl: %s\n", error.what());
    return kExitFailed;
  }
  return context.exit_code;
}
