// SPDX-License-Identifier: GPL-2.0
// What a card says about itself as JSON: the same shape from the daemon and, with the daemon dead,
// from qgpuctl. Shares are ppm and times ns here; the screen makes percent of them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "card.hpp"
#include "ledger.hpp"
#include "metrics.hpp"

namespace qgpu {

// metrics: may be null, then there are no measured shares. ledger: likewise for counters.
nlohmann::json toJson(const CardSnapshot &card, const Metrics *metrics,
                      const Ledger *ledger = nullptr);
nlohmann::json toJson(const CardEvent &event);
// A record of a log between qgpud and qgpuctl: in numbers, for there are many.
nlohmann::json toJson(const LogRecord &record);
// Throws nlohmann's exceptions where it is none.
LogRecord logRecordFrom(const nlohmann::json &json);
// On one line, whatever the bytes in its texts are.
std::string lineOf(const nlohmann::json &json);

}  // namespace qgpu
