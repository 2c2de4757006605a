// SPDX-License-Identifier: GPL-2.0
#include "metrics.hpp"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <string>

#include "clock.hpp"

namespace qgpu {

namespace {

constexpr uint64_t kIntervalMinNs = kSecondNs / 2;

uint32_t ppm(uint64_t part, uint64_t whole) {
  if (whole == 0) return 0;
  auto value = static_cast<unsigned __int128>(part) * QGPU_PPM / whole;
  return static_cast<uint32_t>(std::min<unsigned __int128>(value, QGPU_PPM));
}

// Counters that went back or began anew give no rate.
bool continues(const Sample &before, const Sample &now) {
  return now.since_ns == before.since_ns && now.time_ns > before.time_ns &&
         now.run_ns >= before.run_ns && now.run_err_ns >= before.run_err_ns &&
         now.wait_ns >= before.wait_ns && now.throttled_ns >= before.throttled_ns;
}

uint64_t grown(uint64_t before, uint64_t now) { return now - std::min(before, now); }

// It did not run between the two, so the wait that was on goes on.
uint64_t waitingNs(const Sample &before, const Sample &now, uint64_t waiting_ns) {
  if (now.run_ns != before.run_ns || now.visits != before.visits) return 0;
  const uint64_t wait_ns = now.wait_ns - before.wait_ns;
  const uint64_t pause_ns = std::min(wait_ns, now.throttled_ns - before.throttled_ns);
  return wait_ns ? waiting_ns + wait_ns - pause_ns : 0;
}

}  // namespace

PlanMarks planMarksOf(const std::vector<CardSnapshot> &cards) {
  PlanMarks marks;
  for (const CardSnapshot &card : cards) {
    std::string text = std::to_string(card.info.policy);
    for (const TenantStatus &tenant : card.tenants) {
      const TenantSettings &asked = tenant.asked;
      for (const uint64_t number :
           std::initializer_list<uint64_t>{tenant.id, asked.weight, asked.guarantee_ppm,
                                           asked.ceiling_ppm, asked.work_class, asked.wake_ns})
        text += " " + std::to_string(number);
    }
    marks[card.info.index] = std::hash<std::string>()(text);
  }
  return marks;
}

void Metrics::clear() {
  last_.clear();
  rates_.clear();
  last_totals_.clear();
  card_rates_.clear();
  plans_.clear();
}

// Without a sample that it goes on from: no rates, only what was counted.
Rates Metrics::ratesOf(const Sample &now, uint64_t delivered_ns) const {
  Rates rates;
  rates.run_ns = now.run_ns;
  rates.wait_ns = now.wait_ns;
  rates.wait_max_ns = now.wait_max_ns;
  rates.hangs = now.hangs;
  rates.counted_ns = now.time_ns - std::min(now.since_ns, now.time_ns);
  rates.source = now.source;
  const Sample *before = formerOf(now);
  if (!before) return rates;
  const uint64_t run_ns = now.run_ns - before->run_ns;
  rates.interval_ns = now.time_ns - before->time_ns;
  rates.share_ppm = ppm(run_ns, delivered_ns);
  rates.use_ppm = ppm(run_ns, rates.interval_ns);
  rates.work_ppm = ppm(run_ns + now.wait_ns - before->wait_ns, rates.interval_ns);
  rates.throttled_ppm = ppm(now.throttled_ns - before->throttled_ns, rates.interval_ns);
  rates.error_ppm = ppm(now.run_err_ns - before->run_err_ns, delivered_ns);
  const auto known = rates_.find({now.card_index, *now.tenant_id});
  rates.waiting_ns = waitingNs(*before, now, known == rates_.end() ? 0 : known->second.waiting_ns);
  return rates;
}

void Metrics::update(const std::vector<Sample> &samples, const PlanMarks &plans) {
  // Card by card: all samples of a card carry one time.
  std::map<uint32_t, CardSamples> cards;
  for (const Sample &sample : samples)
    if (sample.tenant_id)
      cards[sample.card_index].tenants.push_back(&sample);
    else
      cards[sample.card_index].totals = &sample;
  for (const auto &[card, of_card] : cards) {
    const auto plan = plans.find(card);
    updateCard(card, of_card, plan == plans.end() ? 0 : plan->second);
  }
}

bool Metrics::isNewPlan(uint32_t card, uint64_t plan) const {
  const auto former = plans_.find(card);
  return former != plans_.end() && former->second != plan;
}

void Metrics::updateCard(uint32_t card, const CardSamples &samples, uint64_t plan) {
  uint64_t delivered_ns = 0;
  for (const Sample *now : samples.tenants) {
    auto last = last_.find({card, *now->tenant_id});
    if (last != last_.end() && last->second.since_ns == now->since_ns &&
        last->second.time_ns == now->time_ns)
      return;  // the card was not looked at since
    const Sample *before = formerOf(*now);
    if (!before) continue;
    if (now->time_ns - before->time_ns < kIntervalMinNs) return;
    if (*now->tenant_id != QGPU_TENANT_NOBODY) delivered_ns += now->run_ns - before->run_ns;
  }
  updateTotals(card, samples);
  std::map<Key, Sample> fresh;
  std::map<Key, Rates> rates;
  for (const Sample *now : samples.tenants) {
    const Key key{card, *now->tenant_id};
    fresh[key] = *now;
    rates[key] = ratesOf(*now, delivered_ns);
    rates[key].new_plan = isNewPlan(card, plan);
  }
  plans_[card] = plan;
  const auto is_of_card = [&](const auto &entry) { return entry.first.first == card; };
  std::erase_if(rates_, is_of_card);
  std::erase_if(last_, is_of_card);
  rates_.merge(rates);
  last_.merge(fresh);
}

// Before the tenants' samples are the new ones.
void Metrics::updateTotals(uint32_t card, const CardSamples &samples) {
  card_rates_.erase(card);
  const auto before = last_totals_.find(card);
  if (samples.totals && before != last_totals_.end() &&
      continues(before->second, *samples.totals)) {
    const Sample &former = before->second, &now = *samples.totals;
    const uint64_t span_ns = now.time_ns - former.time_ns;
    uint64_t nobody_ns = 0;
    for (const Sample *tenant : samples.tenants)
      if (const Sample *last = formerOf(*tenant); last && tenant->tenant_id == QGPU_TENANT_NOBODY)
        nobody_ns = tenant->run_ns - last->run_ns;
    card_rates_[card] = {span_ns, ppm(grown(former.idle_ns, now.idle_ns), span_ns),
                         ppm(grown(former.switch_ns, now.switch_ns), span_ns),
                         ppm(nobody_ns, span_ns)};
  }
  if (samples.totals)
    last_totals_[card] = *samples.totals;
  else
    last_totals_.erase(card);
}

// The sample that this one goes on from; null: none.
const Sample *Metrics::formerOf(const Sample &now) const {
  auto found = last_.find({now.card_index, *now.tenant_id});
  return found != last_.end() && continues(found->second, now) ? &found->second : nullptr;
}

std::optional<Rates> Metrics::tenant(uint32_t card_index, uint32_t tenant_id) const {
  auto found = rates_.find({card_index, tenant_id});
  if (found == rates_.end()) return std::nullopt;
  return found->second;
}

std::optional<CardRates> Metrics::card(uint32_t card_index) const {
  auto found = card_rates_.find(card_index);
  if (found == card_rates_.end()) return std::nullopt;
  return found->second;
}

}  // namespace qgpu
