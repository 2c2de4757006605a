// SPDX-License-Identifier: GPL-2.0
// qgpuctl tenant list | show | set | reset
#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>

#include "connection.hpp"
#include "screen.hpp"
#include "tenants.hpp"
#include "verb.hpp"

namespace qgpu::ctl {

namespace {

struct SetOptions {
  std::string tenant;
  std::string card;
  std::optional<int64_t> weight;
  std::optional<double> guarantee;
  std::optional<double> ceiling;
  std::optional<std::string> work_class;
  std::optional<std::string> wake_within;
  std::optional<std::string> hang_timeout;
  bool dry_run = false;
};

int list(const std::string &socket) {
  auto status = readStatus(socket);
  if (!status) return complain(status.error());
  Table table({"tenant", "card", "weight", "guarantee", "entitled", "measured"});
  for (const Json &card : status->at("cards")) {
    for (const Json &tenant : card.at("tenants")) {
      Json measured = tenant.value("measured", Json::object());
      bool has_rate = measured.value("interval_ns", uint64_t{0}) > 0;
      table.add({tenant.at("name").get<std::string>() + (tenant.value("edited", false) ? "*" : ""),
                 std::to_string(card.at("index").get<uint32_t>()),
                 std::to_string(tenant.at("asked").at("weight").get<uint32_t>()),
                 percent(tenant.at("asked").at("guarantee_ppm").get<uint64_t>()),
                 percent(tenant.at("effective").at("share_ppm").get<uint64_t>()),
                 has_rate ? percent(measured.at("share_ppm").get<uint64_t>()) : "-"});
    }
  }
  const bool has_card = !status->at("cards").empty();
  std::fputs((has_card ? table.text("") : configuredText(*status)).c_str(), stdout);
  return kExitOk;
}

int show(const std::string &socket, const std::string &name, bool json) {
  auto status = readStatus(socket);
  if (!status) return complain(status.error());
  if (auto known = checkTenant(*status, name); !known) return complain(known.error());
  Json found = Json::array();
  for (const Json &card : status->at("cards"))
    for (Json tenant : card.at("tenants")) {
      if (tenant.at("name") != name) continue;
      tenant["card"] = card.at("index");
      tenant["card_uuid"] = card.at("uuid");
      found.push_back(std::move(tenant));
    }
  Json configured;
  for (const Json &tenant : status->value("configured", Json::array()))
    if (tenant.at("name") == name) configured = tenant;

  if (json) {
    std::printf("%s\n",
                Json{{"name", name}, {"configured", configured}, {"cards", found}}.dump(2).c_str());
    return kExitOk;
  }
  std::printf("tenant %s\n", name.c_str());
  if (configured.is_object())
    for (const Json &path : configured.at("cgroup"))
      std::printf("  cgroup %s\n", path.get<std::string>().c_str());
  for (const Json &tenant : found) {
    const Json &asked = tenant.at("asked");
    const Json &effective = tenant.at("effective");
    std::printf("  card %u (%s)%s\n", tenant.at("card").get<uint32_t>(),
                tenant.at("card_uuid").get<std::string>().c_str(),
                tenant.value("edited", false) ? ", its settings were changed at run time" : "");
    std::printf("    asked      weight %u, guarantee %s, ceiling %s, class %s",
                asked.at("weight").get<uint32_t>(),
                percent(asked.at("guarantee_ppm").get<uint64_t>()).c_str(),
                percent(asked.at("ceiling_ppm").get<uint64_t>()).c_str(),
                asked.at("class").get<std::string>().c_str());
    if (auto wake_ns = asked.value("wake_ns", uint64_t{0}))
      std::printf(", wake within %s", duration(wake_ns).c_str());
    if (auto hang_ns = asked.value("hang_ns", uint64_t{0}))
      std::printf(", hang timeout %s", duration(hang_ns).c_str());
    std::printf("\n");
    std::printf("    entitled   share %s, slice %s, window %s\n",
                percent(effective.at("share_ppm").get<uint64_t>()).c_str(),
                duration(effective.at("slice_ns").get<uint64_t>()).c_str(),
                duration(effective.at("window_ns").get<uint64_t>()).c_str());
    if (auto measured = tenant.find("measured"); measured != tenant.end())
      std::printf("    measured   share %s +- %s of delivered time (%s), ran %.3f s in all\n",
                  percent(measured->at("share_ppm").get<uint64_t>()).c_str(),
                  percent(measured->at("error_ppm").get<uint64_t>()).c_str(),
                  measured->at("source").get<std::string>().c_str(),
                  static_cast<double>(measured->at("run_ns").get<uint64_t>()) / 1e9);
    std::printf("    objects    %u TSGs, %zu cgroups, %s\n", tenant.at("tsgs").get<uint32_t>(),
                asked.at("cgroups").size(), tenant.at("awake").get<bool>() ? "awake" : "asleep");
  }
  return kExitOk;
}

int change(const std::string &socket, const Json &request, bool dry_run) {
  auto outcome = changeByDaemon(socket, request);
  if (!outcome) return complain(outcome.error());
  std::fputs(outcomeText(*outcome, dry_run).c_str(), stdout);
  return kExitOk;
}

void addSet(CLI::App &verb, Context &context) {
  auto *set =
      verb.add_subcommand("set", "change a tenant now; wins over the file until that changes");
  auto options = std::make_shared<SetOptions>();
  set->add_option("NAME", options->tenant, "a tenant of the configuration")->required();
  set->add_option("--weight", options->weight, "1 to 10000");
  set->add_option("--guarantee", options->guarantee, "percent, in steps of 0.1");
  set->add_option("--ceiling", options->ceiling, "percent, in steps of 0.1; 100 lifts it");
  set->add_option("--class", options->work_class, "normal, online or offline");
  set->add_option("--wake-within", options->wake_within, "longest wait: a time, or none");
  set->add_option("--hang-timeout", options->hang_timeout, "longest kernel: a time, or off");
  set->add_option("--card", options->card, "on this card only: uuid or index");
  set->add_flag("--dry-run", options->dry_run, "check and compute, change nothing");
  set->footer("example: qgpuctl tenant set web --weight 200 --guarantee 30 --dry-run");
  set->callback([&context, options] {
    Json request = {{"verb", "tenant-set"}, {"tenant", options->tenant}};
    if (options->weight) request["weight"] = *options->weight;
    if (options->guarantee) request["guarantee"] = *options->guarantee;
    if (options->ceiling) request["ceiling"] = *options->ceiling;
    if (options->work_class) request["class"] = *options->work_class;
    if (options->wake_within) request["wake_within"] = *options->wake_within;
    if (options->hang_timeout) request["hang_timeout"] = *options->hang_timeout;
    if (!options->card.empty()) request["card"] = options->card;
    if (options->dry_run) request["dry_run"] = true;
    context.exit_code = change(context.socket, request, options->dry_run);
  });
}

}  // namespace

void addTenant(CLI::App &app, Context &context) {
  auto *verb = app.add_subcommand("tenant", "list, show, set, reset");
  verb->require_subcommand(1);
  verb->footer("example: qgpuctl tenant list");

  auto *list_verb = verb->add_subcommand("list", "one line for each tenant and card");
  list_verb->callback([&context] { context.exit_code = list(context.socket); });

  auto *show_verb = verb->add_subcommand("show", "everything about one tenant");
  auto shown = std::make_shared<std::pair<std::string, bool>>();
  show_verb->add_option("NAME", shown->first, "a tenant")->required();
  show_verb->add_flag("--json", shown->second, "everything, for programs");
  show_verb->footer("example: qgpuctl tenant show web");
  show_verb->callback(
      [&context, shown] { context.exit_code = show(context.socket, shown->first, shown->second); });

  addSet(*verb, context);

  auto *reset = verb->add_subcommand("reset", "back to what the configuration says");
  auto name = std::make_shared<std::string>();
  reset->add_option("NAME", *name, "a tenant of the configuration")->required();
  reset->footer("example: qgpuctl tenant reset web");
  reset->callback([&context, name] {
    context.exit_code =
        change(context.socket, {{"verb", "tenant-reset"}, {"tenant", *name}}, false);
  });
}

}  // namespace qgpu::ctl
