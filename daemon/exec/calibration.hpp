// SPDX-License-Identifier: GPL-2.0
// One measurement of a card, with processes that exist for it alone. They are nobody's: no tenant,
// no ledger and no plan knows of them, so nothing that is enforced changes by them, and when they
// are gone nothing is left. `qgpuctl calibrate` starts them, because the executor loads no libcuda
// and starts nothing; it hands their pidfds over and waits.
//
//   begin() -> found, slice set (and let run and stopped by turns) -> a few visits -> measured from
//   there until the time that was asked for -> result() -> goes on so, for the processes' own
//   counters are read later -> end()
//
// It is over with end(), which a connection that closes stands for, when one of the processes ends,
// or some seconds after the time is up: slices are then as found, nobody is stopped. Only their own
// objects are ever touched.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "controls.hpp"
#include "proc.hpp"
#include "process.hpp"
#include "protocol.hpp"
#include "trace.hpp"

namespace qgpu::exec {

class Calibration {
 public:
  // Both clocks: the card's, and CLOCK_MONOTONIC.
  Calibration(RmClient &own, Controls &controls, std::function<uint64_t()> card_ns,
              std::function<uint64_t()> now_ns);
  ~Calibration() { end(); }
  Calibration(const Calibration &) = delete;
  Calibration &operator=(const Calibration &) = delete;

  // Takes the pidfds, also when it refuses. EBUSY: one is under way.
  Result<void> begin(const MeasureRequest &request, const std::vector<int> &pidfds);
  void end();
  // The same, and whoever waits for a result is told why there is none.
  void giveUp(const Error &error);
  bool runs() const { return phase_ != Phase::kNone; }
  bool has(pid_t pid) const;

  // Lets run or stops, when that is due; nextNs(): the card's time when it is.
  void gate();
  uint64_t nextNs() const { return gate_ns_; }
  // Records of the trace, in order.
  void take(std::span<const Switch> records);
  // All records up to this instant of the card's were taken.
  void turn(uint64_t traced_ns);
  // Of a measurement that is over, once.
  std::optional<Result<Measured>> result();
  // Of the measurement before: result() has these spans of each process, in the own clock, once all
  // of them are in the trace. Also after the processes have ended; not after end().
  void askSpans(const SpansRequest &request) { spans_ = request; }

 private:
  enum class Phase { kNone, kLooking, kSettling, kMeasuring, kDone };
  struct Visit {
    uint64_t from_ns, to_ns;
  };
  struct Found {
    Tsg tsg;
    uint64_t us;  // its slice
  };
  struct Own {
    std::unique_ptr<Process> process;
    std::vector<Found> found;  // whose slice was set; empty: none, or it has ended
    uint64_t visits = 0;
    std::vector<Visit> past;

    Found *find(const Tsg &tsg);
  };

  void look();
  void settle(uint64_t traced_ns);
  bool anyEnded();
  void finish(uint64_t traced_ns);
  void answerSpans(uint64_t traced_ns);
  void measure(size_t i, uint64_t from_ns, uint64_t to_ns, Measured &out) const;
  uint64_t medianGapNs();
  void fail(const Error &error);
  Result<void> setSlices();
  Result<void> checkSlices();
  void setGate(bool stopped);
  Own *byPid(uint32_t pid);

  RmClient &own_;
  Controls &controls_;
  std::function<uint64_t()> card_ns_, now_ns_;
  Phase phase_ = Phase::kNone;
  MeasureRequest request_{};
  std::vector<Own> owns_;
  std::optional<Result<Measured>> result_;
  std::optional<SpansRequest> spans_;
  bool stopped_ = false;
  uint64_t gate_ns_ = UINT64_MAX;                    // of the card; when the gate changes next
  uint64_t set_ns_ = 0;                              // when a slice was last set
  uint64_t from_ns_ = 0, from_mono_ns_ = 0;          // since when it measures
  uint64_t on_pid_ = 0, start_ns_ = 0, end_ns_ = 0;  // who is on; the last START and END
  uint64_t others_ = 0;                              // visits of anybody else
  std::vector<uint64_t> gaps_ns_;
};

}  // namespace qgpu::exec
