# SPDX-License-Identifier: GPL-2.0-or-later
earshot_fuzz(tls_records MUTATIONS 60000 earshot-tls-record)
earshot_fuzz(tls_state MUTATIONS 200000 earshot-tls-record)
earshot_fuzz(tls_request MUTATIONS 200000 earshot-tls-http)
earshot_fuzz(tls_response earshot-tls-http)
earshot_fuzz(tls_streams MUTATIONS 10000 earshot-tls-serve)
