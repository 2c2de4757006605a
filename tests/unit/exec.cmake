# SPDX-License-Identifier: GPL-2.0
# qgpu-exec without a card: its protocol, and its controls against a fake driver.
qgpu_add_test(exec_test
  SOURCES tests/fakes/fake_rm.cpp
          tests/unit/exec_account_test.cpp
          tests/unit/exec_answers_test.cpp
          tests/unit/exec_executor_test.cpp
          tests/unit/exec_faults_test.cpp
          tests/unit/exec_looks_test.cpp
          tests/unit/exec_protocol_test.cpp
          tests/unit/exec_rm_test.cpp
  LIBRARIES qgpu_exec)
