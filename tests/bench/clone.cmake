# SPDX-License-Identifier: GPL-2.0-or-later
# The parts of ./dev bench clone, without a cluster.
earshot_pytest(lab.bench-clone TIMEOUT 60 PROCESSORS 1 ARGUMENTS test_clone.py)
