# SPDX-License-Identifier: GPL-2.0-or-later
"""earshot.ko of the build tree: loads and unloads it."""
import os
import subprocess

BUILD = os.path.abspath(os.environ.get("EARSHOT_BUILD") or os.path.join(os.path.dirname(__file__), "../../build"))
FILE = os.path.join(BUILD, "module", os.uname().release, "earshot.ko")


def loaded():
    return os.path.exists("/sys/module/earshot")


def load():
    if not loaded():
        subprocess.run(["insmod", FILE], check=True)


def unload():
    """Returns the exit status."""
    return subprocess.run(["rmmod", "earshot"], capture_output=True).returncode


def kernel_log():
    return subprocess.run(["dmesg"], check=True, capture_output=True, text=True).stdout
