# SPDX-License-Identifier: GPL-2.0-or-later
# Every userspace target links earshot_flags; the BPF objects have flags of their own (kmod/bpf).
add_library(earshot_flags INTERFACE)
target_compile_definitions(earshot_flags INTERFACE _GNU_SOURCE)
# In a header of its own: another version compiles only those files again that tell it.
configure_file(${CMAKE_CURRENT_LIST_DIR}/earshot_version.h.in ${PROJECT_BINARY_DIR}/include/earshot_version.h)
target_include_directories(earshot_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/ring/include
                           ${PROJECT_BINARY_DIR}/include)
target_compile_options(earshot_flags INTERFACE
  -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla
  -fno-strict-aliasing -fvisibility=hidden)
if(EARSHOT_WERROR)
  target_compile_options(earshot_flags INTERFACE -Werror)
endif()
if(EARSHOT_SANITIZE)
  # Lines and functions are all that a report names; the rest of -g is a fifth of the time to compile.
  target_compile_options(earshot_flags INTERFACE -O1 -g1 -fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  target_link_options(earshot_flags INTERFACE -fsanitize=address,undefined)
else()
  target_compile_options(earshot_flags INTERFACE -fstack-protector-strong)
  target_compile_definitions(earshot_flags INTERFACE $<$<NOT:$<CONFIG:Debug>>:_FORTIFY_SOURCE=2>)
  target_link_options(earshot_flags INTERFACE -Wl,-z,relro,-z,now)
endif()
