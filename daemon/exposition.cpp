// SPDX-License-Identifier: GPL-2.0
// Tables of series, one row each, and the text made of them. Reads no card and no file.
#include "exposition.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>

#include "clock.hpp"
#include "daemon.hpp"
#include "names.hpp"
#include "printable.hpp"

namespace qgpu {

namespace {

// Counters older than this are of a card that no longer tells any: no series.
constexpr uint64_t kFreshNs = 5 * kSecondNs;

enum class Type { kCounter, kGauge, kInfo, kHistogram };
enum class Unit { kNone, kNs, kPpm };  // of the number; shown as seconds, as a ratio

struct CardView {
  const CardSnapshot &card;
  const CardLedger *ledger;  // null: not fresh
  bool as_configured;
  std::string labels;
};

struct TenantView {
  const TenantStatus &tenant;
  const Sample *counted;  // null: not fresh
  std::string labels;
};

template <class View>
struct Row {
  const char *name;  // without _total and _info
  Type type;
  Unit unit;
  const char *help;
  std::optional<uint64_t> (*value)(const View &);
  const char *label = nullptr;  // one more, ready-made
};

using Source = ExpositionSource;
constexpr Row<Source> kDaemonRows[] = {
    {"qgpu_up", Type::kGauge, Unit::kNone, "Whether the driver of the cards answers qgpud",
     [](const Source &s) -> std::optional<uint64_t> { return s.is_up; }},
    {"qgpu_held", Type::kGauge, Unit::kNone,
     "Whether file and run-time edits contradict each other, so that nothing is applied",
     [](const Source &s) -> std::optional<uint64_t> { return s.is_held; }},
    {"qgpu_read_failures", Type::kCounter, Unit::kNone, "How often counters could not be read",
     [](const Source &s) -> std::optional<uint64_t> { return s.read_failures; }},
    {"qgpu_plans_sent", Type::kCounter, Unit::kNone, "Plans told to cards",
     [](const Source &s) -> std::optional<uint64_t> { return s.plans_sent; }},
};

std::optional<uint64_t> unaccountedOf(const CardView &view) {
  if (!view.ledger) return std::nullopt;
  const int64_t ns = view.ledger->unaccountedNs();
  return ns > 0 ? static_cast<uint64_t>(ns) : 0;
}

template <class Read>
std::optional<uint64_t> counted(const CardView &view, Read read) {
  return view.ledger ? std::optional<uint64_t>(read(*view.ledger)) : std::nullopt;
}

template <class Read>
std::optional<uint64_t> ofExecutor(const CardView &view, Read read) {
  const auto &executor = view.card.info.executor;
  return executor ? std::optional<uint64_t>(read(*executor)) : std::nullopt;
}

#define CARD(read) \
  [](const CardView &v) { return counted(v, [](const CardLedger &c) -> uint64_t { return read; }); }
#define EXECUTOR(read)                                                            \
  [](const CardView &v) {                                                         \
    return ofExecutor(v, [](const ExecutorInfo &e) -> uint64_t { return read; }); \
  }
constexpr const char *kTimeHelp =
    "The card's time by what it went to; the parts add up to qgpu_card_elapsed_seconds_total";
constexpr Row<CardView> kCardRows[] = {
    {"qgpu_card_healthy", Type::kGauge, Unit::kNone, "Whether the card does as it is told",
     [](const CardView &v) -> std::optional<uint64_t> {
       return v.card.info.state == QGPU_CARD_OK;
     }},
    {"qgpu_card_as_configured", Type::kGauge, Unit::kNone,
     "Whether the card took the plan that the configuration asks",
     [](const CardView &v) -> std::optional<uint64_t> { return v.as_configured; }},
    {"qgpu_card_counted", Type::kGauge, Unit::kNone,
     "Whether the card's counters were read in the last 5 s; without, their series are absent",
     [](const CardView &v) -> std::optional<uint64_t> { return v.ledger != nullptr; }},
    {"qgpu_card_cycle_seconds", Type::kGauge, Unit::kNs, "The rotation's cycle, 0 = none",
     [](const CardView &v) -> std::optional<uint64_t> { return v.card.info.cycle_ns; }},
    {"qgpu_card_elapsed_seconds", Type::kCounter, Unit::kNs, "Time since counting began",
     CARD(c.elapsedNs())},
    {"qgpu_card_time_seconds", Type::kCounter, Unit::kNs, kTimeHelp,
     CARD(c.tenantsNs() + c.totals.removed_ns), "state=\"tenants\""},
    {"qgpu_card_time_seconds", Type::kCounter, Unit::kNs, kTimeHelp,
     CARD(c.nobody_ns - std::min(c.nobody_ns, c.totals.removed_ns)), "state=\"nobody\""},
    {"qgpu_card_time_seconds", Type::kCounter, Unit::kNs, kTimeHelp, CARD(c.totals.switch_ns),
     "state=\"switching\""},
    {"qgpu_card_time_seconds", Type::kCounter, Unit::kNs, kTimeHelp, CARD(c.totals.idle_ns),
     "state=\"idle\""},
    {"qgpu_card_time_seconds", Type::kCounter, Unit::kNs, kTimeHelp, unaccountedOf,
     "state=\"unaccounted\""},
    {"qgpu_card_submits", Type::kCounter, Unit::kNone, "Runlists put on the card",
     CARD(c.totals.submits)},
    {"qgpu_card_preempts", Type::kCounter, Unit::kNone, "Preemptions asked of the card",
     CARD(c.totals.preempts)},
    {"qgpu_executor_processes", Type::kGauge, Unit::kNone, "Processes under the executor's control",
     EXECUTOR(e.processes)},
    {"qgpu_executor_gap_seconds", Type::kGauge, Unit::kNs,
     "The longest time that a process of now was not under control", EXECUTOR(e.gap_ns)},
    {"qgpu_executor_controls", Type::kCounter, Unit::kNone, "Scheduling controls issued",
     EXECUTOR(e.controls)},
    {"qgpu_executor_controls_refused", Type::kCounter, Unit::kNone,
     "Controls that the driver refused", EXECUTOR(e.controls_refused)},
    {"qgpu_executor_foreign_changes", Type::kCounter, Unit::kNone,
     "Changes by others that were put right", EXECUTOR(e.foreign_changes)},
    {"qgpu_executor_lost_records", Type::kCounter, Unit::kNone,
     "Records of the trace that were lost", EXECUTOR(e.lost_records)},
    {"qgpu_executor_restarts", Type::kCounter, Unit::kNone, "Restarts of the executor's worker",
     EXECUTOR(e.restarts)},
};
#undef CARD
#undef EXECUTOR

#define COUNTED(field)                                 \
  [](const TenantView &v) -> std::optional<uint64_t> { \
    if (!v.counted) return std::nullopt;               \
    return v.counted->field;                           \
  }
#define SETTING(field) [](const TenantView &v) -> std::optional<uint64_t> { return v.tenant.field; }
constexpr Row<TenantView> kTenantRows[] = {
    {"qgpu_tenant_run_seconds", Type::kCounter, Unit::kNs, "Time on the engine", COUNTED(run_ns)},
    {"qgpu_tenant_run_error_seconds", Type::kGauge, Unit::kNs,
     "Bound of the error of qgpu_tenant_run_seconds_total", COUNTED(run_err_ns)},
    {"qgpu_tenant_wait_seconds", Type::kCounter, Unit::kNs, "Time with work and not on the engine",
     COUNTED(wait_ns)},
    {"qgpu_tenant_wait_max_seconds", Type::kGauge, Unit::kNs,
     "The longest single wait since counting began", COUNTED(wait_max_ns)},
    {"qgpu_tenant_throttled_seconds", Type::kCounter, Unit::kNs,
     "Time with work while its share was used up", COUNTED(throttled_ns)},
    {"qgpu_tenant_visits", Type::kCounter, Unit::kNone, "Times that it had the engine",
     COUNTED(visits)},
    {"qgpu_tenant_windows", Type::kCounter, Unit::kNone, "Windows of its own that were opened",
     COUNTED(windows)},
    {"qgpu_tenant_preempts", Type::kCounter, Unit::kNone, "Times that its work was cut",
     COUNTED(preempts)},
    {"qgpu_tenant_overruns", Type::kCounter, Unit::kNone, "Windows that ended late",
     COUNTED(overruns)},
    {"qgpu_tenant_hangs", Type::kCounter, Unit::kNone,
     "Kernels that ran longer than its hang_timeout while others waited", COUNTED(hangs)},
    {"qgpu_tenant_weight", Type::kGauge, Unit::kNone, "Weight asked", SETTING(asked.weight)},
    {"qgpu_tenant_guarantee_ratio", Type::kGauge, Unit::kPpm, "Guarantee asked",
     SETTING(asked.guarantee_ppm)},
    {"qgpu_tenant_ceiling_ratio", Type::kGauge, Unit::kPpm, "Ceiling asked, 1 = none",
     SETTING(asked.ceiling_ppm)},
    {"qgpu_tenant_share_ratio", Type::kGauge, Unit::kPpm,
     "Share by the plan among those that have work now", SETTING(share_ppm)},
    {"qgpu_tenant_slice_seconds", Type::kGauge, Unit::kNs, "Slice as the chip took it",
     SETTING(slice_ns)},
    {"qgpu_tenant_awake", Type::kGauge, Unit::kNone, "Whether it has work now", SETTING(awake)},
    {"qgpu_tenant_tsgs", Type::kGauge, Unit::kNone, "Time-slice groups on the card", SETTING(tsgs)},
};
#undef COUNTED
#undef SETTING

struct HistogramRow {
  const char *name;
  const char *help;
  const std::optional<Histogram> Sample::*histogram;
};
constexpr HistogramRow kHistogramRows[] = {
    {"qgpu_tenant_wait_duration_seconds", "Single waits, from having work to running",
     &Sample::waits},
    {"qgpu_tenant_tail_duration_seconds",
     "How long work that could not be cut kept the engine when it was to leave", &Sample::tails},
};
// Every so many of the kernel's bins are one bucket here: factors of 4 are enough for quantiles.
constexpr size_t kBinsOfBucket = 2;

struct InfoRow {
  const char *name;
  const char *help;
};
constexpr InfoRow kBuild = {"qgpu_build", "Version of qgpud"};
constexpr InfoRow kCard = {"qgpu_card", "What the card is and how it is driven"};
constexpr InfoRow kCgroup = {"qgpu_tenant_cgroup",
                             "A cgroup of the tenant, with the pod that its path names"};

const char *suffixOf(Type type) {
  return type == Type::kCounter ? "_total" : type == Type::kInfo ? "_info" : "";
}

const char *typeName(Type type, ExpositionFormat format) {
  if (type == Type::kHistogram) return "histogram";
  if (type == Type::kInfo) return format == ExpositionFormat::kOpenMetrics ? "info" : "gauge";
  return type == Type::kCounter ? "counter" : "gauge";
}

// Prometheus refuses a whole scrape for one byte that is no UTF-8.
std::string label(const char *name, const std::string &value) {
  std::string out = std::string(name) + "=\"";
  for (char c : printable(value)) {
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out + "\"";
}

class Text {
 public:
  explicit Text(ExpositionFormat format) : format_(format) {}

  void head(const char *name, Type type, Unit unit, const char *help) {
    const bool open = format_ == ExpositionFormat::kOpenMetrics;
    const std::string family = std::string(name) + (open ? "" : suffixOf(type));
    out_ += "# HELP " + family + " " + help + "\n# TYPE " + family + " " + typeName(type, format_) +
            "\n";
    if (open && unit == Unit::kNs) out_ += "# UNIT " + family + " seconds\n";
    if (open && unit == Unit::kPpm) out_ += "# UNIT " + family + " ratio\n";
  }

  void line(const char *name, Type type, const std::string &labels, const char *more, Unit unit,
            uint64_t value) {
    out_ += name;
    out_ += suffixOf(type);
    if (!labels.empty() || more) {
      out_ += '{';
      out_ += labels;
      if (more) (out_ += labels.empty() ? "" : ",") += more;
      out_ += '}';
    }
    out_ += ' ';
    number(unit, value);
    out_ += '\n';
  }

  void histogram(const char *name, const std::string &labels, const Histogram &histogram) {
    const auto begin = [&](const char *suffix) {
      out_ += name;
      out_ += suffix;
      out_ += '{';
      out_ += labels;
    };
    uint64_t count = 0;
    for (size_t bin = 0; bin < histogram.bins.size(); ++bin) {
      count += histogram.bins[bin];
      const bool is_last = bin + 1 == histogram.bins.size();
      if (!is_last && bin % kBinsOfBucket != kBinsOfBucket - 1) continue;
      begin("_bucket");
      out_ += ",le=\"";
      if (is_last)
        out_ += "+Inf";
      else
        number(Unit::kNs, Histogram::boundNs(bin));
      out_ += "\"} ";
      decimal(count);
      out_ += '\n';
    }
    begin("_sum");
    out_ += "} ";
    number(Unit::kNs, histogram.sum_ns);
    out_ += '\n';
    begin("_count");
    out_ += "} ";
    decimal(count);
    out_ += '\n';
  }

  std::string take() {
    if (format_ == ExpositionFormat::kOpenMetrics) out_ += "# EOF\n";
    return std::move(out_);
  }

 private:
  // All digits: what is shown equals what was counted.
  void number(Unit unit, uint64_t value) {
    const uint64_t whole = unit == Unit::kNs ? kSecondNs : unit == Unit::kPpm ? QGPU_PPM : 1;
    decimal(value / whole);
    if (whole == 1) return;
    out_ += '.';
    for (uint64_t digit = whole / 10; digit; digit /= 10)
      out_ += static_cast<char>('0' + value / digit % 10);
  }

  void decimal(uint64_t value) {
    char digits[24];
    out_.append(digits, std::to_chars(digits, digits + sizeof(digits), value).ptr);
  }

  ExpositionFormat format_;
  std::string out_;
};

template <class View, size_t kCount>
void write(Text &text, const Row<View> (&rows)[kCount], const std::vector<View> &views) {
  const char *former = "";
  for (const Row<View> &row : rows) {
    if (std::string_view(former) != row.name) text.head(row.name, row.type, row.unit, row.help);
    former = row.name;
    for (const View &view : views)
      if (auto value = row.value(view))
        text.line(row.name, row.type, view.labels, row.label, row.unit, *value);
  }
}

void writeHistograms(Text &text, const std::vector<TenantView> &views) {
  for (const HistogramRow &row : kHistogramRows) {
    text.head(row.name, Type::kHistogram, Unit::kNs, row.help);
    for (const TenantView &view : views)
      if (view.counted && view.counted->*row.histogram)
        text.histogram(row.name, view.labels, *(view.counted->*row.histogram));
  }
}

std::string cardLabels(const CardInfo &info) {
  return label("gpu", std::to_string(info.index)) + "," + label("uuid", info.uuid);
}

// The patterns of the file: they stay as long as the file does, unlike the cgroups they match.
std::string patternsOf(const ConfigIr &config, const std::string &tenant) {
  std::string out;
  if (const TenantEntry *entry = config.findTenant(tenant))
    for (const CgroupPattern &pattern : entry->cgroups)
      out += (out.empty() ? "" : ",") + pattern.path;
  return out;
}

const CardLedger *freshLedger(const Source &source, uint32_t card) {
  const CardLedger *ledger = source.ledger->card(card);
  return ledger && source.now_ns < ledger->read_ns + kFreshNs ? ledger : nullptr;
}

std::vector<CardView> cardViews(const Source &source) {
  std::vector<CardView> views;
  if (source.is_up)
    for (const CardSnapshot &card : *source.cards)
      views.push_back({card, freshLedger(source, card.info.index),
                       !source.refusals->count(card.info.uuid), cardLabels(card.info)});
  return views;
}

std::vector<TenantView> tenantViews(const Source &source, const std::vector<CardView> &cards) {
  std::map<std::string, std::string> names;  // the labels of each, made once
  std::vector<TenantView> views;
  for (const CardView &card : cards) {
    for (const TenantStatus &tenant : card.card.tenants) {
      std::string &labels = names[tenant.name];
      if (labels.empty())
        labels = "," + label("tenant", tenant.name) + "," +
                 label("cgroup", patternsOf(*source.config, tenant.name));
      const Sample *counted = nullptr;
      if (card.ledger)
        if (auto at = card.ledger->tenants.find(tenant.id); at != card.ledger->tenants.end())
          counted = &at->second;
      views.push_back({tenant, counted, card.labels + labels});
    }
  }
  return views;
}

void writeInfos(Text &text, const Source &source, const std::vector<CardView> &cards) {
  const auto head = [&](const InfoRow &row) {
    text.head(row.name, Type::kInfo, Unit::kNone, row.help);
  };
  const auto line = [&](const InfoRow &row, const std::string &labels) {
    text.line(row.name, Type::kInfo, labels, nullptr, Unit::kNone, 1);
  };
  head(kBuild);
  line(kBuild, label("version", source.version));
  head(kCard);
  for (const CardView &view : cards) {
    const CardInfo &info = view.card.info;
    line(kCard, view.labels + "," + label("name", info.name) + "," +
                    label("method", methodName(info.method)) + "," +
                    label("policy", policyName(info.policy)) + "," +
                    label("simulated", info.simulated ? "true" : "false"));
  }
  head(kCgroup);
  for (const auto &[tenant, paths] : *source.paths)
    for (const std::string &path : paths) {
      const PodOfCgroup pod = podOfCgroup(path);
      line(kCgroup, label("tenant", tenant) + "," + label("cgroup", path) + "," +
                        label("pod_uid", pod.pod_uid) + "," +
                        label("container_id", pod.container_id));
    }
}

template <class View, size_t kCount>
void list(std::vector<MetricFamily> &families, const Row<View> (&rows)[kCount]) {
  for (const Row<View> &row : rows) {
    const std::string name = std::string(row.name) + suffixOf(row.type);
    if (families.empty() || families.back().name != name)
      families.push_back({name, typeName(row.type, ExpositionFormat::kOpenMetrics), row.help});
  }
}

bool isHex(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

ExpositionSource expositionOf(const Daemon &daemon, const std::string &version) {
  return {version,
          !daemon.driverError(),
          daemon.readFailures(),
          daemon.plansSent(),
          !daemon.held().empty(),
          daemon.nowNs(),
          &daemon.cards(),
          &daemon.ledger(),
          &daemon.refusals(),
          &daemon.config(),
          &daemon.cgroupPaths()};
}

std::string exposition(const ExpositionSource &source, ExpositionFormat format) {
  Text text(format);
  for (const auto &row : kDaemonRows) {
    text.head(row.name, row.type, row.unit, row.help);
    text.line(row.name, row.type, "", row.label, row.unit, *row.value(source));
  }
  const std::vector<CardView> cards = cardViews(source);
  writeInfos(text, source, cards);
  write(text, kCardRows, cards);
  const std::vector<TenantView> tenants = tenantViews(source, cards);
  write(text, kTenantRows, tenants);
  writeHistograms(text, tenants);
  return text.take();
}

std::vector<MetricFamily> metricFamilies() {
  std::vector<MetricFamily> families;
  list(families, kDaemonRows);
  for (const InfoRow &row : {kBuild, kCard, kCgroup})
    families.push_back({std::string(row.name) + "_info", "info", row.help});
  list(families, kCardRows);
  list(families, kTenantRows);
  for (const HistogramRow &row : kHistogramRows)
    families.push_back({row.name, "histogram", row.help});
  return families;
}

// .../kubepods-burstable-pod0b1c_..._9.slice/cri-containerd-64hex.scope with the systemd driver,
// .../kubepods/burstable/pod0b1c-...-9/64hex with the other.
PodOfCgroup podOfCgroup(const std::string &path) {
  PodOfCgroup pod;
  for (size_t at = 1; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    std::string part = path.substr(at, end - at);
    at = end + 1;
    for (const char *suffix : {".slice", ".scope"})
      if (part.ends_with(suffix)) part.resize(part.size() - 6);
    const size_t dash = part.rfind("-pod");
    const size_t begin = part.starts_with("pod") ? 3 : dash == std::string::npos ? 0 : dash + 4;
    std::string uid = begin ? part.substr(begin) : "";
    for (char &c : uid)
      if (c == '_') c = '-';
    constexpr size_t kUidSize = 36, kIdSize = 64;
    if (uid.size() == kUidSize && uid.find_first_not_of("0123456789abcdef-") == std::string::npos) {
      pod = {uid, ""};
      continue;
    }
    if (pod.pod_uid.empty() || part.size() < kIdSize) continue;
    const std::string id = part.substr(part.size() - kIdSize);
    if (isHex(id)) pod.container_id = id;
  }
  return pod;
}

}  // namespace qgpu
