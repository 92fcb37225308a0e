# SPDX-License-Identifier: GPL-2.0-or-later
add_executable(http_head_bench ${CMAKE_CURRENT_LIST_DIR}/http_head_bench.c)
target_link_libraries(http_head_bench PRIVATE earshot_flags earshot-http)
