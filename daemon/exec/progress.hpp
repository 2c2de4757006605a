// SPDX-License-Identifier: GPL-2.0
// Whether those that are let run after a gate get the engine again. Who does not within a round of
// the others is rung, then enabled again, then preempted, as brought lost tenants back on a real
// card; what helped is reported. Who does not come back then has most likely no work, which cannot
// be seen: it is preempted again each second. Of who did not compute when it was stopped nothing is
// said, and it is helped seldom.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "account.hpp"
#include "controls.hpp"
#include "roster.hpp"

namespace qgpu::exec {

class Progress {
 public:
  // What did not go on by itself, and for how long.
  using Report = std::function<void(const ManagedTsg &, const std::string &, uint64_t ns)>;

  Progress(Account &account, Controls &controls, Report report)
      : account_(account), controls_(controls), report_(std::move(report)) {}

  // Every record up to this instant is in the account.
  void check(Roster &roster, uint64_t now_ns);

 private:
  void watch(ManagedTsg &tsg, const Visitor &visitor, uint64_t now_ns);
  void goesOn(ManagedTsg &tsg, const Visitor &visitor, uint64_t patience_ns);
  void help(ManagedTsg &tsg, uint64_t now_ns);

  Account &account_;
  Controls &controls_;
  Report report_;
};

}  // namespace qgpu::exec
