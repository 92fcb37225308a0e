# SPDX-License-Identifier: GPL-2.0-or-later
"""The packages are built, twice with different versions, and installed into a minimal Debian 12 by the command of docs/install.md."""
import concurrent.futures
import glob
import os
import re
import subprocess

import packages
import pasted
import prepared
import roots


def test_packages_and_base():
    """The compiler and the network work at the same time."""
    assert os.geteuid() == 0, "needs root"
    prepared.remove()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        built = pool.submit(lambda: packages.build_next(packages.build(prepared.BUILT)))
        base = pool.submit(roots.make_base, prepared.BASE)
        built.result()
        base.result()
    for found in prepared.versions():
        for name in packages.NODE + packages.OTHERS:
            assert packages.run("dpkg-deb", "-f", found.path(name), "Version").strip() == found.version
            assert packages.run("dpkg-deb", "-c", found.path(name)).count("\n") > 5


def test_files_that_the_pages_name():
    """Manual pages and the operators' pages name files of the packages as they are there."""
    listed = "".join(packages.run("dpkg-deb", "-c", prepared.versions()[0].path(name)) for name in
                     packages.NODE + packages.OTHERS)
    there = set(re.findall(r" \.(/\S+?)/?(?: -> \S+)?$", listed, re.M))
    assert "/usr/sbin/earshotd" in there and "/usr/sbin/earshot-lab" in there
    named = set()
    for path in ["README.md", *(f"docs/{name}.md" for name in ("install", "walkthrough", "migration", "pacemaker")),
                 *glob.glob("docs/man/*", root_dir=packages.SOURCE)]:
        with open(os.path.join(packages.SOURCE, path), encoding="utf-8") as handle:
            named |= set(re.findall(r"(/(?:usr|etc/default)/[\w./-]*earshot[\w./-]*\w)", handle.read()))
    assert len(named) > 8 and not named - there, named - there


def test_lintian():
    """Without errors and warnings."""
    first, _ = prepared.versions()
    changes = [name for name in os.listdir(prepared.BUILT) if name.endswith(f"_{first.version}_{packages.architecture()}.changes")]
    assert len(changes) == 1
    done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", os.path.join(prepared.BUILT, changes[0])],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_installs_into_a_minimal_system():
    """What apt resolves from the packages' own words is all that there is."""
    with roots.overlay(os.path.join(prepared.DIRECTORY, "installed"), [prepared.BASE], prepared.INSTALLED) as root:
        before = os.listdir(root + "/usr/sbin")
        assert not {"earshotd", "corosync", "nginx"} & set(before)
        prepared.put(prepared.versions()[0], root)
        roots.apt(root, pasted.blocks()["install"].replace("apt install", "apt -y install"), prepared.DEBS)
        said = roots.in_chroot(root, "earshotd --version; earshot version; "
                                     "/usr/lib/ocf/resource.d/earshot/earshotd meta-data | head -2")
        assert said.count(prepared.versions()[0].version) == 2 and "<?xml" in said, said
