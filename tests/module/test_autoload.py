# SPDX-License-Identifier: GPL-2.0-or-later
"""Installed as dkms does it, the module is loaded by the kernel itself when earshotd asks for its netlink family."""
import contextlib
import glob
import os
import shutil
import subprocess

from earshotlab import Lab
from ko import FILE, loaded, unload

RELEASE = os.uname().release
MODULES = os.path.join("/lib/modules", RELEASE)  # the virtual machine's own, and gone with it
INSTALLED = os.path.join(MODULES, "updates/dkms/earshot.ko")


@contextlib.contextmanager
def installed(kept):
    """The index has this module alone: one of all takes an emulated machine 40 s."""
    index = glob.glob(f"{MODULES}/modules.*")
    for file in index:
        shutil.copy(file, kept)
    try:
        os.makedirs(os.path.dirname(INSTALLED), exist_ok=True)
        shutil.copy(FILE, INSTALLED)
        subprocess.run(["depmod", RELEASE, INSTALLED], check=True)
        yield
    finally:
        shutil.rmtree(os.path.dirname(INSTALLED))
        for file in index:
            shutil.copy(os.path.join(kept, os.path.basename(file)), file)


def serves():
    with Lab(nodes=2, datapath="module") as lab:
        assert lab.client.get("/1k")[0] == 200


def test_loaded_when_it_is_asked_for(tmp_path):
    serves()  # and all else that it needs is loaded now
    assert unload() == 0
    with installed(tmp_path):
        assert not loaded()
        serves()
        assert loaded()
