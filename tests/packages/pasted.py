# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands of docs/install.md that tests run as they stand: fenced blocks after <!-- packages: NAME -->."""
import os
import re

from packages import SOURCE

_BLOCK = re.compile(r"^<!-- packages: ([a-z ]+) -->\n(?:.*\n)??```\n(.*?)^```$", re.M | re.S)


def found(path):
    """[(name, script)] of a page, in its order."""
    with open(os.path.join(SOURCE, path), encoding="utf-8") as handle:
        return _BLOCK.findall(handle.read())


def blocks():
    """{name: script}; the text of each is what a person would paste."""
    named = found("docs/install.md")
    assert len(dict(named)) == len(named), [name for name, _ in named]
    return dict(named)
