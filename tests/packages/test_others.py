# SPDX-License-Identifier: GPL-2.0-or-later
"""debian/tests as autopkgtest runs them: lab, plugins and simulator, from packages alone. (autopkgtest itself would need a
virtual machine for the lab: its restriction isolation-machine.)"""
import os
import re
import shutil

import packages
import prepared
import roots


def test_autopkgtests():
    assert os.path.isdir(prepared.INSTALLED), "test_build.py comes first"
    disk = os.path.join(prepared.DIRECTORY, "others.disk")
    with open(os.path.join(packages.SOURCE, "debian/tests/control"), encoding="utf-8") as handle:
        control = handle.read()
    depends = set(re.findall(r"[^\s,]+", " ".join(re.findall(r"^Depends: (.*)$", control, re.M))))
    others = sorted(name for name in depends if "earshot" not in name)
    with roots.overlay(os.path.join(prepared.DIRECTORY, "others"), [prepared.INSTALLED, prepared.BASE], disk) as root:
        prepared.put(prepared.versions()[0], root, packages.OTHERS)
        roots.apt(root, f"apt -y install --no-install-recommends ./*.deb {' '.join(others)}", prepared.DEBS)
        for name in re.findall(r"^Tests: (\S+)$", control, re.M):
            shutil.copy(os.path.join(packages.SOURCE, "debian/tests", name), root + prepared.DEBS)
            said = roots.in_chroot(root, f"./{name}", prepared.DEBS)
            assert "SKIP" not in said, said
    shutil.rmtree(disk)
