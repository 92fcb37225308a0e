# SPDX-License-Identifier: GPL-2.0-or-later
# kmod/core is headers only: these compile it for userspace, as BPF and the module do for the kernel.
earshot_unit_test(siphash)
earshot_unit_test(cookie)
earshot_unit_test(decide)
earshot_unit_test(decide_handover)
earshot_unit_test(response)
earshot_unit_test(track)
earshot_unit_test(replay)
earshot_unit_test(handover earshot-inspect)
earshot_unit_test(packet earshot-inspect)
earshot_unit_test(boundary earshot-inspect)
earshot_unit_test(gather earshot-inspect)
earshot_unit_test(policy earshot-inspect)
