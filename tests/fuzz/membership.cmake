# SPDX-License-Identifier: GPL-2.0-or-later
earshot_fuzz(group MUTATIONS 40000 earshot-group)
