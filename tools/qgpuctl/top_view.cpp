// SPDX-License-Identifier: GPL-2.0
#include "top_view.hpp"

#include <algorithm>
#include <cstdio>

#include "screen.hpp"
#include "starved.hpp"

namespace qgpu::ctl {

using Json = nlohmann::json;

namespace {

constexpr size_t kNameWidth = 16, kBarMin = 8, kBarMax = 40, kOtherColumns = 66;
constexpr double kPpm = 1e6;

uint64_t number(const Json &json, const char *key) { return json.value(key, uint64_t{0}); }

std::string text(const Json &json, const char *key) { return json.value(key, std::string()); }

const Json &part(const Json &json, const char *key) {
  static const Json kNone = Json::object();
  auto found = json.find(key);
  return found == json.end() ? kNone : *found;
}

std::string padded(std::string text, size_t width, bool right = false) {
  if (text.size() > width) text = text.substr(0, width - 1) + "~";
  const std::string fill(width - text.size(), ' ');
  return right ? fill + text : text + fill;
}

bool isMeasured(const Json &tenant) { return number(part(tenant, "measured"), "interval_ns") > 0; }

uint64_t waitPpm(const Json &tenant) {
  const Json &rates = part(tenant, "measured");
  const uint64_t work_ppm = number(rates, "work_ppm"), use_ppm = number(rates, "use_ppm");
  return work_ppm - std::min(work_ppm, use_ppm);
}

// "[####    |   ]": what it got, and where what it is entitled to ends.
std::string bar(uint64_t got_ppm, uint64_t entitled_ppm, size_t width) {
  const auto place = [&](uint64_t ppm) {
    return std::min(width, static_cast<size_t>(
                               static_cast<double>(ppm) / kPpm * static_cast<double>(width) + 0.5));
  };
  std::string out(place(got_ppm), '#');
  out.resize(width, '.');
  const size_t mark = place(entitled_ppm);
  if (mark > 0) out[mark - 1] = '|';
  return "[" + out + "]";
}

std::string stateOf(const Json &tenant) {
  if (isStarved(tenant)) return "STARVED";
  return tenant.value("awake", false) ? "work" : "idle";
}

std::string pidsText(const std::vector<uint32_t> &pids) {
  std::string out;
  for (size_t i = 0; i < pids.size() && i < 2; ++i) out += (i ? "," : "") + std::to_string(pids[i]);
  return pids.size() > 2 ? out + " +" + std::to_string(pids.size() - 2) : out;
}

// Of the interval that the tenants' figures are of.
std::string partsText(const Json &card) {
  const Json &measured = part(card, "measured");
  if (number(measured, "interval_ns") == 0) return "";
  return "last " + duration(number(measured, "interval_ns")) + ": idle " +
         percent(number(measured, "idle_ppm")) + ", switching " +
         percent(number(measured, "switch_ppm")) + ", nobody " +
         percent(number(measured, "nobody_ppm"));
}

TopLine cut(TopLine line, size_t width) {
  TopLine out;
  for (TopSpan &span : line) {
    if (span.text.size() > width) span.text.resize(width);
    width -= span.text.size();
    if (!span.text.empty()) out.push_back(std::move(span));
  }
  return out;
}

constexpr const char *kHelp[] = {
    "",
    "  s        sort by: got, entitled, waiting, name",
    "  c        one card after the other, then all",
    "  p space  pause, and go on",
    "  up down  scroll; also j k, page up, page down",
    "  h ?      this, and back",
    "  q        end",
    "",
    "  entitled what the plan gives it among those that have work now",
    "  got      of the time delivered to tenants: # in the bar, | is what it is entitled to",
    "  of time  of the clock's time",
    "  waiting  of the clock's time it had work and was not on the engine",
    "  longest  single wait since counting began, the one that is on with it",
    "  STARVED  it had work all the time and got less than nine tenths of what it is entitled",
    "           to, or nothing because nothing is left to it: qgpuctl explain TENANT says why",
    "  All but longest is of the interval that the card's line names, that line too."};

}  // namespace

std::string plainText(const TopLine &line) {
  std::string out;
  for (const TopSpan &span : line) out += span.text;
  out.erase(out.find_last_not_of(' ') + 1);
  return out;
}

void TopView::update(Json status, TopPids pids) {
  if (paused_) return;
  status_ = std::move(status);
  pids_ = std::move(pids);
  trouble_.clear();
}

bool TopView::press(char key) {
  switch (key) {
    case 'q':
      return false;
    case 's':
      sort_ = static_cast<Sort>((static_cast<int>(sort_) + 1) % 4);
      break;
    case 'c':
      cycleCard();
      break;
    case 'p':
    case ' ':
      paused_ = !paused_;
      break;
    case 'h':
    case '?':
      help_ = !help_;
      scroll_ = 0;
      break;
    case 'j':
      press(TopKey::kDown);
      break;
    case 'k':
      press(TopKey::kUp);
      break;
  }
  return true;
}

void TopView::press(TopKey key) {
  const size_t step = key == TopKey::kPageUp || key == TopKey::kPageDown ? page_ : 1;
  if (key == TopKey::kUp || key == TopKey::kPageUp) scroll_ -= std::min(scroll_, step);
  if (key == TopKey::kDown || key == TopKey::kPageDown) scroll_ += step;
}

void TopView::cycleCard() {
  std::vector<int64_t> cards;
  for (const Json &card : part(status_, "cards"))
    cards.push_back(static_cast<int64_t>(number(card, "index")));
  std::sort(cards.begin(), cards.end());
  auto next = std::upper_bound(cards.begin(), cards.end(), card_);
  card_ = next == cards.end() ? -1 : *next;
  scroll_ = 0;
}

TopLine TopView::titleLine() const {
  constexpr const char *kSorts[] = {"got", "entitled", "waiting", "name"};
  size_t tenants = 0;
  for (const Json &card : part(status_, "cards")) tenants += part(card, "tenants").size();
  TopLine line = {
      {TopStyle::kTitle, "qgpu top"},
      {TopStyle::kPlain,
       "  " + std::to_string(part(status_, "cards").size()) + " cards, " + std::to_string(tenants) +
           " tenants on them  sort: " + kSorts[static_cast<int>(sort_)] +
           "  card: " + (card_ < 0 ? "all" : std::to_string(card_)) + "  h: help  q: end"}};
  if (paused_) line.push_back({TopStyle::kTrouble, "  PAUSED"});
  return line;
}

std::vector<const Json *> TopView::sorted(const Json &tenants) const {
  std::vector<const Json *> list;
  for (const Json &tenant : tenants) list.push_back(&tenant);
  const auto key = [this](const Json &tenant) -> uint64_t {
    switch (sort_) {
      case Sort::kGot:
        return gotPpm(tenant);
      case Sort::kEntitled:
        return entitledPpm(tenant);
      case Sort::kWait:
        return waitPpm(tenant);
      case Sort::kName:
        break;
    }
    return 0;
  };
  std::stable_sort(list.begin(), list.end(), [&](const Json *a, const Json *b) {
    const uint64_t key_a = key(*a), key_b = key(*b);
    return key_a != key_b ? key_a > key_b : text(*a, "name") < text(*b, "name");
  });
  return list;
}

TopLine TopView::tenantLine(const Json &tenant, uint32_t card, size_t bar_width) const {
  const bool measured = isMeasured(tenant);
  const auto shown = [&](uint64_t ppm) { return padded(measured ? percent(ppm) : "-", 9, true); };
  const Json &rates = part(tenant, "measured");
  std::string pids;
  if (auto of_card = pids_.find(card); of_card != pids_.end())
    if (auto found = of_card->second.find(text(tenant, "name")); found != of_card->second.end())
      pids = pidsText(found->second);
  const TopStyle style = isStarved(tenant)              ? TopStyle::kTrouble
                         : tenant.value("awake", false) ? TopStyle::kPlain
                                                        : TopStyle::kFaint;
  return {{style, "  " + padded(text(tenant, "name"), kNameWidth) +
                      padded(percent(entitledPpm(tenant)), 8, true) + " "},
          {style == TopStyle::kPlain ? TopStyle::kGot : style,
           bar(gotPpm(tenant), entitledPpm(tenant), bar_width)},
          {style, shown(gotPpm(tenant)) + shown(number(rates, "use_ppm")) + shown(waitPpm(tenant)) +
                      padded(duration(longestWaitNs(rates)), 10, true) + "  " +
                      padded(stateOf(tenant), 8) + pids}};
}

void TopView::addCard(std::vector<TopLine> &lines, const Json &card, size_t width) const {
  const bool is_ok = text(card, "state") == "ok" && text(card, "refusal").empty();
  lines.push_back(
      {{TopStyle::kTitle,
        "card " + std::to_string(number(card, "index")) + "  " + text(card, "name")},
       {TopStyle::kPlain, "  " + text(card, "policy") + ", " + text(card, "method") + "  "},
       {is_ok ? TopStyle::kPlain : TopStyle::kTrouble, text(card, "state")},
       {TopStyle::kPlain, "  " + partsText(card)}});
  for (const char *why : {"reason", "refusal"})
    if (!text(card, why).empty()) lines.push_back({{TopStyle::kTrouble, "  " + text(card, why)}});
  const size_t bar_width =
      std::clamp(width > kOtherColumns + kNameWidth ? width - kOtherColumns - kNameWidth : 0,
                 kBarMin, kBarMax);
  lines.push_back(
      {{TopStyle::kHead, "  " + padded("tenant", kNameWidth) + padded("entitled", 8, true) + " " +
                             std::string(bar_width + 2, ' ') + padded("got", 9, true) +
                             padded("of time", 9, true) + padded("waiting", 9, true) +
                             padded("longest", 10, true) + "  " + padded("state", 8) + "pids"}});
  for (const Json *tenant : sorted(part(card, "tenants")))
    lines.push_back(tenantLine(*tenant, static_cast<uint32_t>(number(card, "index")), bar_width));
  lines.push_back({});
}

std::vector<TopLine> TopView::body(size_t width) const {
  std::vector<TopLine> lines;
  if (!trouble_.empty()) lines.push_back({{TopStyle::kTrouble, "NO NEWS: " + trouble_}});
  if (help_) {
    for (const char *line : kHelp) lines.push_back({{TopStyle::kPlain, line}});
    return lines;
  }
  if (!text(status_, "driver_error").empty())
    lines.push_back({{TopStyle::kTrouble, text(status_, "driver_error")}});
  for (const Json &held : part(status_, "held"))
    lines.push_back({{TopStyle::kTrouble, "NOT applied: " + held.get<std::string>()}});
  for (const Json &card : part(status_, "cards"))
    if (card_ < 0 || number(card, "index") == static_cast<uint64_t>(card_))
      addCard(lines, card, width);
  return lines;
}

std::vector<TopLine> TopView::draw(size_t width, size_t height) {
  std::vector<TopLine> all = body(width);
  page_ = height > 2 ? height - 2 : 1;
  const size_t room = height > 0 ? height - 1 : 0;
  scroll_ = std::min(scroll_, all.size() > room ? all.size() - room : 0);
  std::vector<TopLine> shown;
  if (height > 0) shown.push_back(cut(titleLine(), width));
  for (size_t i = scroll_; i < all.size() && shown.size() < height; ++i)
    shown.push_back(cut(std::move(all[i]), width));
  shown.resize(height);
  return shown;
}

std::vector<TopLine> TopView::drawAll(size_t width) const { return body(width); }

}  // namespace qgpu::ctl
