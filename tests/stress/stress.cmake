# SPDX-License-Identifier: GPL-2.0
# Random operations on a scheduler whose chip has faults.
qgpu_add_test(stress_test
  SOURCES tests/stress/adversary_test.cpp
          tests/stress/copies_test.cpp
          tests/stress/faults_test.cpp
          tests/stress/gates_storm_test.cpp
          tests/stress/gates_test.cpp
          tests/stress/scale_test.cpp
          tests/stress/storm_test.cpp
          tests/stress/switches_test.cpp
          tests/stress/troubles_test.cpp
  LIBRARIES qgpu_core qgpu_hw qgpu_chip
  OPTIONS -O1)
target_include_directories(stress_test PRIVATE ${PROJECT_SOURCE_DIR}/bench)
