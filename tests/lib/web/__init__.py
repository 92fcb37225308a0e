# SPDX-License-Identifier: GPL-2.0-or-later
"""HTTP clients and servers that do exactly what a test tells them."""
