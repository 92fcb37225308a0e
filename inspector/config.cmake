# SPDX-License-Identifier: GPL-2.0-or-later
# earshot-config: the configuration file and the key file, for the daemon and the CLI.
pkg_check_modules(CONFUSE REQUIRED IMPORTED_TARGET libconfuse)
pkg_check_modules(LIBCRYPTO REQUIRED IMPORTED_TARGET libcrypto>=3.0)

add_library(earshot-config STATIC
  ${CMAKE_CURRENT_LIST_DIR}/config.c
  ${CMAKE_CURRENT_LIST_DIR}/config_check.c
  ${CMAKE_CURRENT_LIST_DIR}/config_error.c
  ${CMAKE_CURRENT_LIST_DIR}/config_item.c
  ${CMAKE_CURRENT_LIST_DIR}/config_keys.c
  ${CMAKE_CURRENT_LIST_DIR}/config_rules.c
  ${CMAKE_CURRENT_LIST_DIR}/config_scan.c
  ${CMAKE_CURRENT_LIST_DIR}/config_self.c
  ${CMAKE_CURRENT_LIST_DIR}/config_value.c
  ${CMAKE_CURRENT_LIST_DIR}/keyfile.c
  ${CMAKE_CURRENT_LIST_DIR}/keyfile_write.c)
target_link_libraries(earshot-config PRIVATE PkgConfig::CONFUSE PkgConfig::LIBCRYPTO PUBLIC earshot_flags earshot-content earshot-policy)
