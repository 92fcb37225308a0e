#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""No circle of calls within a folder: of two files, at most one calls the other, directly or by way of others.

    knots.py BUILD_TREE      prints each call that is part of a circle: who calls whom, and by which names

Exact for what the build tree has: a file calls another one if its object needs a name that the other's object defines. A call
through a pointer is none, since that is how what is below reaches what is above. earshot.ko is not built in that tree, so
kmod/module is judged by the names in its sources. Where a CMakeLists.txt says ORDERED of its list of files, the list is held to
it. KNOTTED has the folders in which circles are left, and why; one that has none any more must go from there, so that the list
only becomes shorter. Before it reads anything, the check proves that it can fail.
"""
import collections
import json
import os
import re
import subprocess
import sys

SOURCE = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
UNBUILT = ("kmod/module",)  # judged by their sources
KNOTTED = {}
ORDERED = "A file calls those before it, and none after it."

OUTPUT = re.compile(r" -o (\S+)")
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)
NAME = re.compile(r"\bes_\w+")
# What others see: a function's body, or an initialised object, in the first column.
DEFINED = re.compile(r"^(?!static\b|extern\b|typedef\b)[a-z_][\w\s*]*?\b(es_\w+)(?:\([^;{}]*\)\s*\{|(?:\[\w*\])?\s*=)", re.M)
LISTED = re.compile(r"^\s*(\w+\.c)\)?$", re.M)
INLINE = re.compile(r"^static\s+(?:__always_)?inline\b[\w\s*]*?\b(es_\w+)\([^;{}]*\)\s*\{(.*?)^\}", re.M | re.S)


def names_of_objects(objects):
    """({source: names it defines}, {source: names it needs}) of {source: object}."""
    defines, needs = collections.defaultdict(set), collections.defaultdict(set)
    source_of = {path: source for source, path in objects.items()}
    listed = subprocess.run(["nm", "--print-file-name", "--format=posix", *source_of], check=True, capture_output=True, text=True)
    for line in listed.stdout.splitlines():
        path, _, symbol = line.partition(": ")
        name, kind = symbol.split()[:2]
        if kind in "TDBRCVW":
            defines[source_of[path]].add(name)
        elif kind == "U":
            needs[source_of[path]].add(name)
    return defines, needs


def names_of_sources(files):
    """The same of {path: text}, by what is written there and in the inline functions of headers that it uses."""
    code = {path: COMMENT.sub("", text) for path, text in files.items()}
    inline = {name: set(NAME.findall(body)) for path, text in code.items() if path.endswith(".h")
              for name, body in INLINE.findall(text)}
    defines, needs = {}, {}
    for path, text in code.items():
        if not path.endswith(".c"):
            continue
        defines[path] = set(DEFINED.findall(text))
        needs[path], left = set(), set(NAME.findall(text))
        while left:
            name = left.pop()
            needs[path].add(name)
            left |= inline.get(name, set()) - needs[path]
        needs[path] -= defines[path]
    return defines, needs


def calls(defines, needs):
    """{file: {another file of its folder that it calls: the names}}"""
    homes = {(os.path.dirname(path), name): path for path, names in defines.items() for name in names}
    graph = {path: collections.defaultdict(set) for path in {*defines, *needs}}
    for path, names in needs.items():
        for name in names:
            there = homes.get((os.path.dirname(path), name))
            if there and there != path:
                graph[path][there].add(name)
    return graph


def circles(graph):
    """Sets of files of which each calls each other, directly or by way of others."""
    reached = {}
    for start in graph:
        left, reached[start] = [start], set()
        while left:
            for there in graph[left.pop()]:
                if there not in reached[start]:
                    reached[start].add(there)
                    left.append(there)
    found = {frozenset(there for there in reached[path] if path in reached[there]) for path in graph if path in reached[path]}
    return sorted(found, key=sorted)


def problems(graph, knotted):
    found, untied = [], set(knotted)
    for circle in circles(graph):
        folder = os.path.dirname(min(circle))
        untied.discard(folder)
        if folder in knotted:
            continue
        for path in sorted(circle):
            found += [f"{path}: calls {there} ({', '.join(sorted(names))}), which calls it, maybe by way of others: "
                      f"a circle of {len(circle)} files" for there, names in sorted(graph[path].items()) if there in circle]
    return found + [f"{folder}: has no circle of calls any more: take it out of KNOTTED" for folder in sorted(untied)]


def disorder(graph, lists):
    """Calls of what {folder: text of its CMakeLists.txt} lists after the caller."""
    found = []
    for folder, text in sorted(lists.items()):
        if ORDERED not in text:
            continue
        place = {f"{folder}/{name}": i for i, name in enumerate(LISTED.findall(text))}
        for path in sorted(place):
            found += [f"{path}: calls {there} ({', '.join(sorted(names))}), which {folder}/CMakeLists.txt lists after it"
                      for there, names in sorted(graph.get(path, {}).items()) if place.get(there, 0) > place[path]]
    return found


def lists_of(graph):
    lists = {}
    for folder in {os.path.dirname(path) for path in graph}:
        path = os.path.join(SOURCE, folder, "CMakeLists.txt")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as handle:
                lists[folder] = handle.read()
    return lists


def built(tree):
    """({source: object}, problems) of what the build tree compiles from this one, tests aside."""
    objects, found = {}, []
    with open(os.path.join(tree, "compile_commands.json"), encoding="utf-8") as handle:
        commands = json.load(handle)
    for command in commands:
        path = os.path.relpath(command["file"], SOURCE)
        target = os.path.normpath(os.path.join(command["directory"], OUTPUT.search(command["command"])[1]))
        if path.startswith(("..", "tests/")) or path in objects or target.startswith(os.path.join(tree, "tests/")):
            continue
        if not os.path.exists(target) or os.path.getmtime(target) < os.path.getmtime(command["file"]):
            found.append(f"{path}: {target} is missing or older: build the tree first")
        else:
            objects[path] = target
    return objects, found


def unbuilt(folder):
    files = {}
    for name in sorted(os.listdir(os.path.join(SOURCE, folder))):
        if name.endswith((".c", ".h")) and not name.endswith(".mod.c"):
            with open(os.path.join(SOURCE, folder, name), encoding="utf-8") as handle:
                files[f"{folder}/{name}"] = handle.read()
    return files


def prove():
    """It fails for each thing that it is there for, and for nothing else."""
    def graph_of(**texts):
        return calls(*names_of_sources({f"room/{name.replace('_', '.')}": text for name, text in texts.items()}))

    above = "int es_a(void)\n{\n\treturn es_b();\n}\n"
    below = "/* es_a() */\nint es_b(void)\n{\n\tsay(\"es_a()\");\n}\n"
    well = graph_of(a_c=above, b_c=below, c_c="static int es_a(void)\n{\n}\nconst struct ops es_ops[] = {\n\tes_b,\n};\n")
    assert well["room/a.c"] == {"room/b.c": {"es_b"}}, well
    assert not problems(well, {})
    told = f"# {ORDERED}\nadd_library(room\n  "
    assert not disorder(well, {"room": told + "b.c\n  a.c\n  c.c)"})
    assert not disorder(well, {"room": "add_library(room\n  a.c\n  b.c)"})
    assert "room/a.c: calls room/b.c (es_b), which" in disorder(well, {"room": told + "a.c\n  b.c)"})[0]
    assert "has no circle" in problems(well, {"room": ""})[0]
    back = "int es_b(void)\n{\n\treturn es_in_header();\n}\n"
    header = "static inline int es_in_header(void)\n{\n\treturn es_a();\n}\n"
    for knot in (graph_of(a_c=above, b_c=back, b_h=header),
                 graph_of(a_c=above, b_c="int es_b(void)\n{\n\treturn es_c();\n}\n", c_c="int es_c(void)\n{\n\treturn es_ops[0]();\n}\n",
                          d_c="const struct ops es_ops[] = {\n\tes_a,\n};\n")):
        found = problems(knot, {})
        assert len(found) == len(knot) and "room/a.c: calls room/b.c (es_b)" in found[0], found
        assert not problems(knot, {"room": ""})
    elsewhere = calls({"one/a.c": {"es_a"}, "two/b.c": {"es_b"}}, {"one/a.c": {"es_b"}, "two/b.c": {"es_a"}})
    assert not problems(elsewhere, {})


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: knots.py BUILD_TREE")
    prove()
    objects, found = built(os.path.realpath(sys.argv[1]))
    defines, needs = names_of_objects(objects)
    for folder in UNBUILT:
        for names, more in zip((defines, needs), names_of_sources(unbuilt(folder))):
            names.update(more)
    if not found:
        graph = calls(defines, needs)
        assert all(any(graph[path] for path in graph if path.startswith(f"{folder}/")) for folder in UNBUILT)
        lists = lists_of(graph)
        assert any(ORDERED in text for text in lists.values())
        found = problems(graph, KNOTTED) + disorder(graph, lists)
    print("\n".join(found) or f"{len(needs)} files, circles of calls left in {len(KNOTTED)} folders")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
