// SPDX-License-Identifier: GPL-2.0
#include "progress.hpp"

#include <algorithm>

namespace qgpu::exec {
namespace {

// Beyond a round of the others: records come every 10 ms.
constexpr uint64_t kPatienceNs = 20'000'000;
// Between two tries when all was tried, and for one that may just have no work.
constexpr uint64_t kSeldomNs = 1'000'000'000;
// The next owner is let run so long before the last one is stopped, at most: it may end its visit.
constexpr uint64_t kChangeNs = 1'000'000;

constexpr const char *kRemedies[] = {"rung again", "enabled again", "preempted"};
constexpr unsigned kRemedyCount = std::size(kRemedies);

}  // namespace

void Progress::help(ManagedTsg &tsg, uint64_t now_ns) {
  const auto channels = channelsOf(tsg.of, tsg.tsg);
  ManagedTsg::Watch &watch = tsg.watch;
  watch.tried_ns = now_ns;
  // What is refused is seen by what comes of it.
  switch (std::min(watch.tried, kRemedyCount - 1)) {
    case 0:
      controls_.ring(channels);
      break;
    case 1:
      (void)controls_.enable(channels);
      break;
    case 2:
      controls_.ring(channels);
      (void)controls_.preempt(tsg.of, tsg.tsg);
      break;
  }
  watch.tried++;
}

// It has gone on: after what was done for it, or long after that, when it got work.
void Progress::goesOn(ManagedTsg &tsg, const Visitor &visitor, uint64_t patience_ns) {
  ManagedTsg::Watch &watch = tsg.watch;
  const uint64_t start_ns = visitor.last_start_ns;
  if (watch.tried && watch.cut && !watch.done && start_ns < watch.tried_ns + patience_ns)
    report_(tsg,
            "let run after it was stopped, it did not go on for " +
                std::to_string((start_ns - tsg.opened_ns) / 1'000'000) + " ms, until it was " +
                kRemedies[std::min(watch.tried, kRemedyCount) - 1],
            start_ns - tsg.opened_ns);
  watch.done = true;
}

void Progress::watch(ManagedTsg &tsg, const Visitor &visitor, uint64_t now_ns) {
  ManagedTsg::Watch &watch = tsg.watch;
  const uint64_t patience_ns = account_.roundNs() + kPatienceNs;
  if (watch.opened_ns != tsg.opened_ns)
    watch = {tsg.opened_ns, visitor.last_end_ns + kChangeNs >= tsg.gated_ns, false, 0,
             watch.tried_ns};
  if (visitor.last_start_ns > tsg.opened_ns) goesOn(tsg, visitor, patience_ns);
  if (watch.done) return;
  if (now_ns < std::max(tsg.opened_ns, watch.tried ? watch.tried_ns : 0) + patience_ns) return;
  const bool seldom = watch.tried >= kRemedyCount || (!watch.cut && !watch.tried);
  if (seldom && now_ns < watch.tried_ns + kSeldomNs) return;
  if (watch.tried >= kRemedyCount && !watch.cut)
    watch.done = true;
  else
    help(tsg, now_ns);
}

void Progress::check(Roster &roster, uint64_t now_ns) {
  for (const auto &tsg : roster.tsgs()) {
    const Visitor *visitor = account_.visitor(static_cast<uint32_t>(tsg->process.pid));
    if (!visitor || visitor->tsg != &tsg->core || !tsg->tenant) continue;
    if (!tsg->gated_ns || now_ns <= tsg->opened_ns) continue;
    if (!tsg->gated)
      watch(*tsg, *visitor, now_ns);
    else if (tsg->watch.opened_ns == tsg->opened_ns && visitor->last_start_ns > tsg->opened_ns)
      goesOn(*tsg, *visitor, account_.roundNs() + kPatienceNs);  // and was stopped again at once
  }
}

}  // namespace qgpu::exec
