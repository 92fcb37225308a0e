# SPDX-License-Identifier: GPL-2.0-or-later
# What plugins cost a request (plugins.py), the template among them, which people build out of the tree.
add_library(bench-my-rule MODULE ${PROJECT_SOURCE_DIR}/inspector/plugin/template/my_rule.c)
target_link_libraries(bench-my-rule PRIVATE earshot::plugin)
set_target_properties(bench-my-rule PROPERTIES PREFIX "" OUTPUT_NAME my-rule C_STANDARD 11 C_VISIBILITY_PRESET hidden
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/plugins)
add_executable(plugin_bench ${CMAKE_CURRENT_LIST_DIR}/plugin_bench.c)
target_link_libraries(plugin_bench PRIVATE earshot_flags earshot-inspect)
add_dependencies(plugin_bench bench-my-rule canary debug geo-cidr header-hash lua path-map sni-map)

earshot_pytest(lab.bench-plugins TIMEOUT 60 PROCESSORS 1 ARGUMENTS test_plugin_bench.py)
