// SPDX-License-Identifier: GPL-2.0
// One process of a tenant: finds what it has in the driver and holds the duplicate through which
// it is controlled. The duplicate is paired with the process's pidfd: it is closed as soon as the
// process ends, for while it is open the driver keeps the process's memory and channels.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "controls.hpp"
#include "objects.hpp"
#include "rm_client.hpp"

namespace qgpu::exec {

class Process {
 public:
  enum class State {
    kLooking,     // no TSG yet: steps are due
    kControlled,  // TSGs are known
    kBlind,       // cannot be controlled, and is looked at now and then; why() says why
    kEnded,
  };

  // Takes the pidfd. `floor`: clients of the process have handles from there on.
  Process(RmClient &own, pid_t pid, int pidfd, uint32_t floor, uint64_t now_ns);
  ~Process();
  Process(const Process &) = delete;
  Process &operator=(const Process &) = delete;

  // One step of looking when one is due. Returns whether state() or tsgs() changed.
  bool step(uint64_t now_ns);
  uint64_t nextStepNs() const { return next_step_ns_; }
  // Its objects changed: looks again at the next step.
  void lookAgain(uint64_t now_ns) {
    if (state_ == State::kControlled) next_step_ns_ = now_ns;
  }
  // The trace says that it runs on the card, and nothing of it was found for long enough.
  void runsUnseen();
  // False when it has ended, or has no longer the descriptor that was duplicated: then the
  // duplicate is closed and, if it lives, it is looked at as if it were new.
  bool stillThere();

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_; }
  State state() const { return state_; }
  const std::string &why() const { return why_; }
  const std::vector<Tsg> &tsgs() const { return tsgs_; }
  Foreign foreign() const { return foreign_; }
  uint64_t namedNs() const { return named_ns_; }
  uint64_t controlledNs() const { return controlled_ns_; }
  uint64_t probes() const { return probes_; }

 private:
  // A descriptor of the process's control node, and the clients that are known to be on it.
  struct Node {
    int theirs, ours;
    uint32_t scanned_to;  // handles below are scanned
    std::vector<uint32_t> clients;
  };

  bool lookForNodes();
  void goBlind(const std::string &sentence);
  void scanClients(Node &node);
  bool lookForObjects(uint64_t now_ns);
  bool take(const Node &node, uint32_t client, const ObjectScan &scan, uint64_t now_ns);
  void closeNodes(int but);
  void end();

  RmClient &own_;
  pid_t pid_;
  int pidfd_;
  uint32_t floor_;
  State state_ = State::kLooking;
  std::string why_;
  bool unseen_ = false;  // blind because nothing is found, not because it is forbidden to look
  std::vector<Node> nodes_;
  std::vector<Tsg> tsgs_;
  Foreign foreign_;
  int their_fd_ = -1;
  unsigned steps_ = 0;
  uint64_t named_ns_, controlled_ns_ = 0, next_step_ns_ = 0, probes_ = 0;
};

}  // namespace qgpu::exec
