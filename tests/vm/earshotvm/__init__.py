# SPDX-License-Identifier: GPL-2.0-or-later
"""Machines for tests: QEMU boots a Debian kernel on the host's own root directory (tests/vm/README.md)."""
from .errors import VmError

__all__ = ["VmError"]
