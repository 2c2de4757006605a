// SPDX-License-Identifier: GPL-2.0
#include "card_constants.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <sstream>

namespace qgpu::exec {
namespace {

// Of each: less is a fault of the measurement, more too.
constexpr uint64_t kCostMinNs = 1'000, kCostMaxNs = 5'000'000;
constexpr double kSliceUnitNs = 1024;
// Slices several times as long make so many times fewer visits at least: else they were not in
// force.
constexpr double kFewerVisits = 2;

struct Field {
  const char *name;
  uint64_t CardConstants::*value;
};

constexpr Field kFields[] = {{"visit_ns", &CardConstants::visit_ns},
                             {"gap_ns", &CardConstants::gap_ns},
                             {"slice_short_ns", &CardConstants::slice_short_ns},
                             {"duty_bias_ns", &CardConstants::duty_bias_ns},
                             {"measured_s", &CardConstants::measured_s}};

Error unlikely(const std::string &what, double ns) {
  return {ERANGE,
          what + " comes out at " + std::to_string(std::lround(ns / 1000)) +
              " us, which no card takes: did something else run?",
          {}};
}

// Of the i-th process, in parts of the clock's time and per nanosecond.
struct Rates {
  Rates(const CardMeasurement &m, size_t i)
      : held(static_cast<double>(m.traced.held_ns[i]) / spanNs(m, i)),
        visits(static_cast<double>(m.traced.visits[i]) / spanNs(m, i)),
        computed(m.computed[i]) {}
  static double spanNs(const CardMeasurement &m, size_t i) {
    return static_cast<double>(std::max<uint64_t>(m.traced.span_ns[i], 1));
  }
  double held, visits, computed;
};

// c of the head comment; not a number when the two say nothing.
double visitNs(const Rates &shorter, const Rates &longer) {
  const double above = longer.computed * shorter.held - shorter.computed * longer.held;
  return above / (longer.computed * shorter.visits - shorter.computed * longer.visits);
}

bool isLikely(double ns) {
  return ns >= static_cast<double>(kCostMinNs) && ns <= static_cast<double>(kCostMaxNs);
}

uint64_t roundNs(double ns) { return static_cast<uint64_t>(std::llround(std::max(ns, 0.0))); }

// How much less than `on` it computed in each turn; its scale is known by now.
double dutyBiasNs(const CardMeasurement &turns, double scale) {
  const double frame_ns = static_cast<double>(turns.on_ns + turns.off_ns);
  return static_cast<double>(turns.on_ns) - turns.computed[0] / scale * frame_ns;
}

}  // namespace

Result<CardConstants> cardConstants(const CardMeasurement &shorter, const CardMeasurement &longer,
                                    const std::optional<CardMeasurement> &turns) {
  double visit_ns = 0, short_ns = 0, scale = 0;
  for (size_t i = 0; i < kMeasuredMax; i++) {
    const Rates a(shorter, i), b(longer, i);
    if (a.visits < kFewerVisits * b.visits)
      return Error{ERANGE, "longer slices did not make fewer visits: they were not in force", {}};
    const double cost_ns = visitNs(a, b);
    if (!isLikely(cost_ns)) return unlikely("what a visit costs", cost_ns);
    const double computes_ns = a.held / a.visits - cost_ns;
    visit_ns += cost_ns / kMeasuredMax;
    short_ns += (static_cast<double>(shorter.slice_us) * kSliceUnitNs - computes_ns) / kMeasuredMax;
    scale += b.computed / (b.held - cost_ns * b.visits) / kMeasuredMax;
  }
  CardConstants out{};
  out.visit_ns = roundNs(visit_ns);
  out.gap_ns = shorter.traced.gap_ns;
  out.slice_short_ns = roundNs(short_ns);
  if (turns) {
    const double bias_ns = dutyBiasNs(*turns, scale);
    if (std::abs(bias_ns) > static_cast<double>(kCostMaxNs))
      return unlikely("what being stopped costs", bias_ns);
    out.duty_bias_ns = std::max<uint64_t>(roundNs(bias_ns), 1);
  }
  if (const auto done = checkConstants(out); !done) return done.error();
  return out;
}

Result<void> checkConstants(const CardConstants &c) {
  if (c.visit_ns < kCostMinNs || c.visit_ns > kCostMaxNs)
    return unlikely("what a visit costs", static_cast<double>(c.visit_ns));
  if (c.gap_ns < kCostMinNs || c.gap_ns > kCostMaxNs)
    return unlikely("the gap between two visits", static_cast<double>(c.gap_ns));
  if (c.slice_short_ns > kCostMaxNs)
    return unlikely("what a slice falls short of", static_cast<double>(c.slice_short_ns));
  if (c.duty_bias_ns > kCostMaxNs)
    return unlikely("what being stopped costs", static_cast<double>(c.duty_bias_ns));
  return {};
}

std::string constantsPath(const std::string &state_dir, const std::string &uuid) {
  return state_dir + "/" + uuid + ".card";
}

std::string formatConstants(const CardConstants &constants) {
  std::string out;
  for (const Field &field : kFields)
    out += std::string(field.name) + " " + std::to_string(constants.*field.value) + "\n";
  return out;
}

Result<CardConstants> parseConstants(const std::string &text) {
  CardConstants out{};
  std::istringstream in(text);
  for (const Field &field : kFields) {
    std::string name;
    if (!(in >> name >> out.*field.value) || name != field.name)
      return Error{EINVAL, "a card's constants cannot be understood", field.name};
  }
  if (const auto done = checkConstants(out); !done) return done.error();
  return out;
}

}  // namespace qgpu::exec
