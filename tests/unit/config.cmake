# SPDX-License-Identifier: GPL-2.0-or-later
# Configuration, key file, control socket and the CLI.
find_package(Threads REQUIRED)

earshot_unit_test(config earshot-config)
earshot_unit_test(config_rules earshot-config)
earshot_unit_test(keyfile earshot-config)
earshot_unit_test(control earshot-control Threads::Threads)
earshot_unit_test(report earshot-control earshot-plugin-host)
target_sources(test_report PRIVATE ${PROJECT_SOURCE_DIR}/inspector/report_plugins.c)
target_compile_definitions(test_report PRIVATE EARSHOT_PLUGINS="${CMAKE_BINARY_DIR}/plugins")
add_dependencies(test_report canary)
earshot_unit_test(cli earshot-control)
earshot_unit_test(check earshot-check)
add_dependencies(test_cli earshot)
foreach(concept config config_rules report cli)
  target_compile_definitions(test_${concept} PRIVATE EARSHOT_SOURCE="${PROJECT_SOURCE_DIR}")
endforeach()
target_compile_definitions(test_cli PRIVATE EARSHOT_CLI="$<TARGET_FILE:earshot>")
# A part of the daemon, which is no library.
earshot_unit_test(settings earshot-config earshot-group earshot-plugin-host)
target_compile_definitions(test_settings PRIVATE EARSHOT_PLUGINS="${CMAKE_BINARY_DIR}/plugins")
add_dependencies(test_settings debug)
target_sources(test_settings PRIVATE ${PROJECT_SOURCE_DIR}/inspector/settings.c)
