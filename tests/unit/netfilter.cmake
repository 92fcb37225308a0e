# SPDX-License-Identifier: GPL-2.0-or-later
earshot_unit_test(nf_copies earshot-rebuild)
earshot_unit_test(nf_entry earshot-rebuild)
earshot_unit_test(nf_kept earshot-rebuild)
earshot_unit_test(nf_request earshot-rebuild)
