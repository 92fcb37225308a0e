# SPDX-License-Identifier: GPL-2.0-or-later
earshot_unit_test(sim_events earshot-simulator)
earshot_unit_test(sim_files earshot-simulator)
earshot_unit_test(sim_lines earshot-simulator)
earshot_unit_test(sim_lru earshot-simulator)
earshot_unit_test(sim_trace earshot-simulator)
earshot_unit_test(sim_workload earshot-simulator)
