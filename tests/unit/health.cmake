# SPDX-License-Identifier: GPL-2.0-or-later
earshot_unit_test(health earshot-health)
earshot_unit_test(durations earshot-health)
earshot_unit_test(outlier earshot-health)
earshot_unit_test(place earshot-health)
earshot_unit_test(vanishing earshot-health)
earshot_unit_test(health_answer earshot-health)
pkg_check_modules(LIBSSL REQUIRED IMPORTED_TARGET libssl>=3.0)
earshot_unit_test(health_tls earshot-health PkgConfig::LIBSSL)
