# SPDX-License-Identifier: GPL-2.0-or-later
# The parts of ./dev bench papers-lab, without a cluster.
add_test(NAME lab.bench-papers COMMAND /usr/bin/python3 -m pytest -q -rs -p no:cacheprovider test_papers.py
         WORKING_DIRECTORY ${CMAKE_CURRENT_LIST_DIR})
set_tests_properties(lab.bench-papers PROPERTIES LABELS lab TIMEOUT 60
  ENVIRONMENT "EARSHOT_BUILD=${CMAKE_BINARY_DIR};PYTHONDONTWRITEBYTECODE=1")
