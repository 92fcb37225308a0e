# SPDX-License-Identifier: GPL-2.0-or-later
"""Finding kernels; downloads nothing."""
import subprocess

import pytest

from earshotvm import VmError, kernels
from tree import SOURCE

pytestmark = pytest.mark.host


def test_own_kernel(tmp_path):
    """A directory, in both layouts that packages have."""
    modules = tmp_path / "lib/modules/9.9.9-own"
    modules.mkdir(parents=True)
    with pytest.raises(VmError, match="no boot/vmlinuz-9.9.9-own"):
        kernels.find(str(tmp_path))
    (modules / "vmlinuz").touch()
    (modules / "config").write_text("CONFIG_PROVE_LOCKING=y\n# CONFIG_KASAN is not set\n")
    kernel = kernels.find(str(tmp_path))
    assert (kernel.release, kernel.image) == ("9.9.9-own", str(modules / "vmlinuz"))
    assert (kernel.config("PROVE_LOCKING"), kernel.config("KASAN")) == ("y", None)
    (tmp_path / "boot").mkdir()
    (tmp_path / "boot/vmlinuz-9.9.9-own").touch()
    assert kernel.image == str(tmp_path / "boot/vmlinuz-9.9.9-own")


def test_unknown_kernel():
    with pytest.raises(VmError, match="kernel 2.4: 5.10, 6.1, "):
        kernels.find("2.4")


def test_list():
    """./dev vm starts, and tells which kernels there are."""
    listed = subprocess.run([f"{SOURCE}/dev", "vm", "--list"], capture_output=True, text=True, check=True).stdout
    assert [line.split()[0] for line in listed.splitlines()] == list(kernels.SUITES)


def test_no_mirror(tmp_path, monkeypatch):
    """A line that says what failed, and nothing that would be taken for a kernel the next time."""
    monkeypatch.setattr(kernels, "CACHE", str(tmp_path))
    monkeypatch.setattr(kernels, "_mirrors", lambda: ("http://127.0.0.1:9/debian", "http://127.0.0.1:9/security"))
    with pytest.raises(VmError, match="127.0.0.1") as failed:
        kernels.find("6.1")
    assert "\n" not in str(failed.value)
    assert not any(kernels.cached().values())


def test_machine_without_mirror(tmp_path, monkeypatch):
    """What apt of the machine reads is all that there is: no host stands in for it."""
    monkeypatch.setattr(kernels, "CACHE", str(tmp_path))
    monkeypatch.setattr(kernels, "_run", lambda *command, **_: "")
    with pytest.raises(VmError, match="apt of this machine has read no mirror"):
        kernels.find("6.12")
    told = ("http://192.0.2.1/debian/ oldstable-security Debian\nhttp://192.0.2.2/debian/ oldstable Debian\n"
            "http://192.0.2.3/ bookworm Other\n")
    monkeypatch.setattr(kernels, "_run", lambda *command, **_: told)
    assert kernels._mirrors() == ("http://192.0.2.2/debian", "http://192.0.2.1/debian")
