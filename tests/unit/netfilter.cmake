# SPDX-License-Identifier: GPL-2.0-or-later
earshot_unit_test(nf_copies earshot-rebuild)
earshot_unit_test(nf_entry earshot-rebuild)
earshot_unit_test(nf_errors earshot-rebuild)
earshot_unit_test(nf_kept earshot-rebuild)
earshot_unit_test(nf_request earshot-rebuild)
# The netfilter datapath's parts that need no kernel.
earshot_unit_test(netfilter_queue earshot-netfilter-engine earshot-datapath)
earshot_unit_test(netfilter_tables earshot-netfilter-engine)
earshot_unit_test(netfilter_public earshot-netfilter-engine earshot-datapath)
earshot_unit_test(netfilter_overheard earshot-netfilter-engine)
earshot_unit_test(netfilter_target earshot-netfilter-engine earshot-datapath)
earshot_unit_test(netfilter_engine earshot-netfilter-engine earshot-datapath)
earshot_unit_test(netfilter_unproven earshot-netfilter-engine earshot-datapath)
