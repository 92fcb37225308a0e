# SPDX-License-Identifier: GPL-2.0-or-later
# ring-balance prints DTS Fig. 8.
add_executable(ring-balance ring_balance.c)
target_link_libraries(ring-balance PRIVATE earshot_flags earshot-ring)
