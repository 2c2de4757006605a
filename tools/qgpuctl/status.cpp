// SPDX-License-Identifier: GPL-2.0
// qgpuctl status: cards and tenants, asked, entitled to and measured.
#include <cstdio>
#include <memory>

#include "connection.hpp"
#include "screen.hpp"
#include "verb.hpp"

namespace qgpu::ctl {

void addStatus(CLI::App &app, Context &context) {
  auto *verb = app.add_subcommand("status", "cards and tenants: asked, entitled to, measured");
  auto json = std::make_shared<bool>(false);
  verb->add_flag("--json", *json, "everything, for programs: shares in ppm, times in ns");
  verb->footer("example: qgpuctl status");
  verb->callback([&context, json] {
    auto status = readStatus(context.socket);
    if (!status) {
      context.exit_code = complain(status.error());
      return;
    }
    std::string text = *json ? status->dump(2) + "\n" : statusText(*status);
    std::fputs(text.c_str(), stdout);
  });
}

}  // namespace qgpu::ctl
