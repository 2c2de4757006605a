// SPDX-License-Identifier: GPL-2.0
//
// driver.hpp - a driver that owns the simulated card as CPU-side RM does: its TSGs, its list in two
// buffers of its own, recovery, reload. What it does it either tells (as its hooks would) or not: a
// deferred close, a channel of the kernel's own, a list submitted again. Ids and memory of what is
// freed are used again at once.
//
// Created by Beside (beside.hpp), which is told; knows nothing of qgpu.
#ifndef QGPU_TESTS_STRESS_DRIVER_HPP
#define QGPU_TESTS_STRESS_DRIVER_HPP

#include <list>
#include <memory>

#include "unit/chip_driver.hpp"

extern "C" {
#include "turn.h"
}

namespace qgpu::stress {

// A TSG of the driver, and what qgpu knows of it: freed when neither has it any more.
struct Object {
  static constexpr int kKernel = -1;  // nobody opened it

  uint64_t serial = 0;
  int owner = kKernel;
  fakes::SimTsg *sim = nullptr;  // null: the driver has freed it
  std::vector<hw_channel> channels;
  turn_tsg turn{};
  bool known = false;  // qgpu has been told
};

// What the driver's hooks report, in the middle of what it does.
class DriverEars {
 public:
  virtual ~DriverEars() = default;
  virtual void created(Object &) = 0;
  // It is about to be stopped or freed, and nothing has been done yet.
  virtual void freeing(Object &) = 0;
  // It was not freed after all.
  virtual void stays(Object &) = 0;
  virtual void destroyed(Object &) = 0;
  virtual void listChanged() = 0;
};

class Driver {
 public:
  enum Told { kHooked, kUnseen };
  enum Slot { kOwn, kLent };  // lent: it submits nothing that it tells of

  Driver(fakes::SimCard &card, Slot slot) : card_(card), slot_(slot) {}
  void listen(DriverEars *ears) { ears_ = ears; }

  Object &create(int owner, Told told, const fakes::TsgOptions &options = {}) {
    Object &object = *objects_.emplace_back(std::make_unique<Object>());
    object.serial = ++serial_;
    object.owner = owner;
    object.sim = &card_.createTsg(options);
    for (size_t i = 0; i < object.sim->channelCount(); i++)
      object.channels.push_back(object.sim->channel(i).hwChannel());
    fillIn(object);
    if (told == kHooked) ears_->created(object);
    changed(told);
    return object;
  }

  // A program makes one more channel in a TSG it has.
  fakes::SimChannel &addChannel(Object &object, unsigned ring_log2 = 6) {
    fakes::SimChannel &channel = card_.addChannel(*object.sim, ring_log2);
    object.channels.push_back(channel.hwChannel());
    object.turn.channels = object.channels.data();
    object.turn.channel_count = static_cast<u16>(object.channels.size());
    changed(kHooked);
    return channel;
  }

  // A call that would stop or free channels, and is refused for some reason of its own.
  void callInVain(Object &object) {
    ears_->freeing(object);
    ears_->stays(object);
  }

  // As RM does it: off its list, disabled, preempted, unbound. What it ran is booked before.
  void destroy(Object &object, Told told) {
    // Closing is a call of the program's, and bracketed; what follows from it may come much later.
    if (told == kHooked || slot_ == kOwn) ears_->freeing(object);
    fakes::SimTsg *sim = object.sim;
    object.turn.listed = false;
    object.sim = nullptr;
    leaving_ = &object;
    changed(told);
    book(object, *sim);
    card_.destroyTsg(*sim);
    if (told == kHooked) ears_->destroyed(object);
    leaving_ = nullptr;
    sweep();
  }

  // The same, but told of before the engine is rid of it: what it runs cannot be cut. reap() is to
  // follow when it has ended.
  void destroyWhileItRuns(Object &object) {
    ears_->freeing(object);
    fakes::SimTsg *sim = object.sim;
    object.turn.listed = false;
    object.sim = nullptr;
    leaving_ = &object;
    for (size_t i = 0; i < sim->channelCount(); i++) {
      sim->channel(i).stop();
      sim->channel(i).disable();
    }
    changed(kHooked);
    zombies_.push_back({object.owner, sim});
    ears_->destroyed(object);
    leaving_ = nullptr;
    sweep();
  }
  void reap() {
    for (const auto &[owner, sim] : zombies_) {
      gone_ns_[owner] += card_.runNs(*sim);
      card_.destroyTsg(*sim);
    }
    zombies_.clear();
  }

  void reslice(Object &object, uint8_t timeout, Told told) {
    object.sim->timeout = timeout;
    object.turn.driver_slice_ns = object.sim->sliceNs();
    changed(told);
  }

  // Its own list, whatever is in the slot.
  void submit() {
    card_.submit(listed());
    submits_++;
  }
  // The three writes of a submit, without waiting for anything: from within somebody else's.
  void submitInBetween() {
    card_.submitEntries(fakes::SimCard::entriesOf(listed()));
    submits_++;
  }
  void lend() { slot_ = kLent; }
  void takeBack() {
    slot_ = kOwn;
    submit();
  }

  // Work on @object failed: the runlist is stopped, the engine reset if need be, the TSG closed
  // without a word (recovery is nothing that a program asked for).
  template <typename Pass>
  void failAndRecover(Object &object, enum chip_fault fault, Pass pass) {
    if (fakes::fail(card_, object.sim->channel(), fault)) return;
    pass(100'000);
    const auto how = fakes::recover(card_, *object.sim, fakes::kGraphicsUnits, pass);
    if (how == fakes::Recovery::kGaveUp) throw std::runtime_error("the driver lost its card");
    destroy(object, kUnseen);
  }

  // Without power and back: every program is dead, the driver begins anew with an empty list.
  void reload() {
    fakes::setPresence(card_, CHIP_POWERED_OFF);
    fakes::setPresence(card_, CHIP_PRESENT);
    card_.write32(CHIP_VIRTUAL_CHANNEL_CFG, CHIP_VIRTUAL_CHANNEL_CFG_ON);
    for (const auto &object : objects_) {
      if (!object->sim) continue;
      fakes::SimTsg *sim = object->sim;
      object->turn.listed = false;
      object->sim = nullptr;
      book(*object, *sim);
      card_.destroyTsg(*sim);
      ears_->destroyed(*object);
    }
    sweep();
  }

  // What qgpu no longer knows and the driver no longer has is gone.
  void sweep() {
    std::erase_if(objects_, [this](const auto &object) {
      return !object->sim && !object->known && object.get() != leaving_;
    });
  }

  std::list<std::unique_ptr<Object>> &objects() { return objects_; }
  // What an owner's TSGs ran that are gone.
  uint64_t goneNs(int owner) const {
    const auto found = gone_ns_.find(owner);
    return found == gone_ns_.end() ? 0 : found->second;
  }
  uint64_t submits() const { return submits_; }

 private:
  std::vector<fakes::SimTsg *> listed() const {
    std::vector<fakes::SimTsg *> out;
    for (const auto &object : objects_)
      if (object->sim) out.push_back(object->sim);
    return out;
  }
  void fillIn(Object &object) const {
    object.turn.serial = object.serial;
    object.turn.tsg_id = object.sim->id();
    object.turn.driver_slice_ns = object.sim->sliceNs();
    object.turn.channel_count = static_cast<u16>(object.channels.size());
    object.turn.channels = object.channels.data();
    object.turn.listed = true;
    object.turn.list_order = static_cast<u32>(object.serial);
    object.turn.nobody = object.owner == Object::kKernel;
  }
  void changed(Told told) {
    if (slot_ == kOwn || told == kUnseen) submit();
    if (told == kHooked) ears_->listChanged();
  }
  void book(const Object &object, const fakes::SimTsg &sim) {
    gone_ns_[object.owner] += card_.runNs(sim);
  }

  fakes::SimCard &card_;
  Slot slot_;
  DriverEars *ears_ = nullptr;
  const Object *leaving_ = nullptr;
  std::list<std::unique_ptr<Object>> objects_;
  std::map<int, uint64_t> gone_ns_;
  std::vector<std::pair<int, fakes::SimTsg *>> zombies_;
  uint64_t serial_ = 0, submits_ = 0;
};

}  // namespace qgpu::stress

#endif
