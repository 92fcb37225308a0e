#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes the keys of the configuration, from their table (keys.h), into earshot.conf(5) and conf/earshot.conf.example.

usage: key_reference.py [--check]      writes them; or says whether they are what the table says (status 1: no)
"""
import os
import re
import sys
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "..", "..")
TABLES = ["keys_cluster.c", "keys_service.c", "keys_tls.c", "keys_rules.c"]
HEADERS = ["inspector/config/config.h", "inspector/policy/url_info.h", "kmod/core/abi.h"]
MANUAL = ("docs/man/earshot.conf.5.scd", "; Down to RELOADING", "# RELOADING\n")
EXAMPLE = ("conf/earshot.conf.example", "cluster {\n", "# Rules and locations, as a site has them")
WIDTH = 110

# The cluster of the example: what it sets, in which sections (those that are not here are commented out there), and the nodes
# besides the first.
SETS = {("cluster", "name"): '"lab"', ("datapath", "interface"): "eth0", ("datapath", "cluster_interface"): "eth1",
        ("node", "address"): "10.78.0.1", ("node", "id"): "1", ("service", "address"): "10.77.0.100", ("service", "port"): "80"}
HEADS = {"cluster": "cluster", "datapath": "datapath", "inspector": "inspector", "status": "status", "node": "node n1",
         "service": "service web", "check": "check"}
COMMENTED = {"log": "log", "outlier": "outlier", "otherwise": "otherwise", "tls": "tls", "plugin": "plugin header-hash", "rule": "rule NAME",
             "location": 'location "/path/"'}
INSIDE = ("service", ["check", "outlier", "otherwise", "plugin", "tls"])
OTHER_NODES = ["node n2 { address = 10.78.0.2 id = 2 }", "node n3 { address = 10.78.0.3 id = 3 }"]

ALIKE = {"MUST": "Must be alike on all nodes.", "OWN": "Nodes may differ in it.", "SHOULD": "", "LISTED": ""}


class TableError(Exception):
    """The table has something that this does not understand, or lacks something; better no page than half of one."""


class Text:
    """A comment of the table: paragraphs, and the example's value."""

    def __init__(self, comment):
        first, *others = comment.rstrip().split("\n")
        lines = [first.strip(), *[re.sub(r"^\s*\*", "", line).strip() for line in others]]
        self.example = next((line[9:] for line in lines if line.startswith("@example ")), None)
        lines = [line for line in lines if not line.startswith("@example ")]
        self.paragraphs = [" ".join(part.split()) for part in "\n".join(lines).split("\n\n") if part.strip()]


class Key:
    """A line of the table. @text: None if it is as in a rule; @heading: of those from here on"""

    def __init__(self, section, macro, arguments, text, heading, constants):
        self.section, self.macro, self.text, self.heading = section, macro, text, heading
        self.name = arguments[1].strip('"')
        self.default, self.numbers = "OPTIONAL", None
        at = 3 if macro in ("LIST", "NAMED") else 2
        self.alike = re.match(r"\w+", arguments[at])[0].split("_")[0]
        if macro in ("NUMBER", "CHOICE", "VALUE"):
            self.default = arguments[3]
        if macro == "NUMBER":
            low, high, unit, zero = arguments[4:]
            self.numbers = f"{constants(low)}..{constants(high)}" + ("" if unit == "NULL" else " " + unquoted(unit)) + \
                ("" if zero == "NULL" else ", or 0: " + unquoted(zero)) + "."
        self.choices = arguments[4] if macro == "CHOICE" else None
        if self.alike not in ALIKE:
            raise TableError(f"{section}: {self.name}: {arguments[at]} does not say whether nodes must be alike")

    def value(self):
        """The default as the file has it; None if there is none."""
        if self.default in ("OPTIONAL", "REQUIRED"):
            return None
        value = unquoted(self.default)
        return value if re.fullmatch(r"[\w.:/%-]+", value) else f'"{value}"'


def unquoted(word):
    found = re.fullmatch(r'"([^"]*)"', word)
    if not found:
        raise TableError(f"{word}: expected a string")
    return found[1]


def split_arguments(text):
    """Of a macro: at commas that are in no string and no parentheses."""
    parts, depth, start = [], 0, 0
    for found in re.finditer(r'"[^"]*"|[(),]', text):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if found[0] == "," and not depth:
            parts.append(text[start:found.start()])
            start = found.end()
    return [" ".join(part.split()) for part in [*parts, text[start:]]]


ELEMENT = re.compile(r"""/\*(?P<comment>.*?)\*/ | (?P<macro>NUMBER|CHOICE|VALUE|LIST|NAMED)\((?P<arguments>(?:[^()]|\([^()]*\))*)\),?
                     | \{\.name[ ]=[ ]NULL\},?""", re.S | re.X)


def keys_of(section, body, constants):
    """The keys between the braces of a section's table."""
    keys, text, heading, at = [], None, None, 0
    while body[at:].strip():
        at += len(body[at:]) - len(body[at:].lstrip())
        found = ELEMENT.match(body, at)
        if not found:
            raise TableError(f"{section}: {body[at:at + 60]!r}")
        at = found.end()
        if found["comment"] and found["comment"].strip().startswith("--- "):
            heading = found["comment"].strip()[4:]
        elif found["comment"]:
            text = Text(found["comment"])
        elif found["macro"]:
            keys.append(Key(section, found["macro"], split_arguments(found["arguments"]), text, heading, constants))
            text = heading = None
    return keys


def key_complain(key, words):
    """Says what a key lacks."""
    if not key.text:
        raise TableError(f"{key.section}: {key.name} has no text")
    if key.macro != "NUMBER" and key.default == "OPTIONAL" and not key.text.example:
        raise TableError(f"{key.section}: {key.name} has neither a default nor a value for the example")
    told = " ".join(key.text.paragraphs)
    missing = [word for word in words.get(key.choices, []) if f"_{word}_" not in told]
    if missing and key.choices != "yes_no":
        raise TableError(f"{key.section}: {key.name}: its text does not name _{missing[0]}_")


def read(*path):
    with open(os.path.join(TOP, *path), encoding="utf-8") as handle:
        return handle.read()


def table():
    """{section: (its text, its keys)}, in order."""
    sources = [read("inspector/config", name) for name in TABLES]
    defined = dict(re.findall(r"#define (\w+)[ \t]+\(?(\d+(?:u? << \d+)?)u?\)?\s", "".join([*sources, *map(read, HEADERS)])))

    def constants(word):
        word = defined.get(word, word)
        found = re.fullmatch(r"(\d+)(?:u? << (\d+))?", word)
        if not found:
            raise TableError(f"{word}: no such number")
        return int(found[1]) << int(found[2] or 0)

    result = {}
    for source in sources:
        words = {name: re.findall(r'\{"([\w-]+)"', body)
                 for name, body in re.findall(r"es_conf_choice (\w+)\[\] = \{\n(.*?)\n\};", source, re.S)}
        for found in re.finditer(r"(?:/\*((?:(?!\*/).)*)\*/\n)?const struct es_conf_key es_conf_(\w+)_keys\[\] = \{\n(.*?)\n\};", source, re.S):
            keys = keys_of(found[2], found[3], constants)
            result[found[2]] = (Text(found[1]) if found[1] else None, keys)
            for key in keys:
                if key.text or found[2] != "location":
                    key_complain(key, words)
    if len(result) != len(HEADS) + len(COMMENTED) or sum(len(keys) for _, keys in result.values()) < 100:
        raise TableError(f"{len(result)} sections found")
    return result


def man_wrapped(text, indent=""):
    lines = textwrap.wrap(text, WIDTH - 8 * len(indent), break_long_words=False, break_on_hyphens=False)
    return [indent + line for line in lines]


def are_all_alike(keys):
    return all(key.alike == "MUST" for key in keys)


def man_key(key, is_said):
    parts = [*key.text.paragraphs]
    if key.numbers:
        parts.append(key.numbers)
    if key.default == "REQUIRED":
        parts.append("Required.")
    elif key.default != "OPTIONAL":
        parts.append(f"Default _{unquoted(key.default)}_.")
    if ALIKE[key.alike] and not is_said:
        parts.append(ALIKE[key.alike])
    return [f"*{key.name}*", *man_wrapped(" ".join(parts), "\t"), ""]


def manual(sections):
    out = ["; Down to RELOADING, made from inspector/config/keys_*.c by inspector/config/key_reference.py: change those.", ""]
    for name, (text, keys) in sections.items():
        out += [f"# SECTION {name.upper()}", ""]
        is_said = are_all_alike(keys)
        intro = " ".join(text.paragraphs) if text else ""
        if is_said:
            before, conditions = re.fullmatch(r"(.*?)( Conditions:)?", intro).groups()
            intro = f"{before} All of it must be alike on all nodes.{conditions or ''}"
        if intro:
            out += [*man_wrapped(intro), ""]
        as_there = [key for key in keys if not key.text]
        for key in keys:
            if key.heading:
                out += [key.heading, ""]
            if key.text:
                out += man_key(key, is_said)
            elif key is as_there[0]:
                out += [", ".join(f"*{other.name}*" for other in as_there), "\tAs in a rule.", ""]
    return "\n".join(out) + "\n"


def plain(text):
    """Without the markup of scdoc."""
    text = re.sub(r"(?<![\w\\])([*_])((?:[^*_\\]|\\.|(?<=\w)_(?=\w))+)\1(?!\w)", r"\2", text)
    return re.sub(r"\\(.)", r"\1", text)


def commented(text):
    # What it is indented by, and "# " of a section that is commented out, come before that.
    return [f"# {line}" for line in textwrap.wrap(text, WIDTH - 10, break_long_words=False, break_on_hyphens=False)]


def example_key(key, is_said):
    """Its lines inside a section, not indented."""
    value = SETS.get((key.section, key.name))
    if value:
        line = f"{key.name} = {value}"
    elif key.text.example:
        line = f"# {key.name} = {key.text.example}"
    else:
        line = f"#{key.name} = {key.value()}"
    parts = [plain(key.text.paragraphs[0])] + ([key.numbers] if key.numbers else [])
    if key.default == "REQUIRED":
        parts.append("Required.")
    elif key.value() and key.text.example:
        parts.append(f"Default {key.value()}.")
    if key.alike == "MUST" and not is_said:
        parts.append(ALIKE["MUST"])
    return [*commented(" ".join(parts)), line, ""]


def example_section(sections, name):
    text, keys = sections[name]
    out = commented(plain(text.paragraphs[0])) if text else []
    out.append(f"{(HEADS | COMMENTED)[name]} {{")
    as_there = [key.name for key in keys if not key.text]
    inner = [f"# {', '.join(as_there)}: as in a rule.", ""] if as_there else []
    inner += [line for key in keys if key.text for line in example_key(key, are_all_alike(keys))]
    for other in INSIDE[1] if name == INSIDE[0] else []:
        inner += [*example_section(sections, other), ""]
    while inner and not inner[-1]:
        inner.pop()
    out += ["    " + line if line else "" for line in inner] + ["}"]
    if name in COMMENTED:
        at = out.index(next(line for line in out if line.endswith("{")))
        out = out[:at] + [f"# {line}".rstrip() for line in out[at:]]
    return out


def example(sections):
    out = []
    for name in sections:
        if name not in INSIDE[1]:
            out += example_section(sections, name)
            out += [*OTHER_NODES, ""] if name == "node" else [""]
    return "\n".join(out) + "\n"


def replaced(path, begin, end, text):
    """The file with another middle part, from @begin up to @end."""
    whole = read(path)
    first, last = whole.find("\n" + begin), whole.find("\n" + end)
    if first < 0 or last < first:
        raise TableError(f"{path}: expected a line {begin.strip()!r}, and one that begins with {end.strip()!r} after it")
    return whole, whole[:first + 1] + text + whole[last + 1:]


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    sections = table()
    for (path, begin, end), text in ((MANUAL, manual(sections)), (EXAMPLE, example(sections))):
        before, after = replaced(path, begin, end, text)
        if sys.argv[1:] and before != after:
            sys.exit(f"{path} is not what the table of keys says: run inspector/config/key_reference.py")
        if before != after:
            with open(os.path.join(TOP, path), "w", encoding="utf-8") as handle:
                handle.write(after)


if __name__ == "__main__":
    try:
        main()
    except (TableError, OSError) as error:
        sys.exit(f"key_reference.py: {error}")
