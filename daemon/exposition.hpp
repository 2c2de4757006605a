// SPDX-License-Identifier: GPL-2.0
// The ledger and the settings as Prometheus reads them. Every series is listed in docs/metrics.md,
// which a test compares. Rates are the reader's: all times are cumulative, and a ratio of two of a
// card is exact because both are of one instant.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "card.hpp"
#include "cgroup.hpp"
#include "config.hpp"
#include "ledger.hpp"

namespace qgpu {

class Daemon;

enum class ExpositionFormat { kOpenMetrics, kPrometheusText };

// What is exposed, as values: a daemon's, or a test's. The pointed-to outlive the call.
struct ExpositionSource {
  std::string version;
  bool is_up = true;  // the driver is there; else no card is shown
  uint64_t read_failures = 0;
  uint64_t plans_sent = 0;
  bool is_held = false;  // the file and the edits contradict each other
  uint64_t now_ns = 0;
  const std::vector<CardSnapshot> *cards = nullptr;
  const Ledger *ledger = nullptr;
  const std::map<std::string, Error> *refusals = nullptr;  // by uuid
  const ConfigIr *config = nullptr;
  const CgroupPaths *paths = nullptr;
};
ExpositionSource expositionOf(const Daemon &daemon, const std::string &version);

std::string exposition(const ExpositionSource &source, ExpositionFormat format);

// Every family, in the order of the text.
struct MetricFamily {
  std::string name;  // as in 0.0.4's text: a counter ends in _total, an info in _info
  std::string type;
  std::string help;
};
std::vector<MetricFamily> metricFamilies();

// What a cgroup's path tells of the pod it belongs to; empty: nothing.
struct PodOfCgroup {
  std::string pod_uid;
  std::string container_id;
};
PodOfCgroup podOfCgroup(const std::string &path);

}  // namespace qgpu
