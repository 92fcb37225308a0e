#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The source tarball, from git alone. usage: dist.sh DIRECTORY [COMMIT]; prints the tarball's path.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
directory=$1 commit=${2:-HEAD}
version=$(git show "$commit:CMakeLists.txt" | sed -n 's/^project(earshot VERSION \([0-9.]*\).*/\1/p')
[ -n "$version" ] || { echo "dist.sh: no project(earshot VERSION ...) in CMakeLists.txt of $commit" >&2; exit 1; }
mkdir -p "$directory"
tarball=$directory/earshot-$version.tar.xz
git archive --prefix="earshot-$version/" "$commit" | xz -T0 -3 >"$tarball.new"
mv "$tarball.new" "$tarball"
echo "$tarball"
