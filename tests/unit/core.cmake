# SPDX-License-Identifier: GPL-2.0
# The scheduling core alone: plain structs in, plain structs out.
qgpu_add_test(core_test
  SOURCES tests/unit/share_test.cpp
          tests/unit/plan_test.cpp
          tests/unit/ledger_test.cpp
          tests/unit/pick_test.cpp
          tests/unit/servers_test.cpp
          tests/unit/place_test.cpp
          tests/unit/check_test.cpp
          tests/unit/visit_test.cpp
          tests/unit/wait_test.cpp
  LIBRARIES qgpu_core)
