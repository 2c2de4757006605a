// SPDX-License-Identifier: GPL-2.0
// What a card costs, out of what two measurements of it show; and the file that keeps it.
//
// Of a process that saturates, in parts of the clock's time: it held the engine for h, with v
// visits a second, and computed w as its own counters say, on a scale k that nobody knows exactly.
// Of each visit c computes nothing, so
//     w = k (h - c v).
// Two measurements with short and with long slices have the same k and c and quite different v:
//     c = (w1 h2 - w2 h1) / (w1 v2 - w2 v1).
// Nothing has to run alone for that. What a slice falls short of is its length less what a visit
// computes, h / v - c. One that is let run for `on` and stopped for `off` by turns computes
// w/k (on + off) a turn, which is short of `on` by the duty bias.
#pragma once

#include <optional>
#include <string>

#include "protocol.hpp"

namespace qgpu::exec {

// Of one measurement: what the trace showed, and what each process computed a second (on a scale
// of the load's own, near 1).
struct CardMeasurement {
  Measured traced;
  double computed[kMeasuredMax];
  uint64_t slice_us = 0, on_ns = 0, off_ns = 0;
};

// `shorter` and `longer`: two processes beside each other. `turns`: one alone, let run and stopped.
// ERANGE: no card is like that, most likely something else ran; the sentence has the figure.
Result<CardConstants> cardConstants(const CardMeasurement &shorter, const CardMeasurement &longer,
                                    const std::optional<CardMeasurement> &turns);

// Whether a card may be like that. ERANGE.
Result<void> checkConstants(const CardConstants &constants);

// "/var/lib/qgpu/GPU-....card": text, a name and a number a line.
std::string constantsPath(const std::string &state_dir, const std::string &uuid);
std::string formatConstants(const CardConstants &constants);
// EINVAL when something is missing or malformed; ERANGE.
Result<CardConstants> parseConstants(const std::string &text);

}  // namespace qgpu::exec
