// SPDX-License-Identifier: GPL-2.0
#include "program.hpp"

#include "man_page.hpp"

namespace qgpu {

void defineProgram(CLI::App &app, ProgramOptions &options) {
  app.description("qgpud: keeps the tenants' shares of this machine's GPUs as configured");
  app.add_option("-c,--config", options.file, "configuration file")->capture_default_str();
  app.add_flag("--check", options.check_only,
               "check the configuration, print what each tenant is promised, end");
  app.add_flag("--foreground", options.foreground, "log to stderr even under systemd");
  app.add_option("--man-page", options.man_page, "write this program's page for man(1), end")
      ->group("");
  app.footer(
      "exit codes: 0 ended as asked, 1 the system refused something essential, 2 usage,\n"
      "3 the configuration is refused, 4 another qgpud is running");
}

std::string programManPage(const CLI::App &app) {
  const auto item = [](const std::string &head, const std::string &what) {
    return ".TP\n" + head + "\n" + manEscaped(what) + "\n";
  };
  return manPageOf(
      app, "qgpud", 8,
      "Reads the configuration, computes what each tenant is to have of each card, and keeps the "
      "cards at it: those of qgpu.ko by the module, those with method = \"rm\" by an executor each "
      "(qgpu-exec@UUID.service). However it ends, the cards keep their plans; started again it "
      "reads "
      "what is there and changes only what differs.",
      ".SH SIGNALS\n" +
          item("SIGHUP", "read the configuration anew: all of it is put in force, or nothing") +
          item("SIGTERM, SIGINT", "end") + ".SH FILES\n" +
          item("/etc/qgpu/qgpud.toml",
               "the configuration; config.md in the documentation folder explains every key") +
          item("/var/lib/qgpu/state.json", "what qgpuctl changed at run time") +
          item("/run/qgpu/qgpud.sock", "the control socket, for root and the group qgpu") +
          item("/run/qgpu/qgpud.lock", "one qgpud a machine") +
          ".SH \"SEE ALSO\"\n\\fBqgpuctl\\fR(1)\n");
}

}  // namespace qgpu
