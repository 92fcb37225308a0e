#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes docs/plugin-abi.md, the reference of the plugin ABI, from the comments of <earshot/plugin.h>.

usage: abi_reference.py [--check]      writes the page; or says whether it is what the header says (status 1: no)
"""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
HEADER = os.path.join(HERE, "include", "earshot", "plugin.h")
PAGE = os.path.join(HERE, "..", "..", "docs", "plugin-abi.md")

COMMENT = re.compile(r"/\*+\s?(.*?)\s*\*/", re.S)
FUNCTION = re.compile(r"^([\w\s]+?[\s*]*)\(\*(\w+)\)\((.*?)\)(?:\s*ES_PLUGIN_PRINTF\(.*?\))?;", re.S)


class HeaderError(Exception):
    """The header has something that this does not understand; better no page than half of one."""


def text_of(comment):
    """Lines of a comment without its stars."""
    return [re.sub(r"^\s*\*( |$)?", "", line).rstrip() for line in comment.split("\n")]


def prose(lines):
    """Markdown: paragraphs, indented lines as code, and @names as code."""
    out, words = [], []

    def flush():
        if words:
            out.append(re.sub(r"@(\w+)", r"`\1`", " ".join(words)))
            out.append("")
            words.clear()

    in_code = False
    for line in lines:
        if line.startswith("\t"):
            flush()
            if not in_code:
                out.append("```")
            in_code = True
            out.append(line[1:].expandtabs(8))
            continue
        if in_code:
            out += ["```", ""]
            in_code = False
        if line.strip():
            words.append(line.strip())
        else:
            flush()
    if in_code:
        out += ["```", ""]
    flush()
    return out


def fields(lines):
    """The prose of a structure's comment, and its "@a, @b: what" as a list; what follows an item belongs to it."""
    before, items = [], []
    for line in lines:
        if re.match(r"@\w+(, @\w+)*:", line):
            items.append(line)
        elif items and re.search(r"; @\w+(, @\w+)*: ", line):
            items[-1] += " " + line
        elif items and line.strip():
            items[-1] += " " + line.strip()
        elif not items:
            before.append(line)
    # "@a: what; @b: what" are two.
    items = [part for item in items for part in re.split(r"(?<=[;.]) (?=@\w+(?:, @\w+)*: )", item)]
    out = prose(before)
    for item in items:
        names, what = item.split(":", 1)
        names = ", ".join(f"`{name.strip()[1:]}`" for name in names.split(","))
        what = re.sub(r"@(\w+)", r"`\1`", what.strip().rstrip(";"))
        out.append(f"- {names}: {what}")
    return out + [""] * bool(items)


def documented(comment, name):
    """A comment's lines without the "struct x - " that it begins with, which becomes a sentence."""
    lines = text_of(comment)
    while lines and not lines[0].strip():
        lines.pop(0)
    match = re.match(rf"{re.escape(name)} - (.*)", lines[0]) if lines else None
    if not match:
        return lines
    title = match[1][:1].upper() + match[1][1:]
    # A title is a line of its own, unless it goes on.
    if len(lines) == 1 or len(lines[0]) < 80:
        return [title + "." * (not title.endswith(".")), "", *lines[1:]]
    return [title, *lines[1:]]


def code(text):
    """A declaration as it stands, without what it is commented with, and not farther right than it needs to be."""
    text = re.sub(r"[ \t]*/\*.*?\*/", "", text, flags=re.S)
    lines = [line.rstrip().expandtabs(8) for line in text.split("\n")]
    return ["```c", *[line for line in lines if line.strip()], "```", ""]


def aggregates(header):
    """(name, comment, body) of each structure and enumeration that is defined, in order."""
    for match in re.finditer(r"^((?:struct|enum) es_plugin\w*) \{\n(.*?)^\};", header, flags=re.S | re.M):
        comments = list(COMMENT.finditer(header, 0, match.start()))
        near = comments and not header[comments[-1].end():match.start()].strip()
        if not near:
            raise HeaderError(f"{match[1]} has no comment")
        yield match[1], comments[-1][1], match


def enumeration(name, comment, body):
    """Each value with its own comment: one before it or behind it."""
    lines = ["| value | meaning |", "|---|---|"]
    for part in re.finditer(r"((?:\s*/\*.*?\*/)*)\s*(ES_\w+) = ([^,\n]+),[ \t]*(/\*.*?\*/)?", body, flags=re.S):
        said = [" ".join(each.strip() for each in text_of(found[1]))
                for found in COMMENT.finditer((part[1] or "") + (part[4] or ""))]
        what = re.sub(r"@(\w+)", r"`\1`", " ".join(said).strip()).replace("|", "\\|")
        lines.append(f"| `{part[2]}` = {part[3].strip()} | {what} |")
    if len(lines) == 2:
        raise HeaderError(f"{name} has no values")
    return [f"## `{name}`", "", *prose(documented(comment, name)), *lines, ""]


def host(name, comment, body):
    """The table of functions: sections, and for each function its declaration and its comment."""
    out = [f"## `{name}`: the host's functions", "", *prose(documented(comment, name))]
    at, said, count = 0, [], 0
    while body[at:].strip():
        rest = body[at:].lstrip()
        at = len(body) - len(rest)
        found = COMMENT.match(rest)
        if found:
            heading = re.match(r"--- (.*)", found[1], flags=re.S)
            if heading:
                title = " ".join(line.strip() for line in text_of(heading[1])).rstrip(".")
                out += [f"### {title}", ""]
                said = []
            else:
                said = text_of(found[1])
            at += found.end()
            continue
        declared = FUNCTION.match(rest)
        if declared:
            count += 1
            if not said:
                raise HeaderError(f"{name}.{declared[2]} has no comment")
            arguments = re.sub(r"\s+", " ", declared[3])
            out += [f"#### `{declared[2]}()`", "", "```c", f"{declared[1].strip()} {declared[2]}({arguments});".replace("* ", "*"),
                    "```", "", *prose(said)]
            at += declared.end()
            said = []
            continue
        field = re.match(r"[\w\s]+;", rest)
        if not field:
            raise HeaderError(f"{name}: {rest[:60]!r}")
        at += field.end()
    if count < 30:
        raise HeaderError(f"{name}: {count} functions found")
    return out


def page(header):
    """The whole of it, from the header's text."""
    first = next(each for each in COMMENT.finditer(header) if "SPDX" not in each[1])
    version = [re.search(rf"#define ES_PLUGIN_ABI_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR")]
    out = [f"# The plugin ABI, version {'.'.join(version)}", "",
           "<!-- Made from inspector/plugin/include/earshot/plugin.h by inspector/plugin/abi_reference.py: change the header. -->", "",
           "All of `<earshot/plugin.h>`, in its order. How to write, try and deploy a plugin is in [plugins.md](plugins.md).", "",
           *prose(text_of(first[1])), "## Constants", "", "| constant | value | |", "|---|---|---|"]
    for match in re.finditer(r"^((?:/\*[^\n]*\*/\n)?)#define (ES_PLUGIN_(?!EXPORT|PRINTF|HEADER)\w+)[ \t]+([^\n/]+?)[ \t]*(/\*.*?\*/)?$",
                             header, flags=re.M):
        what = " ".join(found[1].strip() for found in COMMENT.finditer(match[1] + (match[4] or "")))
        out.append(f"| `{match[2]}` | `{match[3]}` | {what} |")
    out += ["", "`ES_PLUGIN_HEADER` stands for a descriptor's first five members, `ES_PLUGIN_EXPORT` makes its symbol visible.", ""]
    for name, comment, match in aggregates(header):
        if name.startswith("enum"):
            out += enumeration(name, comment, match[2])
        elif name == "struct es_plugin_host":
            out += host(name, comment, match[2])
        else:
            out += [f"## `{name}`", "", *fields(documented(comment, name)), *code(match[0])]
    return "\n".join(out).rstrip() + "\n"


def main():
    with open(HEADER, encoding="utf-8") as handle:
        text = page(handle.read())
    if sys.argv[1:] == ["--check"]:
        with open(PAGE, encoding="utf-8") as handle:
            if handle.read() != text:
                sys.exit("docs/plugin-abi.md is not what the header says: run inspector/plugin/abi_reference.py")
        return
    if sys.argv[1:]:
        sys.exit(__doc__)
    with open(PAGE, "w", encoding="utf-8") as handle:
        handle.write(text)


if __name__ == "__main__":
    try:
        main()
    except (HeaderError, OSError) as error:
        sys.exit(f"abi_reference.py: {error}")
