#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# clang-format over our C: checks, or rewrites with --write.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mapfile -t files < <(git ls-files --cached --others --exclude-standard '*.c' '*.h')
if [ "${1:-}" = --write ]; then
	exec clang-format -i "${files[@]}"
fi
exec clang-format --dry-run -Werror "${files[@]}"
