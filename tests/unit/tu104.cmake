# SPDX-License-Identifier: GPL-2.0
# The TU104 layer over a recorded card (sequences, codes, errors) and over the chip model (behaviour).
qgpu_add_test(tu104_test
  SOURCES tests/unit/tu104_entry_test.cpp
          tests/unit/tu104_probe_test.cpp
          tests/unit/tu104_runlist_test.cpp
          tests/unit/tu104_preempt_test.cpp
          tests/unit/tu104_gate_test.cpp
          tests/unit/tu104_list_test.cpp
          tests/unit/tu104_status_test.cpp
  LIBRARIES qgpu_hw)
qgpu_add_test(tu104_chip_test
  SOURCES tests/unit/tu104_chip_test.cpp
          tests/unit/tu104_trouble_test.cpp
  LIBRARIES qgpu_hw qgpu_chip)
if(TARGET qgpuctl_lib)
  qgpu_add_test(survey_test
    SOURCES tests/unit/survey_test.cpp
    LIBRARIES qgpuctl_lib qgpu_hw qgpu_chip)
endif()
