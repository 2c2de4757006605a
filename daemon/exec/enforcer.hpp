// SPDX-License-Identifier: GPL-2.0
// What the core decided, on the card: slices of TSGs that are awake, and while waits are kept of
// those that sleep; gates of those that have work and are not admitted. Values are written only
// when they differ; read back each second, and put back when somebody else wrote them. At the end
// everything is as it was found.
//
// A change of a window enables first, writes slices, disables last: the card is never left without
// work, and for less than a millisecond both are admitted.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "card_params.hpp"
#include "controls.hpp"
#include "gates.hpp"
#include "roster.hpp"

namespace qgpu::exec {

class Enforcer {
 public:
  // tenant may be null
  using Report = std::function<void(EventKind, const ManagedTsg &, const Error &, uint64_t value)>;

  // `card_ns`: the card's clock.
  Enforcer(core &core, Roster &roster, Controls &controls, const CardParams &params,
           std::string gates_path, std::function<uint64_t()> card_ns, Report report);

  void setParams(const CardParams &params) { params_ = params; }

  // The first half of what the core decided: whoever is admitted runs, with its slice.
  void letRun(uint64_t now_ns);
  // The second: nobody else does.
  void stopOthers(uint64_t now_ns);
  // When the last control that stops somebody was done: it takes the one off that is on, whoever it
  // is.
  uint64_t lastStopNs() const { return last_stop_ns_; }
  // Stops all but these for a moment; letGo() what it returns.
  std::vector<ManagedTsg *> holdOthers(std::initializer_list<const ManagedTsg *> but,
                                       uint64_t now_ns);
  void letGo(const std::vector<ManagedTsg *> &held, uint64_t now_ns) { open(held, now_ns); }
  // Somebody else may have opened any of them: all run, and are stopped anew.
  void letAllRun(uint64_t now_ns) { open(gated(), now_ns); }
  // Of those that their own driver may still be setting up.
  void readBackNew(uint64_t now_ns);
  // It ran though it is stopped, and a look did not tell why.
  void escaped(ManagedTsg &tsg, uint64_t now_ns);
  // Returns the processes some of whose objects are gone.
  std::vector<ProcessId> readBack(uint64_t now_ns);
  // Before a TSG is removed from the roster or given up: as found, and out of the gates file.
  void putBack(ManagedTsg &tsg);
  // Its objects are gone: out of the gates file.
  void forget(const ProcessId &process);
  // False when somebody could not be let run: who that is stays in the gates file.
  bool putAllBack();

 private:
  struct Planned {
    ManagedTsg *tsg;
    std::optional<uint64_t> us;  // its slice by the plan
    bool sleeps;
  };

  const ManagedTsg *workerOf(const ManagedTsg &tsg) const;
  std::vector<ManagedTsg *> gated() const;
  bool shouldBeClosed(const ManagedTsg &tsg) const;
  bool isHeld(const ManagedTsg &tsg, uint64_t now_ns) const;
  std::vector<ManagedTsg *> members() const;
  void letSkippedRun();
  void chooseMembers();
  bool isEnforced(const ManagedTsg &tsg) const;
  bool keepsWaits() const;
  Planned plannedOf(ManagedTsg &tsg) const;
  std::vector<Planned> planned() const;
  void open(const std::vector<ManagedTsg *> &tsgs, uint64_t now_ns);
  void close(const std::vector<ManagedTsg *> &tsgs, uint64_t now_ns);
  uint64_t stretchPpm(const std::vector<Planned> &all) const;
  void writeSlices(uint64_t now_ns);
  void writeSlice(ManagedTsg &tsg, uint64_t us, uint64_t now_ns);
  bool recordGates(const std::vector<ManagedTsg *> &tsgs);
  void refused(ManagedTsg &tsg, const Error &error, uint64_t now_ns);
  bool isNew(const ManagedTsg &tsg, uint64_t now_ns) const;
  bool isSettingUp(ManagedTsg &tsg, uint64_t found_us, uint64_t now_ns);
  void noteForeign(ManagedTsg &tsg, const Error &what, uint64_t value, uint64_t now_ns);
  void foreignChange(ManagedTsg &tsg, uint64_t found_us, uint64_t now_ns);

  core &core_;
  Roster &roster_;
  Controls &controls_;
  CardParams params_;
  std::string gates_path_;
  std::function<uint64_t()> card_ns_;
  Report report_;
  std::vector<GateEntry> gates_;  // as in the file
  uint64_t last_stop_ns_ = 0, slices_from_ns_ = 0, written_generation_ = 0;
  uint64_t chosen_window_ns_ = 0;  // the window of the rotation that members were chosen for
};

}  // namespace qgpu::exec
