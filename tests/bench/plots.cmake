# SPDX-License-Identifier: GPL-2.0-or-later
# The plots of the pages: how they are drawn, and that those of the tree are what their data give.
earshot_pytest(lab.bench-plots TIMEOUT 120 PROCESSORS 1 ARGUMENTS test_plots.py)
add_test(NAME lint.plots COMMAND ${CMAKE_CURRENT_LIST_DIR}/plots.py --check)
set_tests_properties(lint.plots PROPERTIES LABELS lint TIMEOUT 60)
