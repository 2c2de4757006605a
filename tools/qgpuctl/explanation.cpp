// SPDX-License-Identifier: GPL-2.0
#include "explanation.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "names.hpp"
#include "promise.hpp"
#include "remedy.hpp"
#include "screen.hpp"
#include "starved.hpp"
#include "tenants.hpp"

namespace qgpu::ctl {

using Json = nlohmann::json;

namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;
// A look may come so much late at either end of a wait.
constexpr uint64_t kLookNs = 1'000'000;

uint64_t number(const Json &json, const char *key) { return json.value(key, uint64_t{0}); }
uint32_t ppmOf(const Json &json, const char *key) { return json.value(key, uint32_t{0}); }
std::string text(const Json &json, const char *key) { return json.value(key, std::string()); }

// ---- what is computed ----

// Processes of no tenant count like a tenant while they have contexts; promisesOf() leaves out
// "default" itself.
std::string partyName(const std::string &tenant) {
  return tenant == "default" ? "no tenant (default)" : tenant;
}

bool takesPart(const Json &tenant) {
  return text(tenant, "name") != "default" || number(tenant, "tsgs") != 0;
}

DesiredTenant partyOf(const Json &tenant) {
  const Json &asked = tenant.at("asked");
  DesiredTenant party{partyName(text(tenant, "name")), {}};
  party.settings.weight = asked.value("weight", uint32_t{QGPU_WEIGHT_DEFAULT});
  party.settings.guarantee_ppm = ppmOf(asked, "guarantee_ppm");
  party.settings.ceiling_ppm = asked.value("ceiling_ppm", uint32_t{QGPU_PPM});
  party.settings.wake_ns = number(asked, "wake_ns");
  party.settings.work_class =
      classFromName(text(asked, "class")).value_or(uint32_t{QGPU_CLASS_NORMAL});
  return party;
}

Json toJson(const TenantPromise &promise, uint32_t loss_ppm) {
  return {{"share_ppm", promise.share_ppm},
          {"wait_ns", promise.wait_ns},
          {"off_ppm", promise.off_ppm},
          {"loss_ppm", loss_ppm}};
}

// Null where nothing is computed: a policy that is not known here.
Json computedOf(const Json &card, const std::string &tenant) {
  const auto policy = policyFromName(text(card, "policy"));
  if (!policy) return nullptr;
  DesiredCard desired;
  desired.policy = *policy;
  desired.cycle_ns = number(card, "cycle_asked_ns");
  for (const Json &other : card.at("tenants"))
    if (takesPart(other) || text(other, "name") == tenant)
      desired.tenants.push_back(partyOf(other));
  if (text(card, "method") == "rm") desired.method = CardMethod::kRm;
  const ComputedPromises promises =
      promisesOf(desired, switchNsOf(desired.method, number(card, "switch_ns")));
  for (size_t i = 0; i < promises.all.tenants.size(); ++i) {
    if (promises.all.tenants[i].name != partyName(tenant)) continue;
    Json active = Json::array();
    for (size_t j = 0; j < promises.all.tenants.size(); ++j)
      if (promises.longest_wait[i].has(j)) active.push_back(promises.all.tenants[j].name);
    return {{"all_busy", toJson(promises.all.tenants[i], promises.all.loss_ppm)},
            {"worst", toJson(promises.worst.tenants[i], promises.worst.loss_ppm)},
            {"worst_wait_active", active},
            {"beside_online", promises.beside_online},
            {"every_pair", promises.every_pair}};
  }
  return nullptr;
}

// ---- why ----

// What an explanation is made of.
struct Case {
  const Json &card;
  const Json &tenant;
  const Json &computed;
  const Json measured;

  uint32_t promisedPpm() const { return ppmOf(tenant.at("effective"), "share_ppm"); }
  // Windows on the clock are of wall time, all else of the time that tenants got.
  bool ofWallTime() const { return text(tenant, "place") == "windows-on-the-clock"; }
  uint32_t gotPpm() const { return ppmOf(measured, ofWallTime() ? "use_ppm" : "share_ppm"); }
  // What one interval may be off by: the ledger's error and the rule's own steps.
  uint64_t slackPpm() const {
    const uint64_t off_ppm = computed.is_null() ? 0 : ppmOf(computed.at("worst"), "off_ppm");
    return ppmOf(measured, "error_ppm") +
           off_ppm * kSecondNs / std::max<uint64_t>(number(measured, "interval_ns"), 1) + 5000;
  }
  uint32_t ceilingPpm() const {
    return tenant.at("asked").value("ceiling_ppm", uint32_t{QGPU_PPM});
  }
};

struct Reason {
  const char *word;
  std::string sentence;
};

// Those who ran in the last interval, the largest first.
std::vector<std::pair<std::string, uint32_t>> othersWhoRan(const Case &of) {
  std::vector<std::pair<std::string, uint32_t>> others;
  for (const Json &other : of.card.at("tenants")) {
    const uint32_t use_ppm = ppmOf(other.value("measured", Json::object()), "use_ppm");
    if (use_ppm && text(other, "name") != text(of.tenant, "name"))
      others.emplace_back(text(other, "name"), use_ppm);
  }
  std::stable_sort(others.begin(), others.end(),
                   [](const auto &a, const auto &b) { return a.second > b.second; });
  return others;
}

std::string othersText(const Case &of) {
  constexpr size_t kNamed = 3;
  const auto others = othersWhoRan(of);
  if (others.empty()) return "nobody else ran";
  std::string out;
  for (size_t i = 0; i < std::min(others.size(), kNamed); ++i)
    out += (i ? ", " : "") + others[i].first + " (" + percent(others[i].second) + ")";
  if (others.size() > kNamed) out += " and " + std::to_string(others.size() - kNamed) + " more";
  return out;
}

bool onlineWorks(const Case &of) {
  for (const Json &other : of.card.at("tenants"))
    if (text(other, "place") == "beside-all" && other.value("awake", false)) return true;
  return false;
}

std::optional<Reason> whyNothingIsEnforced(const Case &of) {
  if (text(of.card, "state") != "ok")
    return Reason{text(of.card, "state") == "lost" ? "card-lost" : "card-degraded",
                  "the card is " + text(of.card, "state") + ": " + text(of.card, "reason")};
  if (!text(of.card, "refusal").empty())
    return Reason{"plan-refused", "the card keeps its former plan: " + text(of.card, "refusal")};
  if (text(of.card, "policy") == "best-effort")
    return Reason{"best-effort", "the policy is best-effort: the driver's own order, no promise"};
  return std::nullopt;
}

std::optional<Reason> whyItCannotRun(const Case &of) {
  const bool rm = text(of.card, "method") == "rm";
  if (number(of.tenant, "tsgs") == 0) {
    if (text(of.tenant, "name") != "default" && of.tenant.at("asked").at("cgroups").empty())
      return Reason{"no-cgroup", "none of its cgroups exists, so no process belongs to it"};
    return Reason{"not-attached", rm ? "no process of it is known to have work on this card"
                                     : "no process of it has a context on this card"};
  }
  if (number(of.measured, "interval_ns") == 0)
    return Reason{"not-measured", "nothing is measured yet: only qgpud measures, once a second"};
  if (ppmOf(of.measured, "work_ppm") == 0) return Reason{"no-work", "it had no work"};
  if (of.measured.value("new_plan", false))
    return Reason{"new-plan", "the plan changed within the last " +
                                  duration(number(of.measured, "interval_ns")) +
                                  " that was measured: what it gets by it is not known yet"};
  return std::nullopt;
}

// Whom the other views call starved got less, whatever one interval may be off by.
std::optional<Reason> whyLess(const Case &of) {
  const uint32_t work_ppm = ppmOf(of.measured, "work_ppm");
  const uint32_t throttled_ppm = ppmOf(of.measured, "throttled_ppm");
  if (!isStarved(of.tenant) && of.gotPpm() + of.slackPpm() >= of.promisedPpm()) return std::nullopt;
  if (throttled_ppm && of.ceilingPpm() < QGPU_PPM && !of.ofWallTime())
    return Reason{"ceiling", "its ceiling of " + percent(of.ceilingPpm()) + " held it back for " +
                                 percent(throttled_ppm) + " of the time"};
  if (work_ppm + of.slackPpm() < QGPU_PPM)
    return Reason{"partly-idle", "it had work for " + percent(work_ppm) +
                                     " of the time only, and waited in it for " + othersText(of)};
  if (text(of.tenant, "place") == "windows-by-lag" && onlineWorks(of))
    return Reason{"online-first",
                  "online tenants come first, it gets what they leave: " + othersText(of)};
  return Reason{"waits", "it waited for " + othersText(of)};
}

// Awake, and the plan has nothing for it among those that are.
bool hasNothing(const Case &of) {
  return text(of.card, "policy") == "burst-share" && of.tenant.value("awake", false) &&
         of.promisedPpm() == 0;
}

std::optional<Reason> whyNothingIsLeft(const Case &of) {
  if (!hasNothing(of) || of.gotPpm() > of.slackPpm()) return std::nullopt;
  const bool is_offline = text(of.tenant.at("asked"), "class") == "offline";
  return Reason{"nothing-left",
                std::string(is_offline ? "online and normal tenants leave it nothing: "
                                       : "what others are guaranteed leaves it nothing: ") +
                    othersText(of)};
}

Reason whyEnough(const Case &of) {
  if (of.ceilingPpm() < QGPU_PPM && ppmOf(of.measured, "throttled_ppm"))
    return {"ceiling", "it has its share, and its ceiling of " + percent(of.ceilingPpm()) +
                           " keeps it from more"};
  return {"as-promised", "it has what is promised"};
}

Reason whyOf(const Case &of) {
  if (auto reason = whyNothingIsEnforced(of)) return *reason;
  if (auto reason = whyItCannotRun(of)) return *reason;
  if (auto reason = whyNothingIsLeft(of)) return *reason;
  if (auto reason = whyLess(of)) return *reason;
  return whyEnough(of);
}

std::string placeText(const Case &of) {
  const std::string place = text(of.tenant, "place");
  const uint64_t hangs = number(of.measured, "hangs");
  const uint64_t window_ns = number(of.tenant.at("effective"), "window_ns");
  const uint64_t cycle_ns = number(of.card, "cycle_ns");
  std::string out;
  if (text(of.card, "policy") == "best-effort") return "the driver's own rotation";
  if (hasNothing(of) && (place == "rotates" || place == "windows-by-lag"))
    out = "no part of the time: nothing is left to it";
  else if (place == "rotates")
    out = "rotates: once in each cycle" +
          (cycle_ns ? " of " + duration(cycle_ns) : ", when it has work");
  else if (place == "windows-by-lag")
    out = "windows of its own" + (window_ns ? " of " + duration(window_ns) : "") +
          ", next when it is furthest behind";
  else if (place == "windows-on-the-clock")
    out = "windows of its own on the card's clock" +
          (window_ns ? ", " + duration(window_ns) + " a period" : "");
  else if (place == "beside-all")
    out = "online: beside all others at all times";
  if (hangs)
    out += (out.empty() ? "" : "; ") + std::to_string(hangs) +
           " of its kernels outran its hang timeout while others waited, and put it in windows of "
           "its own for a while";
  return out;
}

// Whoever does not fit the rotation, and everybody beside online tenants.
bool somebodyHasTurns(const Case &of) {
  const Json &tenants = of.card.at("tenants");
  return std::any_of(tenants.begin(), tenants.end(),
                     [](const Json &tenant) { return text(tenant, "place") == "windows-by-lag"; });
}

bool somebodyHung(const Json &card) {
  const Json &tenants = card.at("tenants");
  return std::any_of(tenants.begin(), tenants.end(), [](const Json &tenant) {
    return number(tenant.value("measured", Json::object()), "hangs") != 0;
  });
}

// An executor is not told when work came, but what it takes for a wait (TenantStats::wait_bins).
bool passedItsPromise(const Case &of) {
  if (text(of.card, "method") == "rm" || hasNothing(of)) return false;
  const uint64_t promised_ns =
      of.computed.is_null() ? 0 : number(of.computed.at("worst"), "wait_ns");
  return promised_ns && longestWaitNs(of.measured) > promised_ns + kLookNs;
}

// ---- one card ----

Json measuredOf(const Json &tenant) {
  auto rates = tenant.find("measured");
  return rates == tenant.end() ? Json::object() : *rates;
}

Json cardExplanation(const Json &card, const Json &tenant) {
  const Json computed = computedOf(card, text(tenant, "name"));
  const Case of{card, tenant, computed, measuredOf(tenant)};
  const Reason why = whyOf(of);
  Json waits_for = Json::array();
  for (const auto &[name, use_ppm] : othersWhoRan(of))
    waits_for.push_back({{"tenant", name}, {"use_ppm", use_ppm}});
  return {{"index", card.at("index")},
          {"uuid", card.at("uuid")},
          {"name", text(card, "name")},
          {"simulated", card.value("simulated", false)},
          {"policy", text(card, "policy")},
          {"method", text(card, "method")},
          {"state", text(card, "state")},
          {"state_reason", text(card, "reason")},
          {"edited", tenant.value("edited", false)},
          {"asked", tenant.at("asked")},
          {"now", tenant.at("effective")},
          {"awake", tenant.value("awake", false)},
          {"tsgs", number(tenant, "tsgs")},
          {"computed", computed},
          {"measured", of.measured},
          {"place", text(tenant, "place")},
          {"place_sentence", placeText(of)},
          {"others", waits_for},
          {"why",
           {{"reason", why.word},
            {"sentence", why.sentence},
            {"remedy", remedyOf(of.card, of.tenant, why.word)}}},
          {"windows_by_lag", somebodyHasTurns(of)},
          {"others_hung", somebodyHung(card)},
          {"wait_passed_promise", passedItsPromise(of)}};
}

// ---- for people ----

std::string points(uint64_t ppm) {
  char out[32];
  snprintf(out, sizeof(out), "%.2f pp", static_cast<double>(ppm) / 1e4);
  return out;
}

std::string askedText(const Json &asked) {
  const uint64_t wake_ns = number(asked, "wake_ns"), hang_ns = number(asked, "hang_ns");
  return "  asked: weight " + std::to_string(number(asked, "weight")) + ", guarantee " +
         percent(number(asked, "guarantee_ppm")) + ", ceiling " +
         percent(asked.value("ceiling_ppm", uint64_t{QGPU_PPM})) + ", class " +
         text(asked, "class") + ", wake within " + (wake_ns ? duration(wake_ns) : "none") +
         ", hang timeout " + (hang_ns ? duration(hang_ns) : "off") + "\n";
}

std::string numbersText(const Json &card) {
  const Json &measured = card.at("measured");
  const bool has_rate = number(measured, "interval_ns") != 0;
  const bool promises = !card.at("computed").is_null() && text(card, "policy") != "best-effort";
  const Json computed = promises ? card.at("computed") : Json::object();
  const Json all = computed.value("all_busy", Json::object());
  const Json worst = computed.value("worst", Json::object());
  const auto figure = [](const Json &of, const char *key, std::string (*show)(uint64_t)) {
    return of.contains(key) ? show(number(of, key)) : "-";
  };
  Table table({"", "now", "all busy", "worst", "measured", "of wall time"});
  table.add({"share", percent(number(card.at("now"), "share_ppm")),
             figure(all, "share_ppm", percent), figure(worst, "share_ppm", percent),
             has_rate ? percent(number(measured, "share_ppm")) : "-",
             has_rate ? percent(number(measured, "use_ppm")) : "-"});
  table.add({"longest wait", "-", figure(all, "wait_ns", duration),
             figure(worst, "wait_ns", duration),
             measured.contains("wait_max_ns") ? duration(longestWaitNs(measured)) : "-", "-"});
  table.add({"off in 1 s", "-", figure(all, "off_ppm", points), figure(worst, "off_ppm", points),
             has_rate ? "+- " + percent(number(measured, "error_ppm")) : "-", "-"});
  const auto loss = [&](const Json &of) {
    const bool is_known = !computed.value("beside_online", false) || number(of, "loss_ppm");
    return is_known ? figure(of, "loss_ppm", percent) : "-";
  };
  table.add({"lost to switching", "-", loss(all), loss(worst), "-", "-"});
  return table.text("  ");
}

std::string passedText(const Json &card) {
  const std::string since = duration(number(card.at("measured"), "counted_ns")) + " ago";
  if (card.at("others_hung"))
    return "  it waited longer than that: kernels outran a hang timeout since counting began " +
           since + "\n";
  if (card.at("windows_by_lag")) return "  and it did, since counting began " + since + "\n";
  return "  it waited longer than that; the causes known are work that cannot be cut, a hang, and "
         "other settings since counting began " +
         since + "; which it was is not known\n";
}

std::string onlineText(const Json &card) {
  std::string out;
  if (text(card.at("asked"), "class") == "online")
    out =
        "  and holds while it is within its share; beyond it online waits until the others have "
        "what they are entitled to\n";
  else if (!number(card.at("computed").at("worst"), "wait_ns"))
    out =
        "  beside online tenants no wait is promised: the others take turns and lose the engine "
        "to them\n";
  return out +
         "  what the coming and going of online tenants costs is not in what is lost to "
         "switching\n";
}

std::string longestWaitText(const Json &card) {
  std::string out;
  if (card.at("computed").is_null()) return out;
  const Json &active = card.at("computed").at("worst_wait_active");
  std::string names;
  for (const Json &name : active) names += (names.empty() ? "" : ", ") + name.get<std::string>();
  if (number(card.at("computed").at("worst"), "wait_ns"))
    out += "  the longest wait is promised for: " + names + " at work\n";
  if (card.at("computed").at("beside_online"))
    out += onlineText(card);
  else if (card.at("windows_by_lag"))
    out += "  while tenants have windows by lag, waits may be longer than that\n";
  if (!card.at("computed").at("every_pair"))
    out += "  too many different settings for every pair: worst is beside the largest shares\n";
  if (card.at("wait_passed_promise")) out += passedText(card);
  return out;
}

std::string explainedText(const Json &card) {
  std::string out = "card " + std::to_string(number(card, "index")) + "  " + text(card, "uuid") +
                    "  " + text(card, "name") +
                    (card.value("simulated", false) ? " (simulated)" : "") + "\n";
  out += "  policy " + text(card, "policy") + ", method " + text(card, "method") + ", " +
         text(card, "state") + "\n" + askedText(card.at("asked"));
  if (card.value("edited", false)) out += "  its settings were changed at run time\n";
  out += numbersText(card) + longestWaitText(card);
  if (!text(card, "place_sentence").empty()) out += "  " + text(card, "place_sentence") + "\n";
  const bool has_enough = text(card.at("why"), "reason") == "as-promised";
  return out + "  why: " + text(card.at("why"), "sentence") +
         (has_enough ? "\n  to give it more: " : "\n  to change it: ") +
         text(card.at("why"), "remedy") + "\n";
}

bool isCard(const Json &card, const std::string &selector) {
  return selector.empty() || selector == text(card, "uuid") ||
         selector == std::to_string(number(card, "index"));
}

}  // namespace

Result<Json> explanationOf(const Json &status, const std::string &tenant, const std::string &card) {
  if (auto known = checkTenant(status, tenant); !known) return known.error();
  bool card_found = false;
  Json cards = Json::array();
  for (const Json &candidate : status.at("cards")) {
    card_found |= isCard(candidate, card);
    if (!isCard(candidate, card)) continue;
    for (const Json &entry : candidate.at("tenants"))
      if (text(entry, "name") == tenant) cards.push_back(cardExplanation(candidate, entry));
  }
  const std::string driver_error = text(status, "driver_error");
  if (!driver_error.empty()) return Error{ENODEV, driver_error, card.empty() ? tenant : card};
  if (!card_found) return Error{ENODEV, "no such card", card};
  if (cards.empty())
    return Error{ENODEV, "the tenant is on no such card: the configuration does not name it",
                 card.empty() ? tenant : card};
  return Json{{"tenant", tenant}, {"source", text(status, "source")}, {"cards", cards}};
}

Result<std::string> whysText(const Json &status, const std::string &card) {
  const std::string driver_error = text(status, "driver_error");
  if (!driver_error.empty()) return Error{ENODEV, driver_error, card};
  std::string out;
  for (const Json &one : status.at("cards")) {
    if (!isCard(one, card)) continue;
    Table table({"tenant", "entitled", "got", "", "why"});
    std::string remedies;
    for (const Json &tenant : one.at("tenants")) {
      const Json measured = measuredOf(tenant), computed = nullptr;
      const Case of{one, tenant, computed, measured};
      const Reason why = whyOf(of);
      table.add({text(tenant, "name"), percent(entitledPpm(tenant)), percent(gotPpm(tenant)),
                 isStarved(tenant) ? "STARVED" : "", why.sentence});
      if (isStarved(tenant))
        remedies += "  to change it for " + text(tenant, "name") + ": " +
                    remedyOf(of.card, of.tenant, why.word) + "\n";
    }
    table.leftFrom(3);
    out += "card " + std::to_string(number(one, "index")) + "  " + text(one, "uuid") + "  " +
           text(one, "policy") + ", " + text(one, "state") + "\n" + table.text("  ") + remedies;
  }
  if (out.empty()) return Error{ENODEV, card.empty() ? "there is no card" : "no such card", card};
  return out + "qgpuctl explain TENANT has the promises and figures of one\n";
}

std::string explanationText(const Json &explanation) {
  std::string out = "tenant " + text(explanation, "tenant") + "\n";
  for (const Json &card : explanation.at("cards")) out += explainedText(card);
  return out;
}

}  // namespace qgpu::ctl
