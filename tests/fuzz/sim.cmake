# SPDX-License-Identifier: GPL-2.0-or-later
earshot_fuzz(trace_file MUTATIONS 6000 earshot-simulator)
earshot_fuzz(trace_log MUTATIONS 40000 earshot-simulator)
earshot_fuzz(trace_wc98 MUTATIONS 30000 earshot-simulator)
