# SPDX-License-Identifier: GPL-2.0-or-later
"""Importing this lets programs that ./dev bench starts find the lab and tests/lib, as pytest.ini does for tests."""
import os
import sys

sys.path[1:1] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", name) for name in ("lib", "../lab")]
