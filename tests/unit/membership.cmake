# SPDX-License-Identifier: GPL-2.0-or-later
earshot_unit_test(group earshot-group)
earshot_unit_test(wire earshot-group)
# With the library's functions played by the test, so without the library.
earshot_unit_test(corosync earshot-group)
target_sources(test_corosync PRIVATE ${PROJECT_SOURCE_DIR}/membership/corosync.c)
target_include_directories(test_corosync PRIVATE ${COROSYNC_INCLUDE_DIRS})
# With the datapath played by the test.
earshot_unit_test(lease earshot-group earshot-inspect)
target_sources(test_lease PRIVATE ${PROJECT_SOURCE_DIR}/inspector/daemon_lease.c)
