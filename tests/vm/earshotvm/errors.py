# SPDX-License-Identifier: GPL-2.0-or-later
"""What goes wrong in ways that a person can mend."""


class VmError(Exception):
    """Says in one line what failed, on which machine or kernel, and why."""
