# SPDX-License-Identifier: GPL-2.0-or-later
"""earshot.ko for machines."""
import os

from earshotlab import daemon

OLD = "6.1"  # the kernel of Debian 12, which has no more than this


def module_of(kernel):
    """The build tree's for that kernel; ctest's module.build makes it."""
    file = os.path.join(daemon.BUILD, "module", kernel.release, "earshot.ko")
    assert os.path.exists(file), f"no {file}: built by ./dev check module, with the kernel's headers installed"
    return file
