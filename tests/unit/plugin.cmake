# SPDX-License-Identifier: GPL-2.0-or-later
earshot_unit_test(tls_hello earshot-plugin-host)
earshot_unit_test(plugin earshot-inspect)
target_compile_definitions(test_plugin PRIVATE EARSHOT_PLUGINS="${CMAKE_BINARY_DIR}/plugins")
add_dependencies(test_plugin debug header-hash)
