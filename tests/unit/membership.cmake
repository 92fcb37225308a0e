# SPDX-License-Identifier: GPL-2.0-or-later
earshot_unit_test(group earshot-group)
earshot_unit_test(wire earshot-group)
