#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The Debian packages, from the source tarball, without their tests (./dev check is those). What git does not know is not
# in them; changes of what it knows are. usage: packages.sh DIRECTORY; they are in it then.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p "$1"
directory=$(cd "$1" && pwd)
changed=$(git stash create)
tarball=$(cmake/dist.sh "$directory" "${changed:-HEAD}")
rm -rf "$directory/source" "$directory"/*.deb "$directory"/*.changes "$directory"/*.buildinfo
mkdir "$directory/source"
tar xf "$tarball" -C "$directory/source" --strip-components=1
cd "$directory/source"
DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS-} nocheck parallel=$(nproc)" dpkg-buildpackage -b -uc -us
