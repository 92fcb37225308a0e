# SPDX-License-Identifier: GPL-2.0-or-later
# The load generator of ./dev bench https and xo, and what of that can be tested without a cluster.
pkg_check_modules(LIBSSL REQUIRED IMPORTED_TARGET libssl libcrypto)
find_package(Threads REQUIRED)

add_executable(earshot-https-load ${CMAKE_CURRENT_LIST_DIR}/https_load.c)
target_link_libraries(earshot-https-load PRIVATE earshot_flags PkgConfig::LIBSSL Threads::Threads)

earshot_pytest(lab.bench-https TIMEOUT 300 PROCESSORS 1 ARGUMENTS test_https_bench.py test_xo.py)
