# SPDX-License-Identifier: GPL-2.0-or-later
"""What test_build.py makes and the other suites use: packages of two versions, a base root, a system with them installed.
In the build directory; ctest (fixture "packages") makes it anew each time, and removes it afterwards."""
import os
import shutil
import subprocess

import packages

DIRECTORY = os.path.join(os.environ["EARSHOT_BUILD"], "packages-test")
BUILT = os.path.join(DIRECTORY, "build")
BASE = os.path.join(DIRECTORY, "base")
INSTALLED = os.path.join(DIRECTORY, "installed.disk")
DEBS = "/root/packages"


def versions():
    """Packages of version N and N + 1."""
    version = packages.version_of(os.path.join(packages.SOURCE, "CMakeLists.txt"))
    return packages.Packages(BUILT, version), packages.Packages(os.path.join(BUILT, "next"), packages.next_of(version))


def put(found, root, names=packages.NODE):
    """What an operator copies to a node."""
    shutil.rmtree(root + DEBS, ignore_errors=True)
    os.makedirs(root + DEBS)
    for name in names:
        shutil.copy(found.path(name), root + DEBS)


def remove():
    """All of it, mounts of a test that was killed included."""
    with open("/proc/self/mounts", encoding="utf-8") as handle:
        mounts = [line.split()[1] for line in handle if line.split()[1].startswith(DIRECTORY + "/")]
    for mount in sorted(mounts, reverse=True):
        subprocess.run(["umount", "-l", mount], check=False)
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    assert not os.path.exists(DIRECTORY)


if __name__ == "__main__":
    remove()
