# SPDX-License-Identifier: GPL-2.0-or-later
earshot_fuzz(tls_hello earshot-plugin-host)
