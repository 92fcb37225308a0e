#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Sentences that have to be read twice, and comments that are too wide.

    prose.py                 prints file and line of what breaks that
    prose.py PATH...         prints all that is there, whatever NOT_YET allows
    prose.py --count         prints NOT_YET as it should be

Pages and the comments of C: no sentence begins with What, Who or Of unless it is a question, and conntrack is not called by
another name. Comments have at most 110 columns, as code has. NOT_YET has the folders that are not there yet, and how much they may
have at most: these numbers only fall, and a folder that is clean leaves the list. Before it reads the tree, the check proves that it
can fail.
"""
import os
import re
import subprocess
import sys

SOURCE = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
COLUMNS = 110
# plugin-abi.md is made of an installed header's comments.
PAGES_APART = ("docs/plugin-abi.md",)
# folder or file: (headless sentences, other names of conntrack, wide lines), of all below it but for what is named itself
NOT_YET = {
    "inspector/plugin/include/earshot": (1, 0, 17),
    "libearshot/include/earshot": (2, 0, 5),
}
KINDS = ("headless", "conntrack", "wide")
HEADLESS = re.compile(r"(?:What|Who|Of)\b")
CONNTRACK = re.compile(r"(?<!not\s)\bthe\s+connection\s+tracking\b", re.I)
# Kernel-doc's names and parameters, before the first sentence.
LEAD = re.compile(r"(?:\w+(?:\(\))?(?:, \w+(?:\(\))?)* - |(?:(?:struct|enum) )?\w+ - |@\w+(?:, @\w+)*: )")
ABBREVIATED = re.compile(r"\b(?:e\.g|i\.e|cf|vs)\.$")


def sentences(text):
    """(where it begins in @text, the sentence) of each one in a paragraph."""
    at = 0
    for match in re.finditer(r"[.!?:;][)\"'*]*(?=\s|$)", text):
        if match[0][0] in ":;" or ABBREVIATED.search(text[:match.end()]):
            continue
        yield at, text[at:match.end()]
        at = match.end()
    if text[at:].strip():
        yield at, text[at:]


def headless(text):
    """Where sentences of a paragraph begin without their subject. A part behind a colon counts for one."""
    for at, sentence in sentences(text):
        begin = at + len(sentence) - len(sentence.lstrip(" \n*_\"'("))
        lead = LEAD.match(text, begin)
        if HEADLESS.match(text, lead.end() if lead else begin) and "?" not in sentence[-3:]:
            yield begin


def paragraphs_of_page(text):
    """(offset, paragraph) of Markdown or scdoc: items, cells of tables and running text, without code."""
    text = re.sub(r"^```.*?^```$", lambda match: re.sub(r"[^\n]", " ", match[0]), text, flags=re.M | re.S)
    text = re.sub(r"`[^`\n]*`", lambda match: "x" * len(match[0]), text)
    for match in re.finditer(r"(?:^[^\n|].*\n?)+|^\|.*$", text, re.M):
        if match[0].startswith("|"):
            at = match.start()
            for cell in match[0].split("|"):
                yield at, cell
                at += len(cell) + 1
            continue
        begin = match.start()
        for item in re.split(r"^(?=[ \t]*(?:[-*] |\d+\. |#+ |\t))", match[0], flags=re.M):
            mark = re.match(r"[ \t]*(?:[-*] |\d+\. |#+ )?", item)[0]
            if not item.startswith("#"):
                yield begin + len(mark), item[len(mark):]
            begin += len(item)


def comments(text):
    """(offset, comment) of C, strings left out."""
    for match in re.finditer(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|(/\*.*?\*/|//[^\n]*(?:\n[ \t]*//[^\n]*)*)', text, re.S):
        if match[1]:
            yield match.start(), match[1]


def paragraphs_of_comment(comment):
    """(offset, paragraph), the marks at the beginnings of lines replaced by blanks."""
    plain = re.sub(r"^[ \t]*(?:/\*+|\*+/?|//)|\*+/$", lambda match: " " * len(match[0]), comment, flags=re.M)
    at = 0
    for part in re.split(r"(\n[ \t]*\n|\n(?=[ \t]*(?:@\w|- ))|(?<=;) (?=@\w))", plain):
        if part.strip():
            yield at, part
        at += len(part)


def findings(path, text):
    """(line, kind, words) of a file."""
    def line(offset):
        return text.count("\n", 0, offset) + 1

    is_page = path.endswith((".md", ".scd"))
    parts = list(paragraphs_of_page(text)) if is_page else [
        (at + offset, part) for at, comment in comments(text) for offset, part in paragraphs_of_comment(comment)]
    for at, part in parts:
        for begin in headless(part):
            words = " ".join(part[begin:begin + 60].split())
            yield line(at + begin), "headless", f"name the subject; no sentence begins with What, Who or Of unless it is a question: {words}"
        for match in CONNTRACK.finditer(part):
            yield line(at + match.start()), "conntrack", "conntrack, not the connection tracking"
    if is_page:
        return
    lines = text.split("\n")
    for number in sorted({line(at) + i for at, comment in comments(text) for i in range(comment.count("\n") + 1)}):
        if len(lines[number - 1].expandtabs(8)) > COLUMNS:
            yield number, "wide", f"a comment of more than {COLUMNS} columns"


def folder_of(path, not_yet):
    """The entry of NOT_YET that is for it."""
    while path and path not in not_yet:
        path = os.path.dirname(path)
    return path or None


def problems(files, not_yet):
    found = {folder: {kind: [] for kind in KINDS} for folder in not_yet}
    for path, text in sorted(files.items()):
        folder = folder_of(path, not_yet)
        for number, kind, words in findings(path, text):
            if folder is None:
                yield f"{path}:{number}: {words}"
            else:
                found[folder][kind].append(f"{path}:{number}: {words}")
    for folder, kinds in found.items():
        for kind, most in zip(KINDS, not_yet[folder]):
            if len(kinds[kind]) > most:
                yield f"{folder}: {len(kinds[kind])} instead of {most} ({kind}); all of them: cmake/prose.py {folder}"
        if not any(kinds.values()):
            yield f"{folder}: is clean now: take it out of NOT_YET in cmake/prose.py"


def prove():
    """It fails for each thing that it is there for, and for nothing else."""
    well = {"a/a.c": "// SPDX\n/* What is it? Conntrack tells. */\nchar *s = \"/* Who is this. */\";\nint a; /* of some use. Often, what helps. */\n",
            "README.md": "# What it is\n\nText, e.g. What. It is so: Who knows?\n\n```\nWhat is this.\n```\n- `What` is a word.\n| Of what? | x |\n"}
    assert not list(problems(well, {})), list(problems(well, {}))
    for path, text, words in (
            ("a/b.c", "/*\n * It is so. What is\n * for us goes there.\n */", "a/b.c:2: name the subject"),
            ("a/b.h", "/* es_x() - Who asks knows. */", "b.h:1: name"),
            ("a/b.h", "/**\n * es_x() - do it\n * @x: Of this node.\n */", "b.h:3: name"),
            ("a/b.c", "int x;\n// Of two, one.\n", "b.c:2: name"),
            ("a/b.c", "/* it is the connection\n * tracking that knows */", "b.c:1: conntrack"),
            ("a/b.c", "int a;\n\t/* " + "x" * 100 + " */", "b.c:2: a comment of more"),
            ("b.md", "It works.\nWho asks\nhears it.\n", "b.md:2: name"),
            ("b.md", "| a | Of two, one |\n", "b.md:1: name"),
            ("b.md", "1. What is there stays.\n2. Good.\n", "b.md:1: name")):
        found = list(problems({**well, path: text}, {}))
        assert len(found) == 1 and words in found[0], (text, found)
        if path.startswith("a/"):
            assert len(list(problems({**well, path: text}, {"a": (1, 1, 1)}))) == 0
            assert len(list(problems({**well, path: text, "a/c.c": text}, {"a": (1, 1, 1)}))) == 1
    assert "is clean now" in "".join(problems(well, {"a": (1, 0, 0)}))


def counts(files):
    """NOT_YET as it should be: by the folders that it has, and by their own for all other files."""
    result = {}
    for path, text in files.items():
        folder = folder_of(path, NOT_YET) or os.path.dirname(path)
        for _, kind, _ in findings(path, text):
            result.setdefault(folder, dict.fromkeys(KINDS, 0))[kind] += 1
    return {folder: tuple(kinds.values()) for folder, kinds in sorted(result.items())}


def main():
    prove()
    names = subprocess.run(["git", "-C", SOURCE, "ls-files", "--cached", "--others", "--exclude-standard", "*.c", "*.h", "*.md", "*.scd"],
                           check=True, capture_output=True, text=True).stdout.split("\n")
    files = {}
    for name in filter(None, names):
        if os.path.exists(os.path.join(SOURCE, name)) and name not in PAGES_APART:
            with open(os.path.join(SOURCE, name), encoding="utf-8") as handle:
                files[name] = handle.read()
    if sys.argv[1:] == ["--count"]:
        for folder, kinds in counts(files).items():
            print(f'    "{folder}": {kinds},')
        return 0
    if sys.argv[1:]:
        paths = tuple(sys.argv[1:])
        files = {name: text for name, text in files.items() if name in paths or name.startswith(tuple(f"{path.rstrip('/')}/" for path in paths))}
    found = list(problems(files, {} if sys.argv[1:] else NOT_YET))
    print("\n".join(found) or f"{len(files)} files, {len(NOT_YET)} folders not yet clean")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
