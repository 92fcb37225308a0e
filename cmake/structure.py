#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The rooms of the tree use each other in one direction only, no header includes itself by way of others, each is guarded by its
own name, and the wall clock is read in two places only.

    structure.py             prints file, line and include of what breaks that

A room is a folder; rooms_of_tree() and the CMakeLists.txt of netfilter/, inspector/ and tls/ name them, the lowest first. A file includes files
of its own room and of rooms named before it. Tests may include anything. Somebody may set the wall clock at any moment, so no deadline is told by it. Before it reads the tree, the check proves that it can fail.
"""
import os
import re
import subprocess
import sys

SOURCE = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
ROOMY = ("netfilter", "inspector", "tls")  # folders of rooms, in the order in which their CMakeLists.txt have them
# Rooms that nothing else of the tree may include, and what they may.
APART = {"kmod/bpf": ("kmod/core",), "kmod/module": ("kmod/core",), "plugins": ("inspector/plugin/include",)}
INSTALLED = ("ring/include", "libearshot/include", "inspector/plugin/include")  # <earshot/...>
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(?:"([^"\n]+)"|<(earshot/[^>\n]+)>)', re.M)


TIMED = ("kmod", "netfilter", "ring", "libearshot", "membership", "inspector", "tls", "plugins")
WALL_CLOCK = re.compile(r"\b(?:CLOCK_REALTIME(?:_COARSE)?\b|(?:ev_now|ev_time|gettimeofday|timespec_get|time|ktime_get_real\w*)\()")
WALL_CLOCK_IN = ("inspector/base/wall.c", "inspector/daemon/clock.c")
GUARD = re.compile(r"^#ifndef (\w+)\n#define \1\n", re.M)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


def rooms_of(folder):
    """The rooms of a folder, the lowest first."""
    with open(os.path.join(SOURCE, folder, "CMakeLists.txt"), encoding="utf-8") as handle:
        return tuple(f"{folder}/{name}" for name in re.findall(r"^add_subdirectory\((\w+)\)", handle.read(), re.M))


def rooms_of_tree():
    return ("kmod/core", *rooms_of("netfilter"), "ring", "libearshot", "membership", *rooms_of("inspector"), *rooms_of("tls"), "sim", "lab")


def room_of(path, rooms):
    return next((room for room in (*APART, *rooms) if path.startswith(room + "/")), None)


def includes(files):
    """{path: [(line, path of the included file)]}; what is not in the tree is left out."""
    found = {}
    for path, text in files.items():
        folder = os.path.dirname(path)
        found[path] = []
        for match in INCLUDE.finditer(text):
            name = match[1] or match[2]
            places = [name, os.path.join(folder, name)] if match[1] else []
            places += [os.path.join(root, name) for root in INSTALLED]
            target = next((place for place in map(os.path.normpath, places) if place in files), None)
            if target:
                found[path].append((text.count("\n", 0, match.start()) + 1, target))
    return found


def wrong_ways(graph, rooms):
    """Includes of what is above."""
    for path, targets in sorted(graph.items()):
        here = room_of(path, rooms)
        for line, target in targets:
            there = room_of(target, rooms)
            if here is None or here == there or any(target.startswith(f"{root}/") for root in APART.get(here, ())):
                continue
            if here in APART or there in APART:
                yield f"{path}:{line}: includes {target}: {here} and {there or 'the rest'} do not know each other"
            elif there is None:
                yield f"{path}:{line}: includes {target}, which is in no room"
            elif rooms.index(there) > rooms.index(here):
                yield f"{path}:{line}: includes {target}: {there} is built on {here}, not the other way round"


def cycles(graph):
    """Each circle of includes once, from the header at which it was entered."""
    done, way = set(), []

    def visit(path):
        if path in way:
            yield " -> ".join([*way[way.index(path):], path])
            return
        if path in done:
            return
        way.append(path)
        for _, target in graph.get(path, ()):
            yield from visit(target)
        way.pop()
        done.add(path)

    for path in sorted(graph):
        yield from (f"circle of includes: {circle}" for circle in visit(path))


def homeless(files, rooms):
    """Files of a folder of rooms that none of them has."""
    return [f"{path}: in no room of {folder}/CMakeLists.txt" for path in sorted(files) for folder in ROOMY
            if path.startswith(f"{folder}/") and room_of(path, rooms) is None]


def wall_clocks(files):
    """Places that read the wall clock, and may not."""
    for path, text in sorted(files.items()):
        if path in WALL_CLOCK_IN or not path.startswith(tuple(f"{root}/" for root in TIMED)):
            continue
        code = COMMENT.sub(lambda match: "\n" * match[0].count("\n"), text)
        for match in WALL_CLOCK.finditer(code):
            line = code.count("\n", 0, match.start()) + 1
            yield (f"{path}:{line}: {match[0].rstrip('(')} is the wall clock, which somebody may set: take es_clock_now_ns(), "
                   f"or es_wall_ns() for what other nodes are told")


def guards(files):
    """Headers whose guard is not their name, below some of their folders' (ES_CHECK_FACTS_H), or is another header's, too."""
    owners = {}
    for path, text in sorted(files.items()):
        if not path.endswith(".h"):
            continue
        *folders, name = re.sub(r"[^A-Z0-9/]", "_", path[:-2].upper()).split("/")
        prefix = "EARSHOT" if path.startswith(INSTALLED) else "ES"
        found = GUARD.search(text)
        if not found or not re.fullmatch(prefix + "".join(f"(?:_{folder})?" for folder in folders) + f"_{name}_H", found[1]):
            yield f"{path}: its guard is {found[1] if found else 'missing'}: expected {prefix}_…_{name}_H, with folders of its path"
        elif owners.setdefault(found[1], path) != path:
            yield f"{path}: its guard {found[1]} is that of {owners[found[1]]}, too"


def problems(files, rooms):
    graph = includes(files)
    return [*wrong_ways(graph, rooms), *cycles(graph), *homeless(files, rooms), *guards(files), *wall_clocks(files)]


def prove():
    """It fails for each thing that it is there for, and for nothing else."""
    def header(name, text=""):
        return f"#ifndef ES_{name}_H\n#define ES_{name}_H\n{text}\n#endif\n"

    rooms = ("kmod/core", "netfilter/kernel", "netfilter/node", "inspector/base", "inspector/daemon")
    well = {"kmod/core/a.h": header("A"), "inspector/base/log.h": header("BASE_LOG", '#include "kmod/core/a.h"'),
            "inspector/daemon/main.c": '#include "inspector/base/log.h"\n#include <stdio.h>\n',
            "kmod/bpf/b-c.h": header("BPF_B_C", '#include "../core/a.h"')}
    assert not problems(well, rooms)
    for path, text, words in (
            ("inspector/base/log.c", '#include "inspector/daemon/d.h"', "not the other way round"),
            ("kmod/core/c.h", header("C", '# include "d.h"'), "circle of includes"),
            ("kmod/module/m.c", '#include "inspector/base/log.h"', "do not know each other"),
            ("netfilter/kernel/k.c", '#include "netfilter/node/node.h"', "netfilter/node is built on netfilter/kernel"),
            ("inspector/new.c", "", "in no room"),
            ("netfilter/new.c", "", "in no room of netfilter/"),
            ("kmod/core/e.h", header("MODULE_E"), "its guard is ES_MODULE_E_H"),
            ("kmod/core/e.h", header("CORE_A"), "its guard is ES_CORE_A_H"),
            ("kmod/core/e.h", "", "its guard is missing"),
            ("kmod/bpf/a.h", header("A"), "its guard ES_A_H is that of kmod/bpf/a.h, too"),
            ("inspector/base/log.c", "/* ev_now() */\nx = my_time(a) + ev_now (b)\n + ev_now(loop);", "log.c:3: ev_now is the wall clock"),
            ("kmod/bpf/t.h", header("T", "n = time(NULL); // CLOCK_REALTIME"), "t.h:3: time is the wall clock")):
        found = problems({**well, "inspector/daemon/d.h": header("D"), "netfilter/node/node.h": header("NODE"), "kmod/core/d.h": header("CORE_D", '#include "c.h"'), path: text}, rooms)
        assert len(found) == 1 and words in found[0], (path, found)


def main():
    prove()
    names = subprocess.run(["git", "-C", SOURCE, "ls-files", "--cached", "--others", "--exclude-standard", "*.c", "*.h"],
                           check=True, capture_output=True, text=True).stdout.split("\n")
    files = {}
    for name in filter(None, names):
        if os.path.exists(os.path.join(SOURCE, name)):
            with open(os.path.join(SOURCE, name), encoding="utf-8") as handle:
                files[name] = handle.read()
    rooms = rooms_of_tree()
    found = problems(files, rooms)
    print("\n".join(found) or f"{len(files)} files, {len(rooms) + len(APART)} rooms")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
