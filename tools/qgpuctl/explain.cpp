// SPDX-License-Identifier: GPL-2.0
// qgpuctl explain TENANT: what it was promised, what it got, and why it is less when it is.
#include <cstdio>
#include <memory>

#include "connection.hpp"
#include "explanation.hpp"
#include "verb.hpp"

namespace qgpu::ctl {

void addExplain(CLI::App &app, Context &context) {
  struct Options {
    std::string tenant;
    std::string card;
    bool json = false;
  };
  auto *verb = app.add_subcommand(
      "explain", "what a tenant was promised, what it got, and why it is less when it is");
  auto options = std::make_shared<Options>();
  verb->add_option("TENANT", options->tenant, "a tenant")->required();
  verb->add_option("--card", options->card, "on this card only: uuid or index");
  verb->add_flag("--json", options->json, "everything, for programs: shares in ppm, times in ns");
  verb->footer("example: qgpuctl explain web --card 0");
  verb->callback([&context, options] {
    auto status = readStatus(context.socket);
    if (!status) {
      context.exit_code = complain(status.error());
      return;
    }
    auto explanation = explanationOf(*status, options->tenant, options->card);
    if (!explanation) {
      context.exit_code = complain(explanation.error());
      return;
    }
    std::string text = options->json ? explanation->dump(2) + "\n" : explanationText(*explanation);
    std::fputs(text.c_str(), stdout);
  });
}

}  // namespace qgpu::ctl
