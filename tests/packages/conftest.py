# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab makes the network."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lab"))
