# SPDX-License-Identifier: GPL-2.0-or-later
# The parts of ./dev bench papers-lab, without a cluster.
earshot_pytest(lab.bench-papers TIMEOUT 60 PROCESSORS 1 ARGUMENTS test_papers.py)
