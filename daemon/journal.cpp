// SPDX-License-Identifier: GPL-2.0
#include "journal.hpp"

#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>

#include <mutex>

#include "clock.hpp"

namespace qgpu {

namespace {

constexpr uint64_t kOnceInNs = 60 * kSecondNs;
constexpr size_t kKeysMax = 4096;

// One thread logs.
struct About {
  std::string card, tenant;
} g_about;

// syslog(3)'s, which the journal has too.
int priorityOf(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::trace:
    case spdlog::level::debug:
      return 7;
    case spdlog::level::info:
      return 6;
    case spdlog::level::warn:
      return 4;
    case spdlog::level::err:
      return 3;
    case spdlog::level::critical:
    case spdlog::level::off:
    case spdlog::level::n_levels:
      break;
  }
  return 2;
}

class JournalSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit JournalSink(std::function<void(const JournalFields &)> send) : send_(std::move(send)) {}

 private:
  void sink_it_(const spdlog::details::log_msg &message) override {
    JournalFields fields = {
        "MESSAGE=" + std::string(message.payload.begin(), message.payload.end()),
        "PRIORITY=" + std::to_string(priorityOf(message.level)), "SYSLOG_IDENTIFIER=qgpud"};
    if (!g_about.card.empty()) fields.push_back("QGPU_CARD=" + g_about.card);
    if (!g_about.tenant.empty()) fields.push_back("QGPU_TENANT=" + g_about.tenant);
    send_(fields);
  }
  void flush_() override {}

  std::function<void(const JournalFields &)> send_;
};

}  // namespace

LogAbout::LogAbout(const std::string &card, const std::string &tenant) { g_about = {card, tenant}; }

LogAbout::~LogAbout() { g_about = {}; }

std::shared_ptr<spdlog::sinks::sink> journalSink(std::function<void(const JournalFields &)> send) {
  return std::make_shared<JournalSink>(std::move(send));
}

std::optional<uint64_t> LogLimit::admit(const std::string &key, uint64_t now_ns) {
  // Who makes new keys all the time shall not fill the memory.
  if (said_.size() >= kKeysMax && !said_.count(key)) said_.clear();
  auto [said, is_new] = said_.try_emplace(key, Said{now_ns, 0});
  if (is_new) return 0;
  if (now_ns < said->second.at_ns + kOnceInNs) {
    ++said->second.left_out;
    return std::nullopt;
  }
  const uint64_t left_out = said->second.left_out;
  said->second = {now_ns, 0};
  return left_out;
}

}  // namespace qgpu
