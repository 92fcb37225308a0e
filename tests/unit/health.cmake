# SPDX-License-Identifier: GPL-2.0-or-later
earshot_unit_test(health earshot-health)
earshot_unit_test(durations earshot-health)
earshot_unit_test(outlier earshot-health)
earshot_unit_test(place earshot-health)
earshot_unit_test(vanishing earshot-health)
