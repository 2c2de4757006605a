// SPDX-License-Identifier: GPL-2.0
// Which cards have an executor, and when each is looked after: when it says something, and ten
// times a second, because nothing tells of processes.
#include "rm_card.hpp"

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>

namespace qgpu {

namespace {

constexpr long kTickNs = 100'000'000;

// A pidfd for each process of a tenant.
void raiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

RmCard::RmCard(Places places, Wishes wishes, const Clock &clock)
    : places_(std::move(places)),
      wishes_(std::move(wishes)),
      clock_(clock),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      timer_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
  epoll_event event{};
  event.events = EPOLLIN;
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, timer_.get(), &event);
}

void RmCard::armTimer() {
  const bool needed = !executors_.empty();
  if (needed == timer_runs_) return;
  timer_runs_ = needed;
  if (needed) raiseDescriptorLimit();
  itimerspec spec{};
  if (needed) spec = {{0, kTickNs}, {0, kTickNs}};
  timerfd_settime(timer_.get(), 0, &spec, nullptr);
}

void RmCard::watchLinks() {
  for (const auto &[uuid, executor] : executors_) {
    if (executor->fd() < 0 || watched_[uuid] == executor->connections()) continue;
    epoll_event event{};
    event.events = EPOLLIN;
    // A closed descriptor has left the set by itself.
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, executor->fd(), &event) == 0)
      watched_[uuid] = executor->connections();
  }
}

void RmCard::refresh(const std::vector<NvidiaCard> &cards) {
  std::map<std::string, std::unique_ptr<RmExecutor>> kept;
  for (const NvidiaCard &card : cards) {
    CardInfo info;
    info.index = card.minor;
    info.uuid = card.uuid;
    info.name = card.name;
    if (!wishes_.wants(info)) continue;
    auto at = executors_.find(card.uuid);
    if (at != executors_.end() && at->second->card().minor == card.minor)
      kept[card.uuid] = std::move(at->second);
    else
      kept[card.uuid] = std::make_unique<RmExecutor>(card, places_.executors, clock_);
  }
  // Whoever is dropped goes on with its last plan.
  executors_ = std::move(kept);
  std::erase_if(watched_, [&](const auto &entry) { return !executors_.count(entry.first); });
  armTimer();
  watchLinks();
}

Result<std::vector<CardSnapshot>> RmCard::inventory() {
  std::vector<CardSnapshot> snapshots;
  if (!wishes_.wants_any()) {
    refresh({});
    return snapshots;
  }
  auto cards = nvidiaCards(places_.nvidia_proc);
  refresh(cards ? *cards : std::vector<NvidiaCard>());
  if (!cards) return cards.error();
  for (const auto &[uuid, executor] : executors_) snapshots.push_back(executor->snapshot());
  std::sort(snapshots.begin(), snapshots.end(), [](const CardSnapshot &a, const CardSnapshot &b) {
    return a.info.index < b.info.index;
  });
  return snapshots;
}

RmExecutor *RmCard::find(uint32_t index) {
  for (const auto &[uuid, executor] : executors_)
    if (executor->card().minor == index) return executor.get();
  return nullptr;
}

Result<PlanReply> RmCard::apply(const PlanChange &change) {
  RmExecutor *executor = find(change.card_index);
  if (!executor) return Error{ENODEV, "no such card", std::to_string(change.card_index)};
  auto reply = executor->apply(change);
  watchLinks();
  return reply;
}

Result<std::vector<Sample>> RmCard::samples() {
  std::vector<Sample> all;
  for (const auto &[uuid, executor] : executors_)
    for (Sample &sample : executor->samples()) all.push_back(sample);
  return all;
}

Result<LogPart> RmCard::log(uint32_t card_index, uint64_t from_serial) {
  RmExecutor *executor = find(card_index);
  if (!executor) return Error{ENODEV, "no such card", std::to_string(card_index)};
  return executor->log(from_serial);
}

EventBatch RmCard::events() {
  EventBatch batch;
  uint64_t ticks = 0;
  (void)!read(timer_.get(), &ticks, sizeof(ticks));
  for (const auto &[uuid, executor] : executors_) executor->tick(batch.events);
  watchLinks();
  return batch;
}

}  // namespace qgpu
