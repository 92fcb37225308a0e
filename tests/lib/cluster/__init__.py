# SPDX-License-Identifier: GPL-2.0-or-later
"""What tests do with a cluster of the lab (lab/earshotlab), and ask of it."""
