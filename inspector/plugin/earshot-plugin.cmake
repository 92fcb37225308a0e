# SPDX-License-Identifier: LGPL-2.1-or-later
# earshot_plugin(<name> <sources>… [LIBRARIES <libraries>…] [COMPONENT <component>]): a plugin <name>.so, installed where
# earshotd looks for it, by default with the component runtime.
function(earshot_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "COMPONENT" "LIBRARIES")
  if(NOT arg_COMPONENT)
    set(arg_COMPONENT runtime)
  endif()
  add_library(${name} MODULE ${arg_UNPARSED_ARGUMENTS})
  set_target_properties(${name} PROPERTIES PREFIX "" C_STANDARD 11 C_VISIBILITY_PRESET hidden
                        CXX_VISIBILITY_PRESET hidden)
  target_compile_options(${name} PRIVATE -Wall -Wextra)
  target_link_libraries(${name} PRIVATE earshot::plugin ${arg_LIBRARIES})
  install(TARGETS ${name} LIBRARY DESTINATION ${EARSHOT_PLUGIN_DIR} COMPONENT ${arg_COMPONENT})
endfunction()
