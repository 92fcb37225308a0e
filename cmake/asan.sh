#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Builds userspace with AddressSanitizer and UBSan and runs its tests. usage: asan.sh BUILD_DIRECTORY
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake --preset asan -B "$1" >/dev/null
cmake --build "$1" -- --quiet
exec ctest --test-dir "$1" --output-on-failure --no-tests=error -L '^(unit|fuzz)$'
