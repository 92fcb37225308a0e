#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# clang-format over our C, and how each file begins, with its licence and what it is responsible for: checks, or rewrites
# with --write.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mapfile -t files < <(git ls-files --cached --others --exclude-standard '*.c' '*.h')
if [ "${1:-}" = --write ]; then
	exec clang-format -i "${files[@]}"
fi
for file in "${files[@]}"; do
	[[ $file = *.c ]] && wanted='// SPDX-' || wanted='/* SPDX-'
	{ read -r first && read -r second; } <"$file" || true
	if [[ $first != "$wanted"* ]]; then
		echo "$file:1: begins with '$first', not with '${wanted}License-Identifier: '" >&2
		failed=1
	elif [[ $file = *.c && $second != '/*'* ]]; then
		echo "$file:2: no comment says what the file is responsible for" >&2
		failed=1
	fi
done
[ -z "${failed:-}" ] || exit 1
exec clang-format --dry-run -Werror "${files[@]}"
