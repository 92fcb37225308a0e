# SPDX-License-Identifier: GPL-2.0-or-later
# BPF objects: clang compiles, bpftool makes the skeleton header that a program of ours embeds.
find_program(BPF_CLANG NAMES clang clang-14 REQUIRED)
find_program(BPFTOOL NAMES bpftool PATHS /usr/sbin REQUIRED)

# -target bpf knows no multiarch include directory; asm/ lives there.
execute_process(COMMAND ${CMAKE_C_COMPILER} -print-multiarch OUTPUT_VARIABLE BPF_MULTIARCH OUTPUT_STRIP_TRAILING_WHITESPACE)

# earshot_bpf(TARGET NAME): who links TARGET may include NAME.skel.h, made of NAME.bpf.c in this folder; its functions
# are called TARGET__open() and so on.
function(earshot_bpf target name)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.bpf.o)
  set(skeleton ${CMAKE_CURRENT_BINARY_DIR}/${name}.skel.h)
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${BPF_CLANG} -target bpf -mcpu=v3 -O2 -g -Wall -Wextra $<$<BOOL:${EARSHOT_WERROR}>:-Werror>
            -Wno-unused-function -I${PROJECT_SOURCE_DIR} -idirafter /usr/include/${BPF_MULTIARCH}
            -MD -MF ${object}.d -MT ${object}
            -c ${CMAKE_CURRENT_SOURCE_DIR}/${name}.bpf.c -o ${object}
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}.bpf.c
    DEPFILE ${object}.d
    COMMENT "BPF object ${name}.bpf.o"
    VERBATIM COMMAND_EXPAND_LISTS)
  add_custom_command(
    OUTPUT ${skeleton}
    COMMAND ${BPFTOOL} gen skeleton ${object} name ${target} > ${skeleton}
    DEPENDS ${object}
    COMMENT "BPF skeleton ${name}.skel.h")
  add_custom_target(${target}_skeleton DEPENDS ${skeleton})
  add_library(${target} INTERFACE)
  add_dependencies(${target} ${target}_skeleton)
  target_include_directories(${target} SYSTEM INTERFACE ${CMAKE_CURRENT_BINARY_DIR})
endfunction()
