# SPDX-License-Identifier: GPL-2.0-or-later
"""Installed as dkms does it, the module is loaded by the kernel itself when earshotd asks for its netlink family."""
import contextlib
import os
import subprocess

from earshotlab import Lab
from ko import FILE, loaded, unload

RELEASE = os.uname().release
INSTALLED = os.path.join("/lib/modules", RELEASE)


@contextlib.contextmanager
def installed(base):
    """This kernel's modules are earshot.ko and no others."""
    modules = os.path.join(base, "lib/modules", RELEASE)
    os.makedirs(os.path.join(modules, "updates/dkms"))
    for name in ("modules.builtin", "modules.order"):
        open(os.path.join(modules, name), "w", encoding="ascii").close()
    os.symlink(FILE, os.path.join(modules, "updates/dkms/earshot.ko"))
    subprocess.run(["depmod", "-b", base, RELEASE], check=True)
    subprocess.run(["mount", "--bind", modules, INSTALLED], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", INSTALLED], check=True)


def test_loaded_when_it_is_asked_for(tmp_path):
    assert unload() == 0
    with installed(str(tmp_path)):
        assert not loaded()
        with Lab(nodes=2, datapath="module") as lab:
            assert loaded()
            assert lab.client.get("/1k")[0] == 200
