// SPDX-License-Identifier: GPL-2.0
// qgpuctl policy CARD POLICY
#include <cstdio>
#include <memory>

#include "connection.hpp"
#include "verb.hpp"

namespace qgpu::ctl {

void addPolicy(CLI::App &app, Context &context) {
  struct Options {
    std::string card;
    std::string policy;
    bool dry_run = false;
  };
  auto *verb = app.add_subcommand(
      "policy", "change a card's policy now; the file's own policy ends the change");
  auto options = std::make_shared<Options>();
  verb->add_option("CARD", options->card, "uuid or index")->required();
  verb->add_option("POLICY", options->policy,
                   "best-effort, equal-share, fixed-share or burst-share")
      ->required();
  verb->add_flag("--dry-run", options->dry_run, "check and compute, change nothing");
  verb->footer("example: qgpuctl policy 0 fixed-share --dry-run");
  verb->callback([&context, options] {
    Json request = {{"verb", "policy-set"}, {"card", options->card}, {"policy", options->policy}};
    if (options->dry_run) request["dry_run"] = true;
    auto outcome = changeByDaemon(context.socket, request);
    if (!outcome) {
      context.exit_code = complain(outcome.error());
      return;
    }
    // No table of shares: a card computes those of the new policy at its next turn.
    std::string note = outcome->value("note", "");
    std::string effect = options->dry_run ? "would be accepted; nothing was changed"
                         : note.empty()   ? "is set"
                                          : "is stored, not in force yet";
    std::printf("card %s: policy %s %s%s\n", options->card.c_str(), options->policy.c_str(),
                effect.c_str(), note.empty() ? "" : (": " + note).c_str());
  });
}

}  // namespace qgpu::ctl
