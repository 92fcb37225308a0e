# SPDX-License-Identifier: GPL-2.0-or-later
# The parts of ./dev bench papers-lab, without a cluster.
earshot_pytest(lab.bench-papers TIMEOUT 60 PROCESSORS 1 ARGUMENTS test_papers.py)

# ./dev bench papers --fast: no client may have an error, and neither part may fail. It takes less than five minutes where nobody
# else has the CPUs; the list of the slowest tests tells how long.
add_test(NAME lab.papers WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
         COMMAND sh -ec "/usr/bin/python3 papers_sim.py --fast && exec /usr/bin/python3 papers_lab.py --fast --quiet")
set_tests_properties(lab.papers PROPERTIES LABELS "lab;full" TIMEOUT 600 PROCESSORS ${EARSHOT_PLACES_ALONE}
  ENVIRONMENT "EARSHOT_BUILD=${CMAKE_BINARY_DIR};EARSHOT_SOURCE=${PROJECT_SOURCE_DIR};PYTHONDONTWRITEBYTECODE=1")
