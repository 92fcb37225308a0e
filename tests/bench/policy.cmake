# SPDX-License-Identifier: GPL-2.0-or-later
add_executable(policy_bench ${CMAKE_CURRENT_LIST_DIR}/policy_bench.c)
target_link_libraries(policy_bench PRIVATE earshot_flags earshot-policy)
