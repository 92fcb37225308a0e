# SPDX-License-Identifier: GPL-2.0-or-later
pkg_check_modules(LIBSSL REQUIRED IMPORTED_TARGET libssl>=3.0)
earshot_unit_test(tls_state earshot-tls-record)
earshot_unit_test(tls_record earshot-tls-record PkgConfig::LIBSSL)
earshot_unit_test(tls_record_odd earshot-tls-record)
earshot_unit_test(tls_sealed earshot-tls-record)
earshot_unit_test(tls_request earshot-tls-http)
earshot_unit_test(tls_response earshot-tls-http)
