# SPDX-License-Identifier: GPL-2.0-or-later
# Which tests may run beside each other. The machine has as many places as `./dev check` tells ctest (--parallel 8), and a
# test's PROCESSORS are those that it takes; one by default.
set(EARSHOT_PLACES_SHARED 2)   # uses CPU time, and judges by what happens, not by when
set(EARSHOT_PLACES_FACTS 3)    # a cluster or packet suite that judges facts, not time: two at once
set(EARSHOT_PLACES_MACHINES 3) # emulates machines with two CPUs; patient
set(EARSHOT_PLACES_ALONE 7)    # needs a corosync that gets its CPU time, or uses all CPUs: beside it only the idle class

# ctest begins with the highest COST, about the seconds that a test takes: what is long must not be left for the end.

# Long work that nobody waits for, with this before its command: it gets the CPU time that the tests leave while they
# wait, and one place (RESOURCE_LOCK idle: one at a time).
set(EARSHOT_IDLE chrt --idle 0)
