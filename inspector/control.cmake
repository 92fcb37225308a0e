# SPDX-License-Identifier: GPL-2.0-or-later
# earshot-control: the control socket's server and the replies that need no more than configuration and ring.
pkg_check_modules(JSONC REQUIRED IMPORTED_TARGET json-c)
find_path(LIBEV_INCLUDE_DIR ev.h REQUIRED) # Debian's libev has no .pc file
find_library(LIBEV_LIBRARY ev REQUIRED)

add_library(earshot-control STATIC
  ${CMAKE_CURRENT_LIST_DIR}/control.c
  ${CMAKE_CURRENT_LIST_DIR}/control_answer.c
  ${CMAKE_CURRENT_LIST_DIR}/control_client.c
  ${CMAKE_CURRENT_LIST_DIR}/report_content.c
  ${CMAKE_CURRENT_LIST_DIR}/report_flows.c
  ${CMAKE_CURRENT_LIST_DIR}/report_membership.c
  ${CMAKE_CURRENT_LIST_DIR}/report.c)
target_include_directories(earshot-control PUBLIC ${LIBEV_INCLUDE_DIR})
target_link_libraries(earshot-control PUBLIC earshot_flags earshot-config earshot-content earshot-group PkgConfig::JSONC ${LIBEV_LIBRARY})
