# SPDX-License-Identifier: GPL-2.0
# Every order of a few events for two or three tenants; deeper by hand: explore 6.
add_executable(explore tests/explore/explore.cpp tests/explore/turn_inside.c)
target_link_libraries(explore PRIVATE qgpu_core)
if(QGPU_SANITIZE)
  add_test(NAME explore COMMAND explore 2)
else()
  add_test(NAME explore COMMAND explore 3)
endif()
set_tests_properties(explore PROPERTIES TIMEOUT 120)
