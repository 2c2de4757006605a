# SPDX-License-Identifier: GPL-2.0
# The judges of bench/: a wrong judge proves nothing.
qgpu_add_test(bench_judge_test
  SOURCES tests/unit/bench_judge_test.cpp
  LIBRARIES qgpu_core qgpu_hw qgpu_chip)
target_include_directories(bench_judge_test PRIVATE ${PROJECT_SOURCE_DIR}/bench)
