// SPDX-License-Identifier: GPL-2.0
//
// chip_switches.hpp - all points of the chip that the sources leave open, by name, for suites that
// run on each of them both ways.
#ifndef QGPU_TESTS_UNIT_CHIP_SWITCHES_HPP
#define QGPU_TESTS_UNIT_CHIP_SWITCHES_HPP

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <tuple>

#include "fakes/sim_card.hpp"

namespace qgpu::fakes {

struct ChipSwitch {
  const char *name;
  bool chip_switches::*member;
  friend std::ostream &operator<<(std::ostream &out, const ChipSwitch &s) { return out << s.name; }
};

#define QGPU_CHIP_SWITCH(name) \
  { #name, &chip_switches::name }
constexpr ChipSwitch kChipSwitches[] = {
    QGPU_CHIP_SWITCH(submit_keeps_running),
    QGPU_CHIP_SWITCH(doorbell_kept_when_disabled),
    QGPU_CHIP_SWITCH(enable_sets_pending),
    QGPU_CHIP_SWITCH(disable_keeps_pending),
    QGPU_CHIP_SWITCH(gp_put_reread),
    QGPU_CHIP_SWITCH(fetch_waits_for_sched_enable),
    QGPU_CHIP_SWITCH(list_reread),
    QGPU_CHIP_SWITCH(malformed_clears_pending),
    QGPU_CHIP_SWITCH(empty_list_drops_context),
    QGPU_CHIP_SWITCH(ignore_owned_list_change),
    QGPU_CHIP_SWITCH(pending_submit_kept),
    QGPU_CHIP_SWITCH(submit_offset_ignored),
    QGPU_CHIP_SWITCH(preempted_not_recorded),
    QGPU_CHIP_SWITCH(preempt_replaces),
    QGPU_CHIP_SWITCH(fault_holds_channel_only),
    QGPU_CHIP_SWITCH(idle_pbdma_stays_valid),
    QGPU_CHIP_SWITCH(absent_reads_zero),
};
#undef QGPU_CHIP_SWITCH
static_assert(std::size(kChipSwitches) == sizeof(chip_switches), "a switch is missing here");

inline std::string nameOfSwitch(
    const ::testing::TestParamInfo<std::tuple<ChipSwitch, bool>> &info) {
  return std::string(std::get<0>(info.param).name) + (std::get<1>(info.param) ? "_on" : "_off");
}

}  // namespace qgpu::fakes

#endif
