# SPDX-License-Identifier: GPL-2.0-or-later
# libearshot, without a daemon.
find_package(Threads REQUIRED)

earshot_unit_test(program earshot::earshot Threads::Threads)
earshot_unit_test(program_socket earshot-program)
earshot_unit_test(close_apart earshot-datapath Threads::Threads)
earshot_unit_test(local_socket earshot-machine)
