// SPDX-License-Identifier: GPL-2.0
#include "card_set.hpp"

#include <spdlog/spdlog.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>

namespace qgpu {

CardSet::CardSet(Card &module, RmCard &rm)
    : module_(module), rm_(rm), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  for (int fd : {module_.eventFd(), rm_.eventFd()}) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (fd >= 0) epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  }
}

// An enforcing module and an executor would undo each other's slices.
void CardSet::noteConflicts(const std::vector<CardSnapshot> &module_cards) {
  for (const CardSnapshot &card : module_cards) {
    RmExecutor *executor = rm_.find(card.info.index);
    if (!executor || executor->card().uuid != card.info.uuid) continue;
    const bool enforces = card.info.policy != QGPU_POLICY_BEST_EFFORT;
    executor->setConflict(enforces ? "qgpu.ko enforces a plan on this card: unload it, or set "
                                     "method = \"module\" and the policy best-effort first"
                                   : "");
  }
}

Result<std::vector<CardSnapshot>> CardSet::inventory() {
  auto module_cards = module_.inventory();
  auto first = rm_.inventory();
  if (module_cards) noteConflicts(*module_cards);
  // What one card has against rm is part of its state, so it is read after it is known.
  auto rm_cards = first ? rm_.inventory() : std::move(first);

  const std::string error = rm_cards ? "" : rm_cards.error().sentence;
  if (error != rm_error_ && !error.empty() && module_cards) spdlog::error("method rm: {}", error);
  rm_error_ = error;
  if (!module_cards) {
    // Without the module rm's cards are all there is.
    if (!rm_cards || !rm_cards->empty()) return rm_cards;
    return module_cards.error();
  }
  std::vector<CardSnapshot> all;
  for (CardSnapshot &card : *module_cards)
    if (!rm_.find(card.info.index)) all.push_back(std::move(card));
  if (rm_cards)
    for (CardSnapshot &card : *rm_cards) all.push_back(std::move(card));
  return all;
}

Result<PlanReply> CardSet::apply(const PlanChange &change) {
  return rm_.find(change.card_index) ? rm_.apply(change) : module_.apply(change);
}

Result<std::vector<Sample>> CardSet::samples() {
  auto rm_samples = rm_.samples();
  auto module_samples = module_.samples();
  if (!module_samples) {
    if (rm_samples && !rm_samples->empty()) return rm_samples;
    return module_samples.error();
  }
  std::erase_if(*module_samples,
                [&](const Sample &sample) { return rm_.find(sample.card_index) != nullptr; });
  if (rm_samples)
    module_samples->insert(module_samples->end(), rm_samples->begin(), rm_samples->end());
  return module_samples;
}

Result<LogPart> CardSet::log(uint32_t card_index, uint64_t from_serial) {
  return rm_.find(card_index) ? rm_.log(card_index, from_serial)
                              : module_.log(card_index, from_serial);
}

EventBatch CardSet::events() {
  EventBatch batch = module_.events();
  std::erase_if(batch.events,
                [&](const CardEvent &event) { return rm_.find(event.card_index) != nullptr; });
  EventBatch rm_batch = rm_.events();
  batch.events.insert(batch.events.end(), rm_batch.events.begin(), rm_batch.events.end());
  return batch;
}

}  // namespace qgpu
