# SPDX-License-Identifier: GPL-2.0-or-later
earshot_unit_test(network earshot-datapath earshot-config)
earshot_unit_test(ring_reader earshot-datapath)
earshot_unit_test(sock_diag earshot-datapath)
