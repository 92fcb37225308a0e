# SPDX-License-Identifier: GPL-2.0-or-later
"""The one exception that the lab raises on purpose."""


class LabError(Exception):
    """What failed, in words for the person at the terminal. `details` may have several lines, e.g. of logs."""

    def __init__(self, message, details=""):
        super().__init__(message)
        self.details = details

    def __str__(self):
        return "\n".join(filter(None, [super().__str__(), self.details]))
