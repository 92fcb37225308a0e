# SPDX-License-Identifier: GPL-2.0-or-later
earshot_unit_test(tally earshot-inspect)
earshot_unit_test(metrics earshot-status)
earshot_unit_test(status_server earshot-status)
earshot_unit_test(history earshot-status)
earshot_unit_test(page earshot-status)
