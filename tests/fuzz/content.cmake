# SPDX-License-Identifier: GPL-2.0-or-later
earshot_fuzz(url earshot-urls)
