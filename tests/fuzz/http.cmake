# SPDX-License-Identifier: GPL-2.0-or-later
earshot_fuzz(http_head earshot-http)
earshot_fuzz(http_chunked earshot-http)
