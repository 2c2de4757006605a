// SPDX-License-Identifier: GPL-2.0
// The cards of the stock NVIDIA driver that the configuration gives to method rm, each with an
// executor. Touches no GPU itself: it reads /proc/driver/nvidia and cgroups, and speaks to sockets.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "card.hpp"
#include "clock.hpp"
#include "rm_executor.hpp"
#include "unique_fd.hpp"

namespace qgpu {

class RmCard final : public Card {
 public:
  struct Places {
    std::string nvidia_proc = kNvidiaProc;
    RmExecutor::Places executors;
  };
  // wants: whether the configuration gives this card to rm; wants_any: whether it gives any.
  struct Wishes {
    std::function<bool(const CardInfo &)> wants;
    std::function<bool()> wants_any;
  };
  RmCard(Places places, Wishes wishes, const Clock &clock);

  Result<std::vector<CardSnapshot>> inventory() override;
  Result<PlanReply> apply(const PlanChange &change) override;
  Result<std::vector<Sample>> samples() override;
  Result<LogPart> log(uint32_t card_index, uint64_t from_serial) override;
  int eventFd() const override { return epoll_.get(); }
  EventBatch events() override;

  // By index; null when it is not rm's.
  RmExecutor *find(uint32_t index);

 private:
  void refresh(const std::vector<NvidiaCard> &cards);
  void watchLinks();
  void armTimer();

  Places places_;
  Wishes wishes_;
  const Clock &clock_;
  UniqueFd epoll_;
  UniqueFd timer_;
  bool timer_runs_ = false;
  std::map<std::string, std::unique_ptr<RmExecutor>> executors_;  // by uuid
  std::map<std::string, uint64_t> watched_;  // which of its connections epoll_ has
};

}  // namespace qgpu
