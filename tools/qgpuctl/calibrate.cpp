// SPDX-License-Identifier: GPL-2.0
// qgpuctl calibrate: what a card of method rm costs, measured with own processes and stored where
// its executor uses it. Three measurements: two loads with short slices, two with long ones, and
// one that is let run and stopped by turns.
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <ctime>
#include <optional>

#include "connection.hpp"
#include "measuring.hpp"
#include "verb.hpp"

namespace qgpu::ctl {

namespace {

constexpr uint64_t kShortSliceUs = 1000, kLongSliceUs = 10'000;
constexpr uint64_t kOnNs = 5'000'000, kOffNs = 15'000'000;

struct CalibrateOptions {
  std::string card, load;
  bool force = false, dry_run = false, json = false;
  double seconds = 2;
};

struct Place {
  std::string uuid, socket;
  bool simulated = false;
  Json costs;
};

std::string folderOf(const std::string &path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

// The one beside this program, else whatever the search finds.
std::string loadProgram(const std::string &asked) {
  if (!asked.empty()) return asked;
  char self[PATH_MAX];
  const ssize_t n = readlink("/proc/self/exe", self, sizeof(self));
  const std::string beside =
      n > 0 ? folderOf(std::string(self, static_cast<size_t>(n))) + "/qgpu-load" : "";
  return !beside.empty() && access(beside.c_str(), X_OK) == 0 ? beside : "qgpu-load";
}

Result<Place> findPlace(const std::string &socket, const std::string &wanted) {
  auto status = askDaemon(socket, {{"verb", "status"}});
  if (!status) return status.error();
  std::optional<Place> found;
  for (const Json &card : status->value("cards", Json::array())) {
    const std::string uuid = card.value("uuid", ""), index = std::to_string(card.value("index", 0));
    if (wanted.empty() ? card.value("method", "") != "rm" : wanted != uuid && wanted != index)
      continue;
    if (card.value("method", "") != "rm")
      return Error{EOPNOTSUPP, "only cards of method rm are calibrated", wanted};
    if (found) return Error{EINVAL, "there are several cards: say which with --card", "card"};
    found = Place{uuid, exec::calibrateSocketPath(folderOf(socket), uuid),
                  card.value("simulated", false),
                  card.value("executor", Json::object()).value("costs", Json::object())};
  }
  if (!found) return Error{ENODEV, "there is no such card of method rm", wanted};
  return *found;
}

// All measurements of one card.
class Calibrator {
 public:
  Calibrator(const Place &place, const CalibrateOptions &options)
      : place_(place), options_(options), program_(loadProgram(options.load)) {}

  Result<exec::CardConstants> run();

 private:
  std::vector<std::string> arguments(double warmup, double seconds) const;
  Result<void> findSpeed();
  Result<exec::CardMeasurement> measure(size_t loads, uint64_t slice_us, bool turns);
  Result<double> computedBy(LoadChild &load, uint64_t settled_ns, uint64_t &from_ns,
                            uint64_t &to_ns) const;

  Place place_;
  CalibrateOptions options_;
  std::string program_;
  double loops_per_us_ = 0;
};

std::vector<std::string> Calibrator::arguments(double warmup, double seconds) const {
  std::vector<std::string> out = {"--json",
                                  "--depth",
                                  "32",
                                  "--warmup",
                                  std::to_string(warmup),
                                  "--seconds",
                                  std::to_string(seconds)};
  const auto add = [&](std::initializer_list<std::string> more) {
    out.insert(out.end(), more.begin(), more.end());
  };
  if (place_.simulated)
    add({"--kernel-us", "200"});
  else
    add({"--kernel-us", "200", "--cuda"});
  if (loops_per_us_ > 0) add({"--loops-per-us", std::to_string(loops_per_us_)});
  return out;
}

// Of a real card: loads that begin beside each other would each find another.
Result<void> Calibrator::findSpeed() {
  if (place_.simulated) return {};
  auto load = LoadChild::start(program_, arguments(0.1, 0.3), place_.uuid);
  if (!load) return load.error();
  const auto json = (*load)->wait();
  if (!json) return json.error();
  loops_per_us_ = json->value("loops_per_us", 0.0);
  return {};
}

// A second, as its own counters have it; and when that was.
Result<double> Calibrator::computedBy(LoadChild &load, uint64_t settled_ns, uint64_t &from_ns,
                                      uint64_t &to_ns) const {
  const auto json = load.wait();
  if (!json) return json.error();
  from_ns = json->value("begin_ns", uint64_t{0});
  to_ns = from_ns + static_cast<uint64_t>(json->value("seconds", 0.0) * 1e9);
  if (from_ns < settled_ns)
    return Error{ETIMEDOUT, "the loads were under control too late: give them more --seconds", {}};
  const double seconds = json->value("seconds", 0.0);
  const double busy_s =
      place_.simulated ? json->value("busy_ns", 0.0) / 1e9 : json->value("work_us", 0.0) / 1e6;
  if (seconds <= 0 || busy_s <= 0) return Error{EBADMSG, "a load got nothing done", {}};
  return busy_s / seconds;
}

// The loads go on until they have counted, and then the executor is asked what each held the card
// for in just that time.
Result<exec::CardMeasurement> Calibrator::measure(size_t loads, uint64_t slice_us, bool turns) {
  auto measurer = Measurer::open(place_.socket);
  if (!measurer) return measurer.error();
  const double seconds = options_.seconds, warmup = place_.simulated ? seconds : 1 + 1.5 * seconds;
  exec::MeasureRequest request{};
  request.until_ns =
      monotonicNowNs() + static_cast<uint64_t>((warmup + seconds - 0.1 * seconds) * 1e9);
  std::vector<std::unique_ptr<LoadChild>> children;
  std::vector<int> pidfds;
  for (size_t i = 0; i < loads; i++) {
    auto child = LoadChild::start(program_, arguments(warmup, seconds), place_.uuid);
    if (!child) return child.error();
    request.pids[i] = (*child)->pid();
    pidfds.push_back((*child)->pidfd());
    children.push_back(std::move(*child));
  }
  request.process_count = static_cast<uint32_t>(loads);
  request.flags = options_.force ? exec::kMeasureForce : 0;
  request.slice_us = slice_us;
  request.on_ns = turns ? kOnNs : 0;
  request.off_ns = turns ? kOffNs : 0;
  const auto traced = measurer->measure(request, pidfds);
  if (!traced) return traced.error();
  exec::CardMeasurement out{*traced, {}, slice_us, request.on_ns, request.off_ns};
  exec::SpansRequest spans{};
  for (size_t i = 0; i < loads; i++) {
    const auto computed =
        computedBy(*children[i], traced->from_ns, spans.from_ns[i], spans.to_ns[i]);
    if (!computed) return computed.error();
    out.computed[i] = *computed;
  }
  const auto held = measurer->spans(spans);
  if (!held) return held.error();
  out.traced = *held;
  return out;
}

Result<exec::CardConstants> Calibrator::run() {
  if (const auto done = findSpeed(); !done) return done.error();
  const auto shorter = measure(2, kShortSliceUs, false);
  if (!shorter) return shorter.error();
  const auto longer = measure(2, kLongSliceUs, false);
  if (!longer) return longer.error();
  std::optional<exec::CardMeasurement> turns;
  if (!options_.force) {
    const auto alone = measure(1, kLongSliceUs, true);
    if (!alone) return alone.error();
    turns = *alone;
  }
  auto constants = exec::cardConstants(*shorter, *longer, turns);
  if (constants) constants->measured_s = static_cast<uint64_t>(std::time(nullptr));
  return constants;
}

Result<exec::CardConstants> calibrate(const std::string &socket, const CalibrateOptions &options,
                                      Place &place) {
  auto found = findPlace(socket, options.card);
  if (!found) return found.error();
  place = *found;
  auto constants = Calibrator(place, options).run();
  if (!constants || options.dry_run) return constants;
  auto measurer = Measurer::open(place.socket);
  if (!measurer) return measurer.error();
  if (const auto stored = measurer->store(*constants); !stored) return stored.error();
  return constants;
}

void print(const Place &place, const CalibrateOptions &options,
           const exec::CardConstants &constants) {
  const std::pair<const char *, uint64_t> values[] = {{"visit_ns", constants.visit_ns},
                                                      {"switch_gap_ns", constants.gap_ns},
                                                      {"slice_short_ns", constants.slice_short_ns},
                                                      {"duty_bias_ns", constants.duty_bias_ns}};
  if (options.json) {
    Json out = {{"card", place.uuid}, {"stored", !options.dry_run}, {"before", place.costs}};
    for (const auto &[name, value] : values) out["measured"][name] = value;
    std::printf("%s\n", out.dump(2).c_str());
    return;
  }
  static const char *const kMeanings[] = {
      "of a visit nothing is computed for", "from one visit to the next take",
      "a visit is shorter than its slice by", "who is let run and stopped computes less by"};
  std::printf("card %s: a switch costs %.1f us%s\n", place.uuid.c_str(),
              static_cast<double>(constants.visit_ns + constants.gap_ns) / 1e3,
              options.dry_run ? " (nothing was stored)" : ", stored");
  for (size_t i = 0; i < std::size(values); i++) {
    const double before = place.costs.value(values[i].first, 0.0) / 1e3;
    if (values[i].second || i != std::size(values) - 1)
      std::printf("  %-44s %7.1f us (was %.1f)\n", kMeanings[i],
                  static_cast<double>(values[i].second) / 1e3, before);
    else
      std::printf("  %-44s not measured (%.1f us stays)\n", kMeanings[i], before);
  }
}

}  // namespace

void addCalibrate(CLI::App &app, Context &context) {
  auto *verb = app.add_subcommand("calibrate", "measure what a card of method rm costs");
  auto options = std::make_shared<CalibrateOptions>();
  verb->add_option("--card", options->card, "uuid or index, where there are several");
  verb->add_flag("--force", options->force, "although others have work on the card");
  verb->add_flag("--dry-run", options->dry_run, "measure and print, store nothing");
  verb->add_flag("--json", options->json, "print one JSON object");
  verb->add_option("--seconds", options->seconds, "of each of the three measurements")
      ->check(CLI::Range(0.5, 20.0))
      ->capture_default_str();
  verb->add_option("--load", options->load, "the qgpu-load to use; default: beside this program");
  verb->footer("example: qgpuctl calibrate --card 0 --dry-run");
  verb->callback([&context, options] {
    Place place;
    try {
      const auto constants = calibrate(context.socket, *options, place);
      if (!constants)
        context.exit_code = complain(constants.error());
      else
        print(place, *options, *constants);
    } catch (const std::exception &error) {
      context.exit_code = complain({EBADMSG, error.what(), ""});
    }
  });
}

}  // namespace qgpu::ctl
