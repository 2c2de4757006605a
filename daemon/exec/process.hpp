// SPDX-License-Identifier: GPL-2.0
// One process of a tenant: finds what it has in the driver and holds the duplicate through which
// it is controlled. The duplicate is paired with the process's pidfd: it is closed as soon as the
// process ends, for while it is open the driver keeps the process's memory and channels.
//
// A look is quick first, at the few handles where objects are likely: what that finds is under
// control at once. The full look follows and replaces what the quick one found. All of it goes in
// pieces, for the executor decides nothing meanwhile.
//
// Likely is where the last full look at a process of the same tenant found them, without one at
// anybody's, and then at libcuda's first handles: nobody can lead the looks at others astray.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "controls.hpp"
#include "objects.hpp"
#include "rm_client.hpp"

namespace qgpu::exec {

class Process;

// What the looks at the processes of one card share: what a turn may cost, whose turn it is, and
// where the last full look found objects.
class Looks {
 public:
  // Controls of all processes in a turn, which is all steps at one instant.
  static constexpr unsigned kControlsMax = 256;

  // Returns how many joined before.
  uint64_t join(const Process &process);
  void leave(const Process &process);
  // How many controls this process may spend in this turn; asked once a turn. 0: none, others have
  // waited longer.
  unsigned allowance(const Process &process, uint64_t now_ns);
  void spend(uint64_t controls);

  // Of this tenant's processes, else of anybody's; null: nothing is known. Until the next
  // remember().
  const Hint *hint(uint32_t tenant) const;
  void remember(uint32_t tenant, const Hint &hint);

  // Whether noteNew() is called for whoever gets a TSG. Where it is not any more, whoever relied
  // on it is looked at as before.
  bool hearsOfNew() const { return hears_of_new_; }
  void hearOfNew(bool hears) { hears_of_new_ = hears; }

 private:
  // Who is first: quick looks before full ones, then who waits longest, then who joined first.
  using Rank = std::tuple<bool, uint64_t, uint64_t>;
  // Nothing: it does not wait.
  static std::optional<Rank> rankOf(const Process &process, uint64_t now_ns);
  unsigned needOf(const Rank &rank, const Process &process) const;
  void beginTurn(uint64_t now_ns);

  std::vector<const Process *> all_;
  std::map<Rank, const Process *> waiting_;  // of this turn, who has not asked yet
  std::map<uint32_t, Hint> hints_;           // by tenant
  uint32_t hinted_last_ = 0;
  uint64_t joined_ = 0;
  uint64_t turn_ns_ = UINT64_MAX;
  unsigned left_ = 0;
  bool hears_of_new_ = false;
};

class Process {
 public:
  enum class State {
    kLooking,     // no TSG yet: steps are due
    kControlled,  // TSGs are known
    kBlind,       // cannot be controlled, and is looked at now and then; why() says why
    kEnded,
  };

  // Since when a look waits for its next piece; kNever: it does not.
  static constexpr uint64_t kNever = UINT64_MAX;
  struct Wait {
    uint64_t quick_ns = kNever, full_ns = kNever;
    uint64_t stepped_ns = kNever;  // the turn in which it last had a piece
  };

  // Takes the pidfd. `floor`: clients of the process have handles from there on.
  Process(RmClient &own, pid_t pid, int pidfd, uint32_t floor, uint64_t now_ns,
          std::shared_ptr<Looks> looks = std::make_shared<Looks>(), uint32_t tenant = 0);
  ~Process();
  Process(const Process &) = delete;
  Process &operator=(const Process &) = delete;

  // One piece of looking when one is due and it is this one's turn. Returns whether state() or
  // tsgs() changed.
  bool step(uint64_t now_ns);
  uint64_t nextStepNs() const { return next_step_ns_; }
  // Its steps need no turn of their own.
  bool isCalm() const;
  // Its objects changed: looks again at the next step.
  void lookAgain(uint64_t now_ns);
  // It may have a TSG that is not known: looks again soon, after the look that is under way.
  void noteNew(uint64_t now_ns);
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
  uint64_t joined() const { return joined_; }
  // Whose it is, for hints.
  uint32_t tenant() const { return tenant_; }
  void setTenant(uint32_t tenant) { tenant_ = tenant; }
  const Wait &wait() const { return wait_; }
  // When the last look was over.
  uint64_t finishedNs() const { return finished_ns_; }
  // A look has begun and is not over.
  bool looks() const { return wait_.quick_ns != kNever || wait_.full_ns != kNever; }

 private:
  // A descriptor of the process's control node, and the clients that are known to be on it.
  struct Node {
    int theirs, ours;
    uint32_t floor;             // handles below are tried, or none of the process's
    uint32_t floor_before;      // the same at the last look
    uint32_t from = 0, to = 0;  // still to be tried, from the youngest on: [to, from)
    std::vector<uint32_t> clients = {};
    // Of the quick look that is under way: clients it is done with; whether the next was looked at
    // where the hint says; whether all are known.
    size_t tried = 0;
    bool hinted = false, scanned = false;
  };

  bool lookForNodes();
  void dropNodes(const std::vector<int> &theirs);
  void goBlind(const std::string &sentence);
  void begin(uint64_t now_ns);
  void finish(uint64_t now_ns, bool changed = false);
  uint64_t againNs() const;
  uint64_t dueNs() const;
  void beginQuick(uint64_t now_ns);
  void beginFull();
  // Pieces, until `end` probes were made.
  bool quickPiece(uint64_t now_ns, uint64_t end);
  bool quickClient(Node &node, uint64_t now_ns, bool &changed);
  bool quickDone(uint64_t now_ns, const ObjectScan *found);
  bool fullPiece(uint64_t now_ns, uint64_t end);
  void scanClients(Node &node, uint64_t now_ns, uint64_t end);
  uint32_t guessesLeft(uint64_t now_ns) const;
  bool take(const ObjectScan &scan, uint64_t now_ns);
  template <class Predicate>
  void closeNodes(Predicate which);
  void reset();
  void end();

  RmClient &own_;
  pid_t pid_;
  int pidfd_;
  uint32_t floor_;
  State state_ = State::kLooking;
  std::string why_;
  bool unseen_ = false;  // blind because nothing is found, not because it is forbidden to look
  std::shared_ptr<Looks> looks_;
  uint32_t tenant_;
  uint64_t joined_;
  Wait wait_;
  bool quick_begun_ = false;
  bool hurries_ = false;         // something says that there is more than is known
  bool has_new_ = false;         // so it did during the look that is under way
  std::deque<ObjectScan> full_;  // the full look that is under way, client by client
  std::vector<Node> nodes_;
  std::vector<Tsg> tsgs_;
  Foreign foreign_;
  int their_fd_ = -1;
  unsigned steps_ = 0;
  uint64_t named_ns_, controlled_ns_ = 0, next_step_ns_ = 0, probes_ = 0;
  uint64_t guesses_ = 0;   // at clients' handles, on all its nodes
  uint64_t begun_ns_ = 0;  // when the look that is under way was due
  uint64_t finished_ns_ = 0;
  uint64_t new_gap_ns_;  // from a look to the next that something new asks for
};

}  // namespace qgpu::exec
