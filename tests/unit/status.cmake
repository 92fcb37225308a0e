# SPDX-License-Identifier: GPL-2.0-or-later
earshot_unit_test(tally earshot-inspect)
earshot_unit_test(trace earshot-inspect)
earshot_unit_test(metrics earshot-status)
earshot_unit_test(status_server earshot-status)
earshot_unit_test(history earshot-status)
earshot_unit_test(page earshot-status)
# A program that it runs stands for `earshot check`.
earshot_unit_test(problems earshot-base ${LIBEV_LIBRARY})
target_sources(test_problems PRIVATE ${PROJECT_SOURCE_DIR}/inspector/daemon/problems.c ${PROJECT_SOURCE_DIR}/inspector/daemon/problem_events.c ${PROJECT_SOURCE_DIR}/inspector/daemon/run.c)
earshot_unit_test(request_log earshot-report Threads::Threads)
target_sources(test_request_log PRIVATE ${PROJECT_SOURCE_DIR}/inspector/daemon/log_writer.c)
