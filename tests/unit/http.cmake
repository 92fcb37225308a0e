# SPDX-License-Identifier: GPL-2.0-or-later
earshot_unit_test(http_head earshot-http)
earshot_unit_test(http_chunked earshot-http)
