# SPDX-License-Identifier: GPL-2.0-or-later
# earshot_pytest(<suite>.<name> [TIMEOUT <seconds>] [PROCESSORS <places>] [BEFORE <command>...] ARGUMENTS <argument>...)
#
# pytest with these arguments in the current directory, as a test that `./dev check <suite>` runs, too. BEFORE comes before
# the command (${EARSHOT_IDLE}); EARSHOT_REQUIRED makes a failure of what would be skipped elsewhere. Where the tests find
# what they share says tests/pytest.ini.
function(earshot_pytest name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT;PROCESSORS" "BEFORE;ARGUMENTS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_ARGUMENTS)
    message(FATAL_ERROR "earshot_pytest(${name}): ARGUMENTS, and no ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 600)
  endif()
  if(NOT arg_PROCESSORS)
    set(arg_PROCESSORS ${EARSHOT_PLACES_SHARED})
  endif()
  string(REGEX REPLACE "\\..*" "" suite ${name})
  add_test(NAME ${name} COMMAND ${arg_BEFORE} /usr/bin/python3 -m pytest -q ${arg_ARGUMENTS}
           WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS ${suite} TIMEOUT ${arg_TIMEOUT} PROCESSORS ${arg_PROCESSORS}
    ENVIRONMENT "EARSHOT_BUILD=${CMAKE_BINARY_DIR};EARSHOT_SOURCE=${PROJECT_SOURCE_DIR};EARSHOT_REQUIRED=1;PYTHONDONTWRITEBYTECODE=1")
endfunction()
