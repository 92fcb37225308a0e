# SPDX-License-Identifier: GPL-2.0-or-later
# What marks, guard and keeper cost a request (poison.py).
add_executable(poison_bench ${CMAKE_CURRENT_LIST_DIR}/poison_bench.c ${PROJECT_SOURCE_DIR}/inspector/daemon/keeper.c
               ${PROJECT_SOURCE_DIR}/inspector/base/log.c)
target_link_libraries(poison_bench PRIVATE earshot_flags earshot-inspect)

earshot_pytest(lab.bench-poison TIMEOUT 60 PROCESSORS 1 ARGUMENTS test_poison_bench.py)
