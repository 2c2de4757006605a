// SPDX-License-Identifier: GPL-2.0
// qgpuctl: the verbs, one file each, and what an error is as an exit code.
#include <cstdio>

#include "verb.hpp"

int main(int argc, char **argv) {
  using namespace qgpu::ctl;
  CLI::App app{"qgpuctl: shows and changes how this machine's GPUs are shared"};
  Context context;
  app.add_option("--socket", context.socket, "qgpud's control socket")->capture_default_str();
  app.require_subcommand(1);
  app.footer(
      "exit codes: 0 done, 1 failed, 2 usage, 3 refused and nothing changed, 4 not permitted,\n"
      "5 qgpud does not answer, 6 no such tenant or card, 125 run: the command was not started\n\n"
      "example: qgpuctl explain web --card 0");
  addStatus(app, context);
  addExplain(app, context);
  addTenant(app, context);
  addPolicy(app, context);
  addEvents(app, context);
  addRun(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::RequiredError &error) {
    // CLI11 says of a misspelt verb only that a subcommand is required.
    if (const auto unknown = app.remaining(true); !unknown.empty()) {
      std::fprintf(stderr, "qgpuctl: there is no \"%s\" here; see qgpuctl --help\n",
                   unknown.front().c_str());
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
