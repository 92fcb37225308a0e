# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands of README.md that the test runs as they stand: fenced blocks after <!-- packages: NAME -->."""
import os
import re

from packages import SOURCE

_BLOCK = re.compile(r"^<!-- packages: ([a-z ]+) -->\n(?:.*\n)??```\n(.*?)^```$", re.M | re.S)


def blocks(path="README.md"):
    """{name: script}; the text of each is what a person would paste."""
    with open(os.path.join(SOURCE, path), encoding="utf-8") as handle:
        found = _BLOCK.findall(handle.read())
    names = [name for name, _ in found]
    assert len(names) == len(set(names)), names
    return dict(found)
