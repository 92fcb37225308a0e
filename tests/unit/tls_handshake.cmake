# SPDX-License-Identifier: GPL-2.0-or-later
# Certificates, and handshakes of TLS.
earshot_unit_test(certificate earshot-certificate)
earshot_unit_test(tls_handshake earshot-tls-handshake)
earshot_unit_test(tls_tickets earshot-tls-handshake)
earshot_unit_test(tls_settings earshot-tls-handshake)
