# SPDX-License-Identifier: GPL-2.0
# qgpu-exec without a card: its protocol, and its controls against a fake driver.
qgpu_add_test(exec_test
  SOURCES tests/fakes/fake_rm.cpp
          tests/unit/exec_account_test.cpp
          tests/unit/exec_answers_test.cpp
          tests/unit/exec_calibration_test.cpp
          tests/unit/exec_clock_test.cpp
          tests/unit/exec_executor_test.cpp
          tests/unit/exec_faults_test.cpp
          tests/unit/exec_log_test.cpp
          tests/unit/exec_looks_test.cpp
          tests/unit/exec_protocol_test.cpp
          tests/unit/exec_pulse_test.cpp
          tests/unit/exec_rm_test.cpp
          tests/unit/exec_windows_test.cpp
  LIBRARIES qgpu_exec
  OPTIONS -O1)
# Loaded at run time, as the real one is.
add_library(fake_nvml MODULE EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tests/fakes/fake_nvml.cpp)
target_include_directories(fake_nvml PRIVATE ${PROJECT_SOURCE_DIR}/tests)
add_dependencies(exec_test fake_nvml)
target_compile_definitions(exec_test PRIVATE QGPU_FAKE_NVML="$<TARGET_FILE:fake_nvml>")
