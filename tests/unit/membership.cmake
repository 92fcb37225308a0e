# SPDX-License-Identifier: GPL-2.0-or-later
earshot_unit_test(group earshot-group)
earshot_unit_test(doubt_worlds earshot-group)
earshot_unit_test(wire earshot-group)
# With the library's functions played by the test, so without the library.
earshot_unit_test(corosync earshot-group)
target_sources(test_corosync PRIVATE ${PROJECT_SOURCE_DIR}/membership/corosync.c)
target_include_directories(test_corosync PRIVATE ${COROSYNC_INCLUDE_DIRS})
earshot_unit_test(bus earshot-group)
target_sources(test_bus PRIVATE ${PROJECT_SOURCE_DIR}/membership/bus.c ${PROJECT_SOURCE_DIR}/membership/corosync.c)
target_include_directories(test_bus PRIVATE ${COROSYNC_INCLUDE_DIRS})
# With the datapath played by the test.
earshot_unit_test(lease earshot-group earshot-inspect)
target_sources(test_lease PRIVATE ${PROJECT_SOURCE_DIR}/inspector/daemon/lease.c)
earshot_unit_test(daemon_ring earshot-group earshot-inspect)
target_sources(test_daemon_ring PRIVATE ${PROJECT_SOURCE_DIR}/inspector/daemon/ring.c
  ${PROJECT_SOURCE_DIR}/inspector/daemon/lease.c)
earshot_unit_test(hearing earshot-group)
earshot_unit_test(deaf earshot-member)
earshot_unit_test(public_link earshot-member)
earshot_unit_test(serving earshot-member)
earshot_unit_test(events earshot-base)
earshot_unit_test(story earshot-member earshot-group earshot-inspect earshot-base)
target_sources(test_story PRIVATE ${PROJECT_SOURCE_DIR}/inspector/daemon/story.c)
