# SPDX-License-Identifier: GPL-2.0
# qgpud and qgpuctl against a fake kernel, in one binary.
if(TARGET qgpu_daemon AND TARGET qgpuctl_lib)
  qgpu_add_test(daemon_test
    SOURCES
      tests/fakes/fake_kernel.cpp
      tests/unit/cgroup_test.cpp
      tests/unit/config_check_test.cpp
      tests/unit/config_test.cpp
      tests/unit/control_test.cpp
      tests/unit/ctl_test.cpp
      tests/unit/daemon_test.cpp
      tests/unit/doctor_test.cpp
      tests/unit/explain_test.cpp
      tests/unit/remedy_test.cpp
      tests/unit/exposition_test.cpp
      tests/unit/instance_lock_test.cpp
      tests/unit/journal_test.cpp
      tests/unit/kernel_card_test.cpp
      tests/unit/log_reader_test.cpp
      tests/unit/loop_test.cpp
      tests/unit/manual_test.cpp
      tests/unit/metrics_test.cpp
      tests/unit/policy_test.cpp
      tests/unit/promise_test.cpp
      tests/unit/process_watch_test.cpp
      tests/unit/reconcile_test.cpp
      tests/unit/rm_card_test.cpp
      tests/unit/schema_test.cpp
      tests/unit/state_test.cpp
      tests/unit/stderr_sink_test.cpp
      tests/unit/timeline_test.cpp
      tests/unit/top_test.cpp
    LIBRARIES qgpu_daemon qgpuctl_lib Threads::Threads)
  target_compile_definitions(daemon_test PRIVATE QGPU_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
endif()

# The uapi header and the YNL spec must say the same.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  add_test(NAME UapiSpec.SaysTheSameAsTheHeader
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/unit/uapi_spec_test.py
            ${PROJECT_SOURCE_DIR})
  set_tests_properties(UapiSpec.SaysTheSameAsTheHeader PROPERTIES SKIP_RETURN_CODE 77)
endif()

# What programs read is as its published schema says.
if(Python3_FOUND AND TARGET daemon_test)
  add_test(NAME Schema.SaysWhatQgpuctlPrints
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/unit/schema_test.py
            ${PROJECT_SOURCE_DIR} $<TARGET_FILE:daemon_test>)
  set_tests_properties(Schema.SaysWhatQgpuctlPrints PROPERTIES SKIP_RETURN_CODE 77)
endif()

if(Python3_FOUND)
  add_test(NAME Plot.DrawsARecording
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/unit/plot_test.py
            ${PROJECT_SOURCE_DIR}/tools/qgpuctl/plot.py)
  set_tests_properties(Plot.DrawsARecording PROPERTIES SKIP_RETURN_CODE 77)
endif()
