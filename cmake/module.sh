#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Usage: module.sh BUILD_TREE: installs the DKMS tree somewhere, and builds earshot.ko from it for every kernel whose
# headers are installed, as DKMS would, but with warnings as errors. Leaves BUILD_TREE/module/RELEASE/earshot.ko, and in
# its directory faults/ one whose allocations can be made to fail.
set -euo pipefail

build=$(cd "$1" && pwd)
faults=$(realpath "$(dirname "$0")/../tests/module/faults.h")
jobs=$(nproc)
shopt -s nullglob
found=

fail() {
	echo "module: $*" >&2
	exit 1
}

rm -rf "$build/module"
for headers in /usr/src/linux-headers-*; do
	# Debian keeps what all flavours of a kernel share in a directory of its own.
	[ -e "$headers/Module.symvers" ] || continue
	release=${headers#/usr/src/linux-headers-}
	[ "$(uname -m)" != x86_64 ] || [[ $release != *-arm64 ]] || continue
	found=1
	work=$build/module/$release
	cmake --install "$build" --prefix "$work" --component dkms >/dev/null
	tree=$(echo "$work"/src/earshot-*)
	# What DKMS does with the file: the variables are its, MAKE is an array.
	# shellcheck disable=SC2034
	kernel_source_dir=$headers
	# shellcheck disable=SC1091
	. "$tree/dkms.conf"
	echo "module: $release"
	(cd "$tree" && eval "${MAKE[0]} -j$jobs EARSHOT_WERROR=y modules") >"$work/log" 2>&1 || {
		cat "$work/log" >&2
		fail "$release: does not build"
	}
	grep 'probes:' "$work/log" | head -n 1
	[ "${BUILT_MODULE_NAME[0]} ${BUILT_MODULE_LOCATION[0]}" = "earshot kmod/module" ] || fail "dkms.conf names another module"
	if grep -i 'warning' "$work/log"; then
		fail "$release: warnings"
	fi
	modinfo -F vermagic "$tree/kmod/module/earshot.ko" | grep -q "^$release " || fail "$release: built for another kernel"
	strip -g -o "$work/earshot.ko" "$tree/kmod/module/earshot.ko"

	(cd "$tree" && eval "${MAKE[0]} -j$jobs EARSHOT_WERROR=y EARSHOT_FAULTS=$faults modules") >"$work/log-faults" 2>&1 || {
		cat "$work/log-faults" >&2
		fail "$release: does not build with faults"
	}
	mkdir "$work/faults"
	strip -g -o "$work/faults/earshot.ko" "$tree/kmod/module/earshot.ko"

	# A kernel that lacks something: the build must stop, and say what.
	grep -v $'\tinet_reqsk_alloc\t' "$headers/Module.symvers" >"$work/symvers"
	if (cd "$tree" && eval "${MAKE[0]} es_symvers=$work/symvers modules") >"$work/log-lacking" 2>&1; then
		fail "$release: builds for a kernel without inet_reqsk_alloc"
	fi
	grep -q 'does not export inet_reqsk_alloc (making a request for a socket that is to be rebuilt)' "$work/log-lacking" || {
		cat "$work/log-lacking" >&2
		fail "$release: the reason is not given"
	}
done
[ -n "$found" ] || fail "no kernel headers in /usr/src: apt-get install linux-headers-amd64"
