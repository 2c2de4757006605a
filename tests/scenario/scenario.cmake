# SPDX-License-Identifier: GPL-2.0
# Whole schedulers in virtual time: turn.c over the TU104 layer over the chip model.
qgpu_add_test(scenario_test
  SOURCES tests/scenario/list_changes_test.cpp tests/scenario/rotation_test.cpp
          tests/scenario/windows_test.cpp tests/scenario/trouble_test.cpp
          tests/scenario/random_test.cpp tests/scenario/misfit_test.cpp
  LIBRARIES qgpu_core qgpu_hw qgpu_chip
  OPTIONS -O1)

# What the scheduling rule promises, one file a kind of promise, judged by the strict windows of
# bench/judge.hpp.
qgpu_add_test(promises_test
  SOURCES tests/scenario/promises_changes_test.cpp tests/scenario/promises_equal_test.cpp
          tests/scenario/promises_fixed_test.cpp tests/scenario/promises_hang_test.cpp
          tests/scenario/promises_joiners_test.cpp
          tests/scenario/promises_mixed_card_test.cpp tests/scenario/promises_mixes_test.cpp
          tests/scenario/promises_online_test.cpp tests/scenario/promises_saturating_test.cpp
          tests/scenario/promises_sync_test.cpp tests/scenario/promises_tails_test.cpp
          tests/scenario/promises_turns_test.cpp tests/scenario/promises_waits_test.cpp
          bench/policies/trace.cpp
  LIBRARIES qgpu_core qgpu_hw qgpu_chip
  OPTIONS -O1)
target_include_directories(promises_test PRIVATE ${PROJECT_SOURCE_DIR}/bench)
target_compile_definitions(promises_test PRIVATE QGPU_BENCH_DATA="${PROJECT_SOURCE_DIR}/bench/data")

# The same against what the daemon computes of it.
if(TARGET qgpu_daemon)
  qgpu_add_test(bounds_test
    SOURCES tests/scenario/promises_bounds_test.cpp
    LIBRARIES qgpu_daemon qgpu_core qgpu_hw qgpu_chip
    OPTIONS -O1)
  target_include_directories(bounds_test PRIVATE ${PROJECT_SOURCE_DIR}/bench)
endif()
