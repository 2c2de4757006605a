// SPDX-License-Identifier: GPL-2.0
#include "snapshot_json.hpp"

#include <algorithm>

#include "names.hpp"

namespace qgpu {

using Json = nlohmann::json;

namespace {

Json toJson(const Rates &rates) {
  return {{"interval_ns", rates.interval_ns},
          {"share_ppm", rates.share_ppm},
          {"use_ppm", rates.use_ppm},
          {"error_ppm", rates.error_ppm},
          {"source", sourceName(rates.source)},
          {"work_ppm", rates.work_ppm},
          {"throttled_ppm", rates.throttled_ppm},
          {"counted_ns", rates.counted_ns},
          {"run_ns", rates.run_ns},
          {"wait_ns", rates.wait_ns},
          {"wait_max_ns", rates.wait_max_ns},
          {"wait_longest_ns", std::max(rates.wait_max_ns, rates.waiting_ns)},
          {"waiting_ns", rates.waiting_ns},
          {"new_plan", rates.new_plan},
          {"hangs", rates.hangs}};
}

Json toJson(const CardRates &rates) {
  return {{"interval_ns", rates.interval_ns},
          {"idle_ppm", rates.idle_ppm},
          {"switch_ppm", rates.switch_ppm},
          {"nobody_ppm", rates.nobody_ppm}};
}

Json toJson(const TenantStatus &tenant) {
  const TenantSettings &asked = tenant.asked;
  Json json = {{"id", tenant.id},
               {"name", tenant.name},
               {"asked",
                {{"weight", asked.weight},
                 {"guarantee_ppm", asked.guarantee_ppm},
                 {"ceiling_ppm", asked.ceiling_ppm},
                 {"class", className(asked.work_class)},
                 {"wake_ns", asked.wake_ns},
                 {"hang_ns", asked.hang_ns},
                 {"cgroups", asked.cgroups}}},
               {"effective",
                {{"share_ppm", tenant.share_ppm},
                 {"slice_ns", tenant.slice_ns},
                 {"window_ns", tenant.window_ns}}},
               {"awake", tenant.awake},
               {"tsgs", tenant.tsgs}};
  if (!tenant.pids.empty()) json["pids"] = tenant.pids;
  if (tenant.copy_tsgs) json["copy_tsgs"] = *tenant.copy_tsgs;
  if (tenant.place) json["place"] = placeName(*tenant.place);
  return json;
}

Json toJson(const ExecutorInfo &executor) {
  return {{"driver", executor.driver},
          {"profile", executor.profile},
          {"source", sourceName(executor.source)},
          {"processes", executor.processes},
          {"gap_ns", executor.gap_ns},
          {"controls", executor.controls},
          {"controls_refused", executor.controls_refused},
          {"foreign_changes", executor.foreign_changes},
          {"lost_records", executor.lost_records},
          {"costs",
           {{"visit_ns", executor.costs.visit_ns},
            {"switch_gap_ns", executor.costs.gap_ns},
            {"slice_short_ns", executor.costs.slice_short_ns},
            {"duty_bias_ns", executor.costs.duty_bias_ns},
            {"measured_s", executor.costs.measured_s}}},
          {"restarts", executor.restarts}};
}

// What a tenant's counters were at the instant that the card's name.
Json toJson(const Histogram &histogram) {
  return {{"bins", histogram.bins}, {"sum_ns", histogram.sum_ns}};
}

Json countersOf(const Sample &tenant) {
  Json json = {{"run_ns", tenant.run_ns},
               {"run_err_ns", tenant.run_err_ns},
               {"source", sourceName(tenant.source)},
               {"wait_ns", tenant.wait_ns},
               {"wait_max_ns", tenant.wait_max_ns},
               {"throttled_ns", tenant.throttled_ns},
               {"visits", tenant.visits},
               {"windows", tenant.windows},
               {"preempts", tenant.preempts},
               {"overruns", tenant.overruns},
               {"hangs", tenant.hangs}};
  if (tenant.waits) json["waits"] = toJson(*tenant.waits);
  if (tenant.tails) json["tails"] = toJson(*tenant.tails);
  return json;
}

Json countersOf(const CardLedger &card) {
  return {{"time_ns", card.totals.time_ns},         {"since_ns", card.totals.since_ns},
          {"elapsed_ns", card.elapsedNs()},         {"generation", card.totals.generation},
          {"tenants_ns", card.tenantsNs()},         {"nobody_ns", card.nobody_ns},
          {"switch_ns", card.totals.switch_ns},     {"idle_ns", card.totals.idle_ns},
          {"unaccounted_ns", card.unaccountedNs()}, {"removed_ns", card.totals.removed_ns},
          {"submits", card.totals.submits},         {"preempts", card.totals.preempts}};
}

}  // namespace

Json toJson(const CardSnapshot &card, const Metrics *metrics, const Ledger *ledger) {
  const CardInfo &info = card.info;
  const CardLedger *counters = ledger ? ledger->card(info.index) : nullptr;
  Json tenants = Json::array();
  for (const TenantStatus &tenant : card.tenants) {
    Json entry = toJson(tenant);
    if (counters)
      if (auto counted = counters->tenants.find(tenant.id); counted != counters->tenants.end())
        entry["counters"] = countersOf(counted->second);
    if (auto rates = metrics ? metrics->tenant(info.index, tenant.id) : std::nullopt)
      entry["measured"] = toJson(*rates);
    tenants.push_back(std::move(entry));
  }
  Json json = {{"index", info.index},
               {"uuid", info.uuid},
               {"name", info.name},
               {"chip_id", info.chip_id},
               {"simulated", info.simulated},
               {"method", methodName(info.method)},
               {"state", cardStateName(info.state)},
               {"reason", info.reason},
               {"policy", policyName(info.policy)},
               {"generation", info.generation},
               {"switch_ns", info.switch_ns},
               {"cycle_ns", info.cycle_ns},
               {"slice_min_ns", info.slice_min_ns},
               {"slice_max_ns", info.slice_max_ns},
               {"tsgs", info.tsgs},
               {"tenants", std::move(tenants)}};
  if (counters) json["counters"] = countersOf(*counters);
  if (auto rates = metrics ? metrics->card(info.index) : std::nullopt)
    json["measured"] = toJson(*rates);
  if (info.executor) json["executor"] = toJson(*info.executor);
  return json;
}

Json toJson(const CardEvent &event) {
  Json json = {
      {"event", eventName(event.kind)}, {"card", event.card_index}, {"time_ns", event.time_ns}};
  if (event.tenant_id) json["tenant_id"] = *event.tenant_id;
  if (!event.tenant_name.empty()) json["tenant"] = event.tenant_name;
  if (event.tsg_serial) json["tsg"] = *event.tsg_serial;
  if (event.pid) json["pid"] = *event.pid;
  if (event.generation) json["generation"] = *event.generation;
  if (event.card_state) json["state"] = cardStateName(*event.card_state);
  if (!event.reason.empty()) json["reason"] = event.reason;
  return json;
}

Json toJson(const LogRecord &record) {
  const auto numberOf = [](const std::optional<uint32_t> &value) {
    return value ? Json(*value) : Json(nullptr);
  };
  return {record.serial,        record.from_ns,          record.to_ns,
          record.seen,          record.window,           numberOf(record.tenant_id),
          numberOf(record.end), numberOf(record.due_id), record.ongoing};
}

LogRecord logRecordFrom(const Json &json) {
  const auto numberAt = [&](size_t at) -> std::optional<uint32_t> {
    if (json.at(at).is_null()) return std::nullopt;
    return json.at(at).get<uint32_t>();
  };
  LogRecord record;
  record.serial = json.at(0);
  record.from_ns = json.at(1);
  record.to_ns = json.at(2);
  record.seen = json.at(3);
  record.window = json.at(4);
  record.tenant_id = numberAt(5);
  record.end = numberAt(6);
  record.due_id = numberAt(7);
  record.ongoing = json.at(8);
  return record;
}

std::string lineOf(const Json &json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace qgpu
