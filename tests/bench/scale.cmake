# SPDX-License-Identifier: GPL-2.0-or-later
# The model of ./dev bench scale, and what it prints of inputs that are known; no labs.
earshot_pytest(lab.bench-scale TIMEOUT 60 PROCESSORS 1 ARGUMENTS test_scale.py)
