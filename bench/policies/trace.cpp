// SPDX-License-Identifier: GPL-2.0
//
// trace.cpp - reads a trace of requests (trace.hpp)
#include "policies/trace.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace qgpu::bench {
namespace {

std::vector<std::string> fieldsOf(std::string line) {
  if (!line.empty() && line.back() == '\r') line.pop_back();
  std::vector<std::string> fields;
  std::stringstream in(line);
  for (std::string field; std::getline(in, field, ',');) fields.push_back(field);
  return fields;
}

// Seconds since the epoch of the civil calendar; false = not a time.
bool parseTime(const std::string &text, double &seconds) {
  int year, month, day, hour, minute;
  double second;
  if (std::sscanf(text.c_str(), "%d-%d-%d %d:%d:%lf", &year, &month, &day, &hour, &minute,
                  &second) != 6)
    return false;
  // Days since 1970-01-01, months counted from March.
  const int y = month <= 2 ? year - 1 : year, m = (month + 9) % 12;
  const int days = 365 * y + y / 4 - y / 100 + y / 400 + (m * 306 + 5) / 10 + day - 1 - 719468;
  seconds = days * 86400.0 + hour * 3600 + minute * 60 + second;
  return true;
}

}  // namespace

std::vector<Request> readTrace(const std::string &path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error(path + ": cannot be read");
  std::string line;
  std::getline(in, line);
  const auto header = fieldsOf(line);
  const auto column = [&](const char *name) {
    const auto it = std::find(header.begin(), header.end(), name);
    if (it == header.end()) throw std::runtime_error(path + ": no column " + name);
    return static_cast<size_t>(it - header.begin());
  };
  const size_t time = column("TIMESTAMP"), context = column("ContextTokens"),
               generated = column("GeneratedTokens");

  std::vector<Request> requests;
  double first = 0;
  for (unsigned number = 2; std::getline(in, line); number++) {
    const auto fields = fieldsOf(line);
    if (fields.empty()) continue;
    double seconds = 0;
    Request request{};
    if (fields.size() != header.size() || !parseTime(fields[time], seconds) ||
        std::sscanf(fields[context].c_str(), "%u", &request.context_tokens) != 1 ||
        std::sscanf(fields[generated].c_str(), "%u", &request.generated_tokens) != 1)
      throw std::runtime_error(path + ":" + std::to_string(number) + ": not a request");
    if (requests.empty()) first = seconds;
    request.at_ns = static_cast<uint64_t>(std::llround(std::max(0.0, seconds - first) * 1e9));
    requests.push_back(request);
  }
  std::stable_sort(requests.begin(), requests.end(),
                   [](const Request &a, const Request &b) { return a.at_ns < b.at_ns; });
  if (requests.empty()) throw std::runtime_error(path + ": no requests");
  return requests;
}

}  // namespace qgpu::bench
