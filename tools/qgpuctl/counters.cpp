// SPDX-License-Identifier: GPL-2.0
// qgpuctl counters: the ledger as the cards counted it, to the nanosecond; no rates.
#include <cstdio>
#include <memory>

#include "connection.hpp"
#include "screen.hpp"
#include "verb.hpp"

namespace qgpu::ctl {

void addCounters(CLI::App &app, Context &context) {
  auto *verb = app.add_subcommand("counters", "what was counted since counting began, in ns");
  auto json = std::make_shared<bool>(false);
  verb->add_flag("--json", *json, "the cards with their counters, for programs");
  verb->footer("example: qgpuctl counters");
  verb->callback([&context, json] {
    auto status = readStatus(context.socket);
    if (!status) {
      context.exit_code = complain(status.error());
      return;
    }
    std::string text = *json ? countersOf(*status).dump(2) + "\n" : countersText(*status);
    std::fputs(text.c_str(), stdout);
  });
}

}  // namespace qgpu::ctl
