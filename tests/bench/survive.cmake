# SPDX-License-Identifier: GPL-2.0-or-later
# The arithmetic of ./dev bench survive, without a cluster.
earshot_pytest(lab.bench-survive TIMEOUT 60 PROCESSORS 1 ARGUMENTS test_survive_bench.py)
