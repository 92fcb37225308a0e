#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# clang-tidy over every userspace C file that the build compiles. usage: tidy.sh BUILD_DIRECTORY
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=$1
mapfile -t files < <(sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' "$build/compile_commands.json" | sort -u |
	grep -F "$PWD/" | grep -v "^$PWD/build")
printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 4 clang-tidy --quiet -p "$build" 2>/dev/null
