# SPDX-License-Identifier: GPL-2.0-or-later
"""One node and exact packets to and from it: see node.py. What must come is told by model.py, which shares no code with
Earshot."""
