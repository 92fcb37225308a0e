# SPDX-License-Identifier: GPL-2.0-or-later
# What plugins cost a request (plugins.py), the template among them, which people build out of the tree.
add_library(bench-my-rule MODULE ${PROJECT_SOURCE_DIR}/inspector/plugin/template/my_rule.c)
target_link_libraries(bench-my-rule PRIVATE earshot::plugin)
set_target_properties(bench-my-rule PROPERTIES PREFIX "" OUTPUT_NAME my-rule C_STANDARD 11 C_VISIBILITY_PRESET hidden
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/plugins)
add_executable(plugin_bench ${CMAKE_CURRENT_LIST_DIR}/plugin_bench.c)
target_link_libraries(plugin_bench PRIVATE earshot_flags earshot-inspect)
add_dependencies(plugin_bench bench-my-rule canary debug geo-cidr header-hash lua path-map sni-map)

add_test(NAME lab.bench-plugins COMMAND /usr/bin/python3 -m pytest -q -rs -p no:cacheprovider test_plugin_bench.py
         WORKING_DIRECTORY ${CMAKE_CURRENT_LIST_DIR})
set_tests_properties(lab.bench-plugins PROPERTIES LABELS lab TIMEOUT 60
  ENVIRONMENT "EARSHOT_BUILD=${CMAKE_BINARY_DIR};PYTHONDONTWRITEBYTECODE=1")
