# SPDX-License-Identifier: GPL-2.0
# The chip model, driven through the simulated machine of tests/fakes/sim_card.hpp.
qgpu_add_test(chip_test
  SOURCES tests/unit/chip_channel_test.cpp
          tests/unit/chip_context_test.cpp
          tests/unit/chip_control_test.cpp
          tests/unit/chip_copy_test.cpp
          tests/unit/chip_ctxsw_test.cpp
          tests/unit/chip_fault_test.cpp
          tests/unit/chip_hostile_test.cpp
          tests/unit/chip_laziness_test.cpp
          tests/unit/chip_presence_test.cpp
          tests/unit/chip_registers_test.cpp
          tests/unit/chip_rotation_test.cpp
          tests/unit/chip_runlist_test.cpp
          tests/unit/chip_status_test.cpp
          tests/unit/chip_switches_test.cpp
          tests/unit/chip_trouble_test.cpp
  LIBRARIES qgpu_chip)
