// SPDX-License-Identifier: GPL-2.0
// qgpuctl explain: why each tenant got what it got; of one, what it was promised and the figures.
#include <cstdio>
#include <memory>

#include "connection.hpp"
#include "explanation.hpp"
#include "verb.hpp"

namespace qgpu::ctl {

namespace {

Result<std::string> textOf(const Json &status, const std::string &tenant, const std::string &card,
                           bool json) {
  if (tenant.empty()) return whysText(status, card);
  auto explanation = explanationOf(status, tenant, card);
  if (!explanation) return explanation.error();
  return json ? explanation->dump(2) + "\n" : explanationText(*explanation);
}

}  // namespace

void addExplain(CLI::App &app, Context &context) {
  struct Options {
    std::string tenant;
    std::string card;
    bool json = false;
  };
  auto *verb = app.add_subcommand(
      "explain", "what a tenant was promised, what it got, and why it is less when it is");
  auto options = std::make_shared<Options>();
  auto *tenant = verb->add_option("TENANT", options->tenant, "a tenant; without: all, a line each");
  verb->add_option("--card", options->card, "on this card only: uuid or index");
  verb->add_flag("--json", options->json, "everything, for programs: shares in ppm, times in ns")
      ->needs(tenant);
  verb->footer("example: qgpuctl explain web --card 0");
  verb->callback([&context, options] {
    auto status = readStatus(context.socket);
    if (!status) {
      context.exit_code = complain(status.error());
      return;
    }
    const auto out = textOf(*status, options->tenant, options->card, options->json);
    if (out)
      std::fputs(out->c_str(), stdout);
    else
      context.exit_code = complain(out.error());
  });
}

}  // namespace qgpu::ctl
