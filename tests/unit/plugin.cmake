# SPDX-License-Identifier: GPL-2.0-or-later
earshot_unit_test(tls_hello earshot-plugin-host)
earshot_unit_test(guard earshot-plugin-host)
earshot_unit_test(plugin earshot-inspect)
target_compile_definitions(test_plugin PRIVATE EARSHOT_PLUGINS="${CMAKE_BINARY_DIR}/plugins")
add_dependencies(test_plugin debug header-hash)
foreach(concept plugin_hang plugin_wrong)
  earshot_unit_test(${concept} earshot-inspect)
  target_compile_definitions(test_${concept} PRIVATE EARSHOT_PLUGINS="${CMAKE_BINARY_DIR}/plugins")
  add_dependencies(test_${concept} debug)
endforeach()
# The headers that are installed, beside what was published of them.
earshot_unit_test(installed_abi earshot-plugin-host earshot-ring libearshot)
# The plugin lua's own matcher, beside Lua's.
pkg_search_module(LUA REQUIRED IMPORTED_TARGET lua5.4 lua-5.4 lua54)
earshot_unit_test(lua_pattern PkgConfig::LUA)
foreach(source sandbox libraries order search pattern)
  target_sources(test_lua_pattern PRIVATE ${PROJECT_SOURCE_DIR}/plugins/lua/${source}.c)
endforeach()
