# SPDX-License-Identifier: GPL-2.0-or-later
"""earshot-dkms in a minimal Debian 12: built for the kernel whose headers are there, upgraded, removed."""
import glob
import os
import re
import shutil

import packages
import prepared
import roots

NAME = "earshot-dkms"


def put(found, root):
    assert packages.run("dpkg-deb", "-f", found.path(NAME), "Version").strip() == found.version
    prepared.put(found, root, (NAME,))


def built(root):
    """What modprobe would find, of any kernel."""
    return glob.glob(f"{root}/lib/modules/*/updates/dkms/earshot.ko*")


def status(root):
    """[(version, kernel, state)], as dkms tells it."""
    return re.findall(r"^earshot/([^,]+), ([^,]+), [^:]+: (\w+)", roots.in_chroot(root, "dkms status"), re.M)


def test_dkms():
    assert os.path.isdir(prepared.BASE), "test_build.py comes first"
    disk = os.path.join(prepared.DIRECTORY, "dkms.disk")
    first, second = prepared.versions()
    with roots.overlay(os.path.join(prepared.DIRECTORY, "dkms"), [prepared.BASE], disk) as root:
        put(first, root)
        roots.apt(root, f"apt -y install --no-install-recommends linux-headers-{packages.architecture()} ./*.deb",
                  prepared.DEBS)
        module, = built(root)
        kernel = module.split("/")[-4]
        assert status(root) == [(first.version, kernel, "installed")]
        assert roots.in_chroot(root, f"modinfo -k {kernel} -F vermagic earshot").split()[0] == kernel
        with open(f"{root}/lib/modules/{kernel}/modules.alias", encoding="ascii") as handle:
            assert "alias net-pf-16-proto-16-family-earshot earshot\n" in handle.readlines()

        put(second, root)
        roots.in_chroot(root, "apt -y install ./*.deb", prepared.DEBS)
        assert status(root) == [(second.version, kernel, "installed")] and built(root) == [module]

        roots.in_chroot(root, f"apt -y remove {NAME}")
        assert not built(root) and not glob.glob(f"{root}/usr/src/earshot*")
        assert not glob.glob(f"{root}/var/lib/dkms/earshot*")
    shutil.rmtree(disk)
