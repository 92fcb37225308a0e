# SPDX-License-Identifier: GPL-2.0-or-later
# HTTP/1.x heads and chunked bodies: pure functions, shared by the daemon, its tests and fuzzers.
add_library(earshot-http STATIC
  ${CMAKE_CURRENT_LIST_DIR}/http_head.c
  ${CMAKE_CURRENT_LIST_DIR}/http_head_lookup.c
  ${CMAKE_CURRENT_LIST_DIR}/http_chunked.c)
target_link_libraries(earshot-http PUBLIC earshot_flags)
set_target_properties(earshot-http PROPERTIES POSITION_INDEPENDENT_CODE ON)
