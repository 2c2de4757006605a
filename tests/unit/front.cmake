# SPDX-License-Identifier: GPL-2.0
# The portable parts of the simulated driver.
qgpu_add_test(front_test
  SOURCES kmod/sim/front/event_ring.c
          kmod/sim/front/fault_rules.c
          tests/unit/front_faults_test.cpp
          tests/unit/front_trace_test.cpp
  LIBRARIES qgpu_chip)
target_include_directories(front_test PRIVATE ${PROJECT_SOURCE_DIR}/kmod/sim/front)
